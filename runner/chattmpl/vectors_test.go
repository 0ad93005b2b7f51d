package chattmpl_test

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/anepkg/anepkg/coreml/sharedtest"
	"github.com/anepkg/anepkg/runner/chattmpl"
)

func read(t testing.TB, path ...string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(path...))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// outcome is what jinja2 made of a template and a request: text or an exception.
type outcome struct {
	OK  *string `json:"ok"`
	Err string  `json:"err"`
}

// oracleDay is the day on which the expected texts were made.
func oracleDay() time.Time { return time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC) }

func TestVectors(t *testing.T) {
	dir := sharedtest.Path(t, "vectors/chat-template")
	var want map[string]map[string]outcome
	if err := json.Unmarshal(read(t, dir, "expected.json"), &want); err != nil {
		t.Fatal(err)
	}
	decoded, err := chattmpl.DecodeJSON(read(t, dir, "requests.json"))
	if err != nil {
		t.Fatal(err)
	}
	requests := decoded.(*chattmpl.OrderedMap)
	if len(want) < 17 || requests.Len() < 15 {
		t.Fatalf("got %d templates and %d requests, want at least 17 and 15", len(want), requests.Len())
	}
	for name, cases := range want {
		t.Run(name, func(t *testing.T) {
			tmpl, err := chattmpl.Parse(string(read(t, dir, "templates", name)))
			if err != nil {
				t.Fatal(err)
			}
			for _, key := range requests.Keys() {
				t.Run(key, func(t *testing.T) {
					v, _ := requests.Get(key)
					checkOutcome(t, tmpl, v.(*chattmpl.OrderedMap), cases[key])
				})
			}
		})
	}
}

func checkOutcome(t *testing.T, tmpl *chattmpl.Template, values *chattmpl.OrderedMap, want outcome) {
	t.Helper()
	got, err := tmpl.Render(chattmpl.Request{Values: values, Now: oracleDay})
	if want.OK != nil {
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(*want.OK, got); diff != "" {
			t.Errorf("(-jinja2 +got)\n%s", diff)
		}
		return
	}
	kind, msg, _ := strings.Cut(want.Err, ": ")
	var raised *chattmpl.RaiseError
	var failed *chattmpl.Error
	switch {
	case errors.As(err, &raised):
		if kind != "TemplateError" || raised.Message != msg {
			t.Errorf("got %v, want %s", err, want.Err)
		}
	case errors.As(err, &failed):
		if failed.Kind != kind || failed.Msg != msg {
			t.Errorf("got %s: %s, want %s", failed.Kind, failed.Msg, want.Err)
		}
		if failed.Line == 0 {
			t.Errorf("error %v has no line", err)
		}
	default:
		t.Errorf("got %q and error %v, want %s", got, err, want.Err)
	}
}
