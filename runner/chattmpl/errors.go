package chattmpl

import "fmt"

// Error is an error of a template, with the name of the Python exception that it would be.
type Error struct {
	Line int    // line of the template, 0 if unknown
	Kind string // such as TemplateSyntaxError, UndefinedError or TypeError
	Msg  string
}

// Error implements error.
func (e *Error) Error() string {
	if e.Line == 0 {
		return fmt.Sprintf("chat template: %s: %s", e.Kind, e.Msg)
	}
	return fmt.Sprintf("chat template line %d: %s: %s", e.Line, e.Kind, e.Msg)
}

// RaiseError is what a template raises itself by raise_exception.
type RaiseError struct {
	Line    int
	Message string
}

// Error implements error.
func (e *RaiseError) Error() string {
	return fmt.Sprintf("chat template line %d: raised: %s", e.Line, e.Message)
}

// raise ends the rendering with an error; the line is added by located.
func raise(kind, format string, args ...any) {
	panic(&Error{Kind: kind, Msg: fmt.Sprintf(format, args...)})
}

// recoverError turns a panic with a template error into *err.
func recoverError(err *error) {
	switch r := recover().(type) {
	case nil:
	case *Error:
		*err = r
	case *RaiseError:
		*err = r
	default:
		panic(r)
	}
}

// located adds the line that is being executed to an error.
func (x *exec) located(r any) any {
	switch e := r.(type) {
	case *Error:
		if e.Line == 0 {
			e.Line = x.line
		}
	case *RaiseError:
		if e.Line == 0 {
			e.Line = x.line
		}
	}
	return r
}
