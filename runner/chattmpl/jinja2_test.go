package chattmpl_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/anepkg/anepkg/runner/chattmpl"
)

// TestJinja2 compares small templates with what jinja2 3.1.6 made of them.
func TestJinja2(t *testing.T) {
	data := read(t, "testdata", "jinja2.json")
	var file struct {
		Values json.RawMessage
		Cases  []struct {
			Template string
			OK       *string
			Err      string
		}
	}
	if err := json.Unmarshal(data, &file); err != nil {
		t.Fatal(err)
	}
	decoded, err := chattmpl.DecodeJSON(file.Values)
	if err != nil {
		t.Fatal(err)
	}
	if len(file.Cases) < 500 {
		t.Fatalf("got %d cases, want at least 500", len(file.Cases))
	}
	req := chattmpl.Request{
		Values: decoded.(*chattmpl.OrderedMap),
		Now:    func() time.Time { return time.Date(2024, 3, 5, 7, 8, 9, 123456000, time.UTC) },
	}
	for _, c := range file.Cases {
		t.Run(c.Template, func(t *testing.T) {
			got, err := render(c.Template, req)
			if c.OK != nil {
				if err != nil || got != *c.OK {
					t.Errorf("got %q, error %v, want %q", got, err, *c.OK)
				}
				return
			}
			checkError(t, got, err, c.Err)
		})
	}
}

func render(source string, req chattmpl.Request) (string, error) {
	tmpl, err := chattmpl.Parse(source)
	if err != nil {
		return "", err
	}
	return tmpl.Render(req)
}

// sameKind are exceptions that jinja2 leaves to Python's compiler.
var sameKind = map[string]string{"SyntaxError": "TemplateSyntaxError"}

func checkError(t *testing.T, got string, err error, want string) {
	t.Helper()
	kind, _, _ := strings.Cut(want, ": ")
	if k, ok := sameKind[kind]; ok {
		kind = k
	}
	var failed *chattmpl.Error
	var raised *chattmpl.RaiseError
	switch {
	case err == nil:
		t.Errorf("got %q, want error %s", got, want)
	case errors.As(err, &raised):
		if want != "TemplateError: "+raised.Message {
			t.Errorf("got %v, want %s", err, want)
		}
	case errors.As(err, &failed):
		if failed.Kind != kind {
			t.Errorf("got %v, want %s", err, want)
		}
	default:
		t.Errorf("got %v of type %T, want %s", err, err, want)
	}
}
