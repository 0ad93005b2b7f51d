package inspect

import (
	"fmt"
	"io"
	"slices"
	"strings"
)

// writeRuntimes prints what the known runtimes would use: the keys that they
// do not agree about, and those where a default stands in for a value. The
// JSON lists every key of every runtime.
func (r *Report) writeRuntimes(w io.Writer, s style) {
	if len(r.Runtimes) == 0 {
		return
	}
	t := &table{head: []string{"key", "runtime", "value", "from"}}
	var names []string
	seen := map[string]bool{}
	for _, v := range r.Runtimes {
		if !slices.Contains(names, v.Runtime) {
			names = append(names, v.Runtime)
		}
		if seen[v.Key] {
			continue
		}
		seen[v.Key] = true
		views := viewsOf(r.Runtimes, v.Key)
		if !worthShowing(views) {
			continue
		}
		key := v.Key
		for _, x := range views {
			t.add(key, x.Runtime, runtimeValue(x.Value), x.Source)
			key = ""
		}
	}
	list := strings.Join(names, ", ")
	if len(t.rows) == 0 {
		fmt.Fprintf(w, "\n%s  %s\n", s.in(bold, "Runtimes"), s.in(dim, list+": all read the same values (--json lists them)"))
		return
	}
	fmt.Fprintf(w, "\n%s  %s\n", s.in(bold, "Runtimes"), s.in(dim, list+": where they differ or fall back to a default (--json lists all)"))
	t.write(w, s, "  ")
}

func viewsOf(all []RuntimeView, key string) (out []RuntimeView) {
	for _, v := range all {
		if v.Key == key {
			out = append(out, v)
		}
	}
	return out
}

// worthShowing reports whether the runtimes take different values of a key,
// or one takes a default that no file tells.
func worthShowing(views []RuntimeView) bool {
	for _, v := range views {
		if runtimeValue(v.Value) != runtimeValue(views[0].Value) {
			return true
		}
		if v.Value != nil && strings.Contains(v.Source, "default") {
			return true
		}
	}
	return false
}

// runtimeValue is a value as the table shows it. The text none and a value
// that no runtime takes are both "none".
func runtimeValue(v any) string {
	if v == nil {
		return "none"
	}
	return fmt.Sprint(v)
}
