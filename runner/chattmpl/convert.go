package chattmpl

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/big"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// maxDepth bounds the nesting of values.
const maxDepth = 500

// DecodeJSON decodes JSON into values for a Request: objects keep the order of their keys (*OrderedMap), arrays are
// []any, and whole numbers stay integers (int64, or *big.Int when they do not fit).
func DecodeJSON(data []byte) (any, error) {
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	v, err := decodeValue(d, 0)
	if err != nil {
		return nil, fmt.Errorf("byte %d: %w", d.InputOffset(), err)
	}
	if _, err := d.Token(); err != io.EOF {
		return nil, fmt.Errorf("byte %d: got more after the end of the value", d.InputOffset())
	}
	return v, nil
}

func decodeValue(d *json.Decoder, depth int) (any, error) {
	if depth > maxDepth {
		return nil, fmt.Errorf("nesting is over %d levels", maxDepth)
	}
	t, err := d.Token()
	if err != nil {
		return nil, err
	}
	switch t := t.(type) {
	case json.Delim:
		if t == '{' {
			return decodeObject(d, depth)
		}
		list := []any{}
		for d.More() {
			v, err := decodeValue(d, depth+1)
			if err != nil {
				return nil, err
			}
			list = append(list, v)
		}
		_, err := d.Token()
		return list, err
	case json.Number:
		return decodeNumber(t.String())
	}
	return t, nil
}

func decodeObject(d *json.Decoder, depth int) (any, error) {
	m := NewMap()
	for d.More() {
		k, err := d.Token()
		if err != nil {
			return nil, err
		}
		v, err := decodeValue(d, depth+1)
		if err != nil {
			return nil, err
		}
		m.set(k, v)
	}
	_, err := d.Token()
	return m, err
}

func decodeNumber(s string) (any, error) {
	if strings.ContainsAny(s, ".eE") {
		f, err := strconv.ParseFloat(s, 64)
		if err != nil && !isRange(err) {
			return nil, err
		}
		return f, nil
	}
	if len(s) > 4300 {
		return nil, fmt.Errorf("integer has %d digits, want at most 4300", len(s))
	}
	n, ok := new(big.Int).SetString(s, 10)
	if !ok {
		return nil, fmt.Errorf("got number %q", s)
	}
	return normalInt(n), nil
}

func isRange(err error) bool {
	n := &strconv.NumError{}
	ok := errors.As(err, &n)
	return ok && errors.Is(n.Err, strconv.ErrRange)
}

// convert turns a Go value into a template value.
func convert(v any, depth int) any {
	if depth > maxDepth {
		raise("RecursionError", "value is nested over %d levels", maxDepth)
	}
	switch t := v.(type) {
	case nil, bool, int64, float64, string:
		return t
	case *big.Int:
		return normalInt(t)
	case json.Number:
		n, err := decodeNumber(t.String())
		if err != nil {
			raise("ValueError", "%v", err)
		}
		return n
	case *OrderedMap:
		out := NewMap()
		for i, k := range t.keys {
			out.set(k, convert(t.vals[i], depth+1))
		}
		return out
	case Message:
		out := NewMap()
		out.set("role", t.Role)
		out.set("content", t.Content)
		return out
	}
	return convertOther(reflect.ValueOf(v), depth)
}

func convertOther(v reflect.Value, depth int) any {
	switch v.Kind() {
	case reflect.Bool:
		return v.Bool()
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return v.Int()
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uintptr:
		return normalInt(new(big.Int).SetUint64(v.Uint()))
	case reflect.Float32, reflect.Float64:
		return v.Float()
	case reflect.String:
		return v.String()
	case reflect.Slice, reflect.Array:
		out := make([]any, v.Len())
		for i := range out {
			out[i] = convert(v.Index(i).Interface(), depth+1)
		}
		return out
	case reflect.Map:
		if v.Type().Key().Kind() != reflect.String {
			break
		}
		keys := v.MapKeys()
		slices.SortFunc(keys, func(a, b reflect.Value) int { return strings.Compare(a.String(), b.String()) })
		out := NewMap()
		for _, k := range keys {
			out.set(k.String(), convert(v.MapIndex(k).Interface(), depth+1))
		}
		return out
	case reflect.Pointer, reflect.Interface:
		if v.IsNil() {
			return nil
		}
		return convert(v.Elem().Interface(), depth+1)
	}
	raise("TypeError", "Go value of type %s cannot be used in a template", v.Type())
	return nil
}
