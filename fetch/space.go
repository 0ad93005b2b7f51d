package fetch

// FreeSpace returns the bytes that the user may still write on the disk that
// holds the folder dir, which must exist. On systems that do not tell it is
// errors.ErrUnsupported.
func FreeSpace(dir string) (int64, error) {
	n, err := freeSpace(dir)
	return n, ioErr(dir, err)
}
