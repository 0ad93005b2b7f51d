package chattmpl_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/anepkg/anepkg/runner/chattmpl"
)

// TestHostile checks that templates which would take forever or eat all memory end with an error.
func TestHostile(t *testing.T) {
	tests := []struct{ name, source, kind string }{
		{"nested loops", "{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}", "LimitError"},
		{"endless macro", "{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}", "RecursionError"},
		{"endless loop call", "{% for x in [1] recursive %}{{ loop([1]) }}{% endfor %}", "RecursionError"},
		{"doubling", "{% set n = namespace(s='xx') %}{% for i in range(99) %}{% set n.s = n.s + n.s %}{% endfor %}", "LimitError"},
		{"repeat", "{{ 'x' * 99999999999 }}", "LimitError"},
		{"repeat list", "{{ [1] * 99999999999 }}", "LimitError"},
		{"range", "{{ range(100001)|list }}", "OverflowError"},
		{"range bounds", "{{ range(-9223372036854775807, 9223372036854775807) }}", "OverflowError"},
		{"power", "{{ 9 ** 99999 }}", "LimitError"},
		{"replace", "{{ ('x' * 30000)|replace('x', 'y' * 30000) }}", "LimitError"},
		{"join", "{{ range(99999)|join('y' * 99999) }}", "LimitError"},
		{"pad", "{{ 'x'.center(999999999) }}", "LimitError"},
		{"zfill", "{{ 'x'.zfill(999999999) }}", "LimitError"},
		{"indent", "{{ 'x'|indent(999999999) }}", "LimitError"},
		{"batch", "{{ [1]|batch(999999999, 'x') }}", "LimitError"},
		{"slice", "{{ [1]|slice(999999999) }}", "LimitError"},
		{"format width", "{{ '%99999999d' % 1 }}", "LimitError"},
		{"self-reference", "{% set n = namespace() %}{% set n.n = [n] %}{{ n }}", "LimitError"},
		{"output", "{% set s = 'x' * 9999999 %}{% for i in range(99) %}{{ s }}{% endfor %}", "LimitError"},
		{"deep parentheses", "{{ " + strings.Repeat("(", 5000) + "1" + strings.Repeat(")", 5000) + " }}", "TemplateSyntaxError"},
		{"deep not", "{{ " + strings.Repeat("not ", 5000) + "1 }}", "TemplateSyntaxError"},
		{"deep blocks", strings.Repeat("{% if 1 %}", 5000), "TemplateSyntaxError"},
		{"long", strings.Repeat("x", 1<<20+1), "TemplateSyntaxError"},
		{"change a list", "{{ [].append(1) }}", "SecurityError"},
		{"change a dict", "{{ {}.update({}) }}", "SecurityError"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			out, err := render(tt.source, chattmpl.Request{})
			var failed *chattmpl.Error
			if !errors.As(err, &failed) || failed.Kind != tt.kind {
				t.Errorf("got %d bytes, error %v, want %s", len(out), err, tt.kind)
			}
		})
	}
}

// TestErrorLine checks that errors name the line of the template.
func TestErrorLine(t *testing.T) {
	tests := []struct {
		name, source string
		line         int
	}{
		{"parse", "a\n{% if %}\n{% endif %}", 2},
		{"unknown filter", "a\n\n{{ 1|nosuch }}", 3},
		{"undefined", "a\n{% set x = 1 %}\n\n{{ nope.x }}\n", 4},
		{"type", "{% if true %}\n\n{{ 'a' + 1 }}{% endif %}", 3},
		{"in a loop", "{% for i in [1] %}\n{{ i }}\n{{ i.x.y }}\n{% endfor %}", 3},
		{"raised", "{% if true %}\n{{ raise_exception('no') }}{% endif %}", 2},
		{"no end", "x\n{{ 'a'\n\n", 2},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := render(tt.source, chattmpl.Request{})
			line := 0
			var failed *chattmpl.Error
			var raised *chattmpl.RaiseError
			if errors.As(err, &failed) {
				line = failed.Line
			} else if errors.As(err, &raised) {
				line = raised.Line
			}
			if line != tt.line {
				t.Errorf("error %v is at line %d, want %d", err, line, tt.line)
			}
		})
	}
}
