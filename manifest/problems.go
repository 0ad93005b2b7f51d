package manifest

import (
	"errors"

	"github.com/anepkg/anepkg/coreml/diag"
)

// The causes of Package.Problems, for errors.Is.
var (
	// ErrSyntax: a description file does not parse.
	ErrSyntax = errors.New("syntax error")
	// ErrBOM: a JSON file begins with a byte order mark; it was read.
	ErrBOM = errors.New("byte order mark")
	// ErrNaN: a JSON file has NaN or Infinity; it was read.
	ErrNaN = errors.New("no number in JSON")
	// ErrDuplicateKey: a key stands twice in one map; the last one counts.
	ErrDuplicateKey = errors.New("duplicate key")
	// ErrStructure: model_info or model_info.parameters is missing.
	ErrStructure = errors.New("wrong structure")
	// ErrMissingConfig: the files look like a package, its description file
	// is absent.
	ErrMissingConfig = errors.New("description file is missing")
	// ErrEscape: a claimed file name leaves the package folder.
	ErrEscape = errors.New("path leaves the package")
	// ErrZipped: a part is there only as a zip archive.
	ErrZipped = errors.New("part is still zipped")
	// ErrOtherName: a part was found under another name than claimed.
	ErrOtherName = errors.New("part has another name")
	// ErrExtraChunk: a chunk file that does not fit the numbering.
	ErrExtraChunk = errors.New("chunk does not fit the numbering")
)

// problem appends one problem to the package.
func (p *Package) problem(pos diag.Pos, code diag.Code, cause error, msg, hint string) {
	p.Problems = append(p.Problems, &diag.Error{Pos: pos, Code: code, Msg: msg, Hint: hint, Err: cause})
}
