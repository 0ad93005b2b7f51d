package fetch

import (
	"crypto/sha1" //nolint:gosec // git names blobs by SHA-1; it is no protection here but the hub's only name for small files
	"crypto/sha256"
	"encoding/hex"
	"hash"
	"regexp"
	"strconv"
	"strings"
)

var (
	hex64 = regexp.MustCompile(`^[0-9a-f]{64}$`)
	hex40 = regexp.MustCompile(`^[0-9a-f]{40}$`)
)

// Digest is the hub's name for a content: 64 hex digits are the SHA-256 of
// the bytes (LFS and Xet files), 40 are git's blob id, SHA-1 over
// "blob SIZE\x00" and the bytes. Anything else is no digest.
type Digest string

// parseETag takes the digest out of an ETag or X-Linked-Etag header: W/ and
// quotes go; what is not hex is not kept, so that it never becomes a file
// name.
func parseETag(s string) (Digest, bool) {
	s = strings.ToLower(strings.Trim(strings.TrimPrefix(strings.TrimSpace(s), "W/"), `"`))
	d := Digest(s)
	return d, d.Valid()
}

// Valid reports whether d has one of the two forms.
func (d Digest) Valid() bool { return d.IsSHA256() || hex40.MatchString(string(d)) }

// IsSHA256 reports whether d is the SHA-256 of the content.
func (d Digest) IsSHA256() bool { return hex64.MatchString(string(d)) }

// hasher computes the digest of a content while it is written, and its
// SHA-256 in any case.
type hasher struct {
	want Digest
	sha  hash.Hash // sha256
	git  hash.Hash // nil when want is a SHA-256
}

// newHasher starts hashing a content of size bytes that should have digest
// want. The size is part of git's blob id.
func newHasher(want Digest, size int64) *hasher {
	h := &hasher{want: want, sha: sha256.New()}
	if !want.IsSHA256() {
		h.git = sha1.New() //nolint:gosec // see the import
		_, _ = h.git.Write([]byte("blob " + strconv.FormatInt(size, 10) + "\x00"))
	}
	return h
}

func (h *hasher) Write(p []byte) (int, error) {
	_, _ = h.sha.Write(p)
	if h.git != nil {
		_, _ = h.git.Write(p)
	}
	return len(p), nil
}

// got is the digest of what was written, in the form of want.
func (h *hasher) got() Digest {
	if h.git != nil {
		return Digest(hex.EncodeToString(h.git.Sum(nil)))
	}
	return Digest(h.sha256())
}

func (h *hasher) ok() bool { return h.got() == h.want }

func (h *hasher) sha256() string { return hex.EncodeToString(h.sha.Sum(nil)) }
