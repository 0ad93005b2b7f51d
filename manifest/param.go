package manifest

import (
	"github.com/anepkg/anepkg/coreml/diag"
	"strconv"
	"strings"
)

// Int returns the value as an integer; a quoted integer counts.
func (p *Param) Int() (int, bool) {
	if p == nil {
		return 0, false
	}
	switch v := p.Value.(type) {
	case int:
		return v, true
	case float64:
		if v == float64(int(v)) {
			return int(v), true
		}
	case string:
		if n, err := strconv.Atoi(strings.TrimSpace(v)); err == nil {
			return n, true
		}
	}
	return 0, false
}

// Bool returns the value as a bool; quoted "true" and "false" count.
func (p *Param) Bool() (val, ok bool) {
	if p == nil {
		return false, false
	}
	switch v := p.Value.(type) {
	case bool:
		return v, true
	case string:
		switch strings.ToLower(strings.TrimSpace(v)) {
		case "true":
			return true, true
		case "false":
			return false, true
		}
	}
	return false, false
}

// Float returns the value as a number; a quoted number counts.
func (p *Param) Float() (float64, bool) {
	if p == nil {
		return 0, false
	}
	switch v := p.Value.(type) {
	case int:
		return float64(v), true
	case float64:
		return v, true
	case string:
		if f, err := strconv.ParseFloat(strings.TrimSpace(v), 64); err == nil {
			return f, true
		}
	}
	return 0, false
}

// Str returns a scalar as text; false for null, lists and maps.
func (p *Param) Str() (string, bool) {
	if p == nil {
		return "", false
	}
	switch v := p.Value.(type) {
	case string:
		return v, true
	case int, float64, bool:
		return p.Raw, true
	}
	return "", false
}

// Ints returns a list of integers; a comma-separated string counts, as
// ANEMLL's readers accept it for lm_head_chunk_sizes.
func (p *Param) Ints() ([]int, bool) {
	if p == nil {
		return nil, false
	}
	var out []int
	switch v := p.Value.(type) {
	case []any:
		for _, e := range v {
			n, ok := e.(int)
			if !ok {
				return nil, false
			}
			out = append(out, n)
		}
		return out, true
	case string:
		for _, f := range strings.Split(strings.Trim(v, "[] "), ",") {
			n, err := strconv.Atoi(strings.TrimSpace(f))
			if err != nil {
				return nil, false
			}
			out = append(out, n)
		}
		return out, true
	case int:
		return []int{v}, true
	}
	return nil, false
}

// Member returns the member called key of a map value, or nil.
func (p *Param) Member(key string) *Param {
	if p == nil {
		return nil
	}
	return Params(p.Elems).Get(key)
}

// At returns the parameter's position, or fallback when it is nil.
func (p *Param) At(fallback diag.Pos) diag.Pos {
	if p == nil {
		return fallback
	}
	return p.Pos
}
