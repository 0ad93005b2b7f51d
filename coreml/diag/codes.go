package diag

import "errors"

// Code is the class of an error. The command line turns it into an exit
// status and prints it as error.code in JSON.
type Code string

// The classes. The exit status of each stands in docs/cli.md.
const (
	Usage       Code = "usage"        // the caller asked for something that makes no sense
	NotFound    Code = "not_found"    // a file, function, tensor or name is absent
	Malformed   Code = "malformed"    // bytes that do not follow their format, or are cut short
	IO          Code = "io"           // the operating system or the network failed
	Unsupported Code = "unsupported"  // well-formed, but nothing here can handle it
	RunFailed   Code = "run_failed"   // a prediction or generation went wrong
	Auth        Code = "auth"         // missing or refused authorisation
	Mismatch    Code = "mismatch"     // two things that must agree do not
	Interrupted Code = "interrupted"  // cancelled by the user
	LFSPointer  Code = "lfs_pointer"  // a Git LFS pointer stands where a file should be
	TooLarge    Code = "too_large"    // a bound that guards memory or time was hit
	Context     Code = "context_full" // more positions than the context length
)

// Sentinels for errors.Is; an Error with the matching Code wraps each.
var (
	// ErrNotFound: a file, function, tensor or name is absent.
	ErrNotFound = errors.New("not found")
	// ErrMalformed: bytes do not follow their format.
	ErrMalformed = errors.New("malformed")
	// ErrUnsupported: well-formed, but nothing here can handle it.
	ErrUnsupported = errors.New("not supported")
	// ErrRunFailed: a prediction or generation went wrong.
	ErrRunFailed = errors.New("run failed")
	// ErrLFSPointer: a Git LFS pointer stands where a file should be.
	ErrLFSPointer = errors.New("git lfs pointer instead of the file")
)

func (c Code) sentinel() error {
	switch c {
	case NotFound:
		return ErrNotFound
	case Malformed:
		return ErrMalformed
	case Unsupported:
		return ErrUnsupported
	case RunFailed:
		return ErrRunFailed
	case LFSPointer:
		return ErrLFSPointer
	}
	return nil
}

// CodeOf returns the code of the first Error in err's tree, or "".
func CodeOf(err error) Code {
	if err == nil {
		return ""
	}
	var e *Error
	if errors.As(err, &e) {
		return e.Code
	}
	return ""
}
