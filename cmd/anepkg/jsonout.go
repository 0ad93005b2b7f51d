package main

import (
	"bytes"
	"encoding"
	"encoding/json"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// writeJSON prints one JSON object to standard output: the schema first,
// then the members of v, which must be a struct or a pointer to one.
func (t *tool) writeJSON(schema string, v any) {
	e := encoder{indent: true}
	e.object(schema, reflect.ValueOf(v), 0)
	e.buf.WriteByte('\n')
	_, _ = t.stdout.Write(e.buf.Bytes())
}

// compactJSON is writeJSON's form on a single line, without a schema.
func compactJSON(v any) []byte {
	var e encoder
	e.value(reflect.ValueOf(v), 0)
	return e.buf.Bytes()
}

// encoder writes JSON as encoding/json does, with four differences that the
// command's contract asks for: NaN and infinities become null, nil slices and
// maps become [] and {}, nothing is escaped for HTML, and lists of plain
// values stay on one line.
type encoder struct {
	buf    bytes.Buffer
	indent bool
}

var (
	jsonMarshaler = reflect.TypeFor[json.Marshaler]()
	textMarshaler = reflect.TypeFor[encoding.TextMarshaler]()
)

func (e *encoder) value(v reflect.Value, depth int) {
	if !v.IsValid() {
		e.buf.WriteString("null")
		return
	}
	if (v.Type().Implements(jsonMarshaler) || v.Type().Implements(textMarshaler)) && (v.Kind() != reflect.Pointer || !v.IsNil()) {
		e.marshal(v)
		return
	}
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		if v.IsNil() {
			e.buf.WriteString("null")
			return
		}
		e.value(v.Elem(), depth)
	case reflect.Float32, reflect.Float64:
		e.number(v)
	case reflect.Slice, reflect.Array:
		e.list(v, depth)
	case reflect.Map:
		e.mapping(v, depth)
	case reflect.Struct:
		e.object("", v, depth)
	default:
		e.marshal(v)
	}
}

func (e *encoder) marshal(v reflect.Value) {
	if v.Kind() == reflect.String {
		e.text(v.String())
		return
	}
	data, err := json.Marshal(v.Interface())
	if err != nil { // a marshaler of its own that fails, or a func: our bug
		panic(err)
	}
	e.buf.Write(data)
}

func (e *encoder) text(s string) {
	enc := json.NewEncoder(&e.buf)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(s) // a string always encodes
	e.buf.Truncate(e.buf.Len() - 1)
}

func (e *encoder) number(v reflect.Value) {
	f := v.Float()
	if math.IsNaN(f) || math.IsInf(f, 0) {
		e.buf.WriteString("null")
		return
	}
	bits := v.Type().Bits()
	form := byte('f')
	if a := math.Abs(f); a != 0 && (a < 1e-6 || a >= 1e21) {
		form = 'e'
	}
	e.buf.WriteString(strconv.FormatFloat(f, form, -1, bits))
}

func (e *encoder) list(v reflect.Value, depth int) {
	nested := false
	for i := range v.Len() {
		switch el := v.Index(i); el.Kind() {
		case reflect.Struct, reflect.Map, reflect.Pointer, reflect.Interface:
			nested = true
		default:
		}
	}
	e.buf.WriteByte('[')
	for i := range v.Len() {
		e.separate(i, nested, depth+1)
		e.value(v.Index(i), depth+1)
	}
	if v.Len() > 0 && nested {
		e.newline(depth)
	}
	e.buf.WriteByte(']')
}

func (e *encoder) mapping(v reflect.Value, depth int) {
	keys := v.MapKeys()
	slices.SortFunc(keys, func(a, b reflect.Value) int { return strings.Compare(a.String(), b.String()) })
	e.buf.WriteByte('{')
	for i, k := range keys {
		e.separate(i, true, depth+1)
		e.key(k.String())
		e.value(v.MapIndex(k), depth+1)
	}
	if len(keys) > 0 {
		e.newline(depth)
	}
	e.buf.WriteByte('}')
}

// object writes the members of a struct, after a schema member unless schema
// is "".
func (e *encoder) object(schema string, v reflect.Value, depth int) {
	for v.Kind() == reflect.Pointer {
		v = v.Elem()
	}
	e.buf.WriteByte('{')
	n := 0
	if schema != "" {
		e.separate(n, true, depth+1)
		e.key("schema")
		e.text(schema)
		n++
	}
	e.fields(v, depth, &n, schema != "")
	if n > 0 {
		e.newline(depth)
	}
	e.buf.WriteByte('}')
}

func (e *encoder) fields(v reflect.Value, depth int, n *int, hasSchema bool) {
	for i := range v.NumField() {
		f := v.Type().Field(i)
		name, opts, _ := strings.Cut(f.Tag.Get("json"), ",")
		if f.Anonymous && name == "" && f.Type.Kind() == reflect.Struct {
			e.fields(v.Field(i), depth, n, hasSchema)
			continue
		}
		if name == "-" || !f.IsExported() || hasSchema && name == "schema" {
			continue
		}
		if name == "" {
			name = f.Name
		}
		if strings.Contains(opts, "omitempty") && empty(v.Field(i)) || strings.Contains(opts, "omitzero") && v.Field(i).IsZero() {
			continue
		}
		e.separate(*n, true, depth+1)
		e.key(name)
		e.value(v.Field(i), depth+1)
		*n++
	}
}

// empty is what encoding/json means by omitempty.
func empty(v reflect.Value) bool {
	switch v.Kind() {
	case reflect.Array, reflect.Map, reflect.Slice, reflect.String:
		return v.Len() == 0
	case reflect.Struct:
		return false
	default:
		return v.IsZero()
	}
}

func (e *encoder) key(name string) {
	e.text(name)
	e.buf.WriteByte(':')
	if e.indent {
		e.buf.WriteByte(' ')
	}
}

func (e *encoder) separate(i int, line bool, depth int) {
	if i > 0 {
		e.buf.WriteByte(',')
	}
	switch {
	case line:
		e.newline(depth)
	case i > 0 && e.indent:
		e.buf.WriteByte(' ')
	}
}

func (e *encoder) newline(depth int) {
	if e.indent {
		e.buf.WriteByte('\n')
		for range depth {
			e.buf.WriteString("  ")
		}
	}
}
