package blob

import (
	"bytes"
	"strconv"
	"strings"
)

// maxPointer bounds how much of a file is looked at to recognise a pointer;
// the Git LFS specification says that one is shorter than 1024 bytes.
const maxPointer = 1024

// Pointer is what a Git LFS pointer says about the file it stands for.
type Pointer struct {
	OID  string // sha256 of the content, in hex; "" when the pointer has none
	Size int64  // of the content in bytes
}

// ParsePointer recognises a Git LFS pointer by the first bytes of a file.
func ParsePointer(head []byte) (Pointer, bool) {
	var p Pointer
	if len(head) > maxPointer || !bytes.HasPrefix(head, []byte("version https://git-lfs")) && !bytes.HasPrefix(head, []byte("version https://hawser")) {
		return p, false
	}
	for _, line := range strings.Split(string(head), "\n") {
		key, value, _ := strings.Cut(strings.TrimRight(line, "\r"), " ")
		switch key {
		case "oid":
			p.OID = strings.TrimPrefix(value, "sha256:")
		case "size":
			n, err := strconv.ParseInt(value, 10, 64)
			if err != nil || n < 0 {
				return Pointer{}, false
			}
			p.Size = n
		}
	}
	return p, true
}

// IsHTML recognises a web page by the first bytes of a file: an error page
// that was saved under the file's name.
func IsHTML(head []byte) bool {
	head = bytes.ToLower(bytes.TrimLeft(head[:min(len(head), 256)], " \t\r\n\ufeff"))
	return bytes.HasPrefix(head, []byte("<!doctype html")) || bytes.HasPrefix(head, []byte("<html"))
}
