// Package diag holds the positions and errors that every parser, check and
// backend of anepkg speaks.
//
// Files: diag.go (Pos, Error, List), codes.go (error codes and sentinels).
package diag

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Pos names a place in an input file. Line and Col are 1-based; Col counts
// bytes. Text inputs set Line; binary inputs set Binary and Offset and leave
// Line zero. The zero Pos means "no position".
type Pos struct {
	File      string // path inside the package, slash separated
	Line, Col int
	Offset    int64 // meaningful when Binary is set
	Binary    bool
}

// String prints file:line:col, file:0xoffset or file, whichever is known.
func (p Pos) String() string {
	switch {
	case p.File == "":
		return "-"
	case p.Binary:
		return fmt.Sprintf("%s:%#x", p.File, p.Offset)
	case p.Line > 0 && p.Col > 0:
		return fmt.Sprintf("%s:%d:%d", p.File, p.Line, p.Col)
	case p.Line > 0:
		return fmt.Sprintf("%s:%d", p.File, p.Line)
	}
	return p.File
}

// IsZero reports whether p names no place.
func (p Pos) IsZero() bool { return p == Pos{} }

// In returns the position of file as a whole.
func In(file string) Pos { return Pos{File: file} }

// AtOffset returns a position in a binary file.
func AtOffset(file string, off int64) Pos { return Pos{File: file, Offset: off, Binary: true} }

// Error is one problem at one place.
type Error struct {
	Pos  Pos
	Code Code   // class of the problem; decides the exit status
	Msg  string // what is wrong: got and want, no position, no full stop
	Hint string // one action that may help; may be empty
	Err  error  // cause, for errors.Is; may be nil
}

// Error returns "position: message", or the message alone without a position.
func (e *Error) Error() string {
	if e.Pos.IsZero() {
		return e.Msg
	}
	return e.Pos.String() + ": " + e.Msg
}

// Unwrap returns the cause and the sentinel that belongs to the code.
func (e *Error) Unwrap() []error {
	var out []error
	if e.Err != nil {
		out = append(out, e.Err)
	}
	if s := e.Code.sentinel(); s != nil {
		out = append(out, s)
	}
	return out
}

// WithHint sets the hint and returns e.
func (e *Error) WithHint(format string, args ...any) *Error {
	e.Hint = fmt.Sprintf(format, args...)
	return e
}

// Errorf makes an Error of class code at pos. A %w verb keeps the cause.
func Errorf(pos Pos, code Code, format string, args ...any) *Error {
	err := fmt.Errorf(format, args...)
	return &Error{Pos: pos, Code: code, Msg: err.Error(), Err: errors.Unwrap(err)}
}

// List is a set of errors.
type List []*Error

// Error describes the first problem and counts the rest.
func (l List) Error() string {
	switch len(l) {
	case 0:
		return "no errors"
	case 1:
		return l[0].Error()
	}
	return fmt.Sprintf("%s (and %d more errors)", l[0], len(l)-1)
}

// Unwrap lets errors.Is and errors.As look at every member.
func (l List) Unwrap() []error {
	out := make([]error, len(l))
	for i, e := range l {
		out[i] = e
	}
	return out
}

// Err returns l sorted by place and without repeats, or nil when l is empty.
func (l List) Err() error {
	if len(l) == 0 {
		return nil
	}
	l = slices.Clone(l)
	slices.SortStableFunc(l, func(a, b *Error) int {
		return cmp.Or(strings.Compare(a.Pos.File, b.Pos.File), cmp.Compare(a.Pos.Line, b.Pos.Line),
			cmp.Compare(a.Pos.Col, b.Pos.Col), cmp.Compare(a.Pos.Offset, b.Pos.Offset), strings.Compare(a.Msg, b.Msg))
	})
	return slices.CompactFunc(l, func(a, b *Error) bool { return a.Pos == b.Pos && a.Msg == b.Msg })
}
