package chattmpl_test

import (
	"encoding/json"
	"errors"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/anepkg/anepkg/coreml/sharedtest"
	"github.com/anepkg/anepkg/runner/chattmpl"
)

const chatML = `{%- for m in messages -%}{{- '<|im_start|>' + m['role'] + '\n' + m['content'] + '<|im_end|>\n' -}}
{%- endfor -%}{%- if add_generation_prompt -%}{{- '<|im_start|>assistant\n' -}}{%- endif -%}`

func parse(t testing.TB, source string) *chattmpl.Template {
	t.Helper()
	tmpl, err := chattmpl.Parse(source)
	if err != nil {
		t.Fatal(err)
	}
	return tmpl
}

func TestRenderChat(t *testing.T) {
	msgs := []chattmpl.Message{{Role: "system", Content: "s"}, {Role: "user", Content: "hé\n"}}
	tests := []struct {
		name, source string
		generate     bool
		extra        map[string]any
		want         string
	}{
		{"chatml", chatML, true, nil, "<|im_start|>system\ns<|im_end|>\n<|im_start|>user\nhé\n<|im_end|>\n<|im_start|>assistant\n"},
		{"no prompt", "{{ add_generation_prompt }}{{ messages|length }}", false, nil, "False2"},
		{
			"extra values", "{{ bos_token }}{{ tools[0].name }}{{ n + 1 }}{{ x.b }}{{ f }}{{ z }}", false,
			map[string]any{
				"bos_token": "<s>", "tools": []map[string]string{{"name": "t"}}, "n": uint8(1), "x": map[string]any{"b": int32(2)},
				"f": float32(0.5), "z": nil,
			},
			"<s>t220.5None",
		},
		{"keys of Go maps are sorted", "{{ m|tojson }}", false, map[string]any{"m": map[string]int{"b": 1, "a": 2}}, `{"a": 2, "b": 1}`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := parse(t, tt.source).RenderChat(msgs, tt.generate, tt.extra)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

func TestRenderChatRefusesOddValues(t *testing.T) {
	_, err := parse(t, "x").RenderChat(nil, false, map[string]any{"c": make(chan int)})
	var failed *chattmpl.Error
	if !errors.As(err, &failed) || failed.Kind != "TypeError" {
		t.Errorf("got error %v, want a TypeError", err)
	}
}

func TestDecodeJSON(t *testing.T) {
	v, err := chattmpl.DecodeJSON([]byte(`{"z": 1, "a": [1.0, 2e3, -5, null, true, "x"], "big": 18446744073709551616}`))
	if err != nil {
		t.Fatal(err)
	}
	m := v.(*chattmpl.OrderedMap)
	if diff := cmp.Diff([]string{"z", "a", "big"}, m.Keys()); diff != "" {
		t.Errorf("keys (-want +got)\n%s", diff)
	}
	a, _ := m.Get("a")
	if diff := cmp.Diff([]any{1.0, 2000.0, int64(-5), nil, true, "x"}, a); diff != "" {
		t.Errorf("list (-want +got)\n%s", diff)
	}
	n, _ := m.Get("big")
	if b, ok := n.(*big.Int); !ok || b.String() != "18446744073709551616" {
		t.Errorf("got %v (%T), want 18446744073709551616", n, n)
	}
	for _, bad := range []string{"", "{", `{"a":}`, "[1,]", "1 2", `{"a":1]`} {
		if v, err := chattmpl.DecodeJSON([]byte(bad)); err == nil {
			t.Errorf("%q: got %v, want an error", bad, v)
		}
	}
}

// TestPackageTemplates renders the template of every small package beside the checkout.
func TestPackageTemplates(t *testing.T) {
	dir := sharedtest.Path(t, "models")
	files, err := filepath.Glob(filepath.Join(dir, "*", "*", "package", "tokenizer_config.json"))
	if err != nil {
		t.Fatal(err)
	}
	more, _ := filepath.Glob(filepath.Join(dir, "demo", "package", "tokenizer_config.json"))
	if files = append(files, more...); len(files) < 10 {
		t.Fatalf("got %d packages, want at least 10", len(files))
	}
	for _, f := range files {
		t.Run(filepath.Base(filepath.Dir(filepath.Dir(f))), func(t *testing.T) {
			var config struct {
				ChatTemplate string `json:"chat_template"`
				BOS          any    `json:"bos_token"`
			}
			data, err := os.ReadFile(f)
			if err == nil {
				err = json.Unmarshal(data, &config)
			}
			if err != nil || config.ChatTemplate == "" {
				t.Fatalf("%s: error %v, template %q", f, err, config.ChatTemplate)
			}
			out, err := parse(t, config.ChatTemplate).RenderChat([]chattmpl.Message{{Role: "user", Content: "Hi there"}}, true,
				map[string]any{"bos_token": config.BOS})
			if err != nil || !strings.Contains(out, "Hi there") || !strings.Contains(out, "user") {
				t.Errorf("got %q, error %v, want a prompt with role and content", out, err)
			}
		})
	}
}

// FuzzRender checks that no template panics or runs away.
func FuzzRender(f *testing.F) {
	f.Add(chatML)
	f.Add("{% macro m(a, b=2) %}{{ a|tojson(indent=2) }}{% endmacro %}{{ m(messages[0].content[::-1]) }}")
	f.Add("{% for k, v in x.items() recursive %}{{ loop.index }}{{ '%5s' % k }}{% break %}{% else %}{% endfor %}")
	f.Add("{%- set ns = namespace(a=[1]) -%}{% raw %}{{{% endraw %}{# c -#} {{ (1, 2.5 ** 2, -3 // 2)|join }}")
	var file struct{ Cases []struct{ Template string } }
	if err := json.Unmarshal(read(f, "testdata", "jinja2.json"), &file); err != nil {
		f.Fatal(err)
	}
	for _, c := range file.Cases {
		f.Add(c.Template)
	}
	f.Fuzz(func(t *testing.T, source string) {
		tmpl, err := chattmpl.Parse(source)
		if err != nil {
			return
		}
		first, err1 := tmpl.RenderChat([]chattmpl.Message{{Role: "user", Content: "a 1 é"}}, true, nil)
		second, err2 := tmpl.RenderChat([]chattmpl.Message{{Role: "user", Content: "a 1 é"}}, true, nil)
		if (err1 == nil) != (err2 == nil) || first != second && !strings.Contains(source, "strftime") {
			t.Errorf("got %q (%v), then %q (%v)", first, err1, second, err2)
		}
	})
}

func BenchmarkParse(b *testing.B) {
	dir := sharedtest.Path(b, "vectors/chat-template/templates")
	source := string(read(b, dir, "gemma-4-26B-A4B-it-UD-Q8_K_XL.jinja"))
	b.SetBytes(int64(len(source)))
	for b.Loop() {
		if _, err := chattmpl.Parse(source); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkRender(b *testing.B) {
	dir := sharedtest.Path(b, "vectors/chat-template/templates")
	tmpl := parse(b, string(read(b, dir, "Qwen3-8B-Q8_0.jinja")))
	msgs := []chattmpl.Message{{Role: "user", Content: "Hello"}, {Role: "assistant", Content: "Hi"}, {Role: "user", Content: "?"}}
	for b.Loop() {
		if _, err := tmpl.RenderChat(msgs, true, nil); err != nil {
			b.Fatal(err)
		}
	}
}
