package fetch

import (
	"errors"
	"fmt"
	"time"

	"github.com/anepkg/anepkg/coreml/diag"
)

// Sentinels for errors.Is. Every error of this package is a *diag.Error whose
// class decides the exit status; these tell the causes inside a class apart.
var (
	// ErrOffline: a request would be needed, and requests are forbidden.
	ErrOffline = errors.New("offline")
	// ErrUnreachable: the hub cannot be reached (name, route, certificate).
	ErrUnreachable = errors.New("hub cannot be reached")
	// ErrRateLimited: the hub asks for a longer pause than allowed (429).
	ErrRateLimited = errors.New("rate limited")
	// ErrServer: the hub failed (5xx).
	ErrServer = errors.New("hub failed")
	// ErrNoToken: a private or gated repository, and no token was sent.
	ErrNoToken = errors.New("no token")
	// ErrBadToken: the hub does not know the token, or it has too few rights.
	ErrBadToken = errors.New("token refused")
	// ErrNotAccepted: gated, and this user has not accepted the terms.
	ErrNotAccepted = errors.New("terms not accepted")
	// ErrPending: gated, and the request awaits an answer.
	ErrPending = errors.New("access request pending")
	// ErrDenied: gated, and the owner refused.
	ErrDenied = errors.New("access denied")
	// ErrRepoNotFound: no such repository, or private.
	ErrRepoNotFound = errors.New("repository not found")
	// ErrRevisionNotFound: no such branch, tag or commit.
	ErrRevisionNotFound = errors.New("revision not found")
	// ErrFileNotFound: no such file at that commit.
	ErrFileNotFound = errors.New("file not found")
	// ErrEmpty: the repository or folder holds no file.
	ErrEmpty = errors.New("no files")
	// ErrHTML: a web page came instead of a file or of data.
	ErrHTML = errors.New("web page instead of the file")
	// ErrTruncated: the connection kept ending before the file did.
	ErrTruncated = errors.New("transfer cut short")
	// ErrDigest: the bytes that came are not the ones that the hub names.
	ErrDigest = errors.New("wrong hash")
	// ErrChanged: size or content differ from what was listed.
	ErrChanged = errors.New("content changed")
	// ErrDiskFull: not enough free space.
	ErrDiskFull = errors.New("disk full")
)

// subject is what a request is about.
type subject struct {
	ref  Ref
	file string // "" for the repository as a whole
}

// String names the subject in a message.
func (s subject) String() string {
	if s.file == "" {
		return s.ref.Repo
	}
	return s.ref.Repo + "/" + s.file
}

// statusError is an answer of status 4xx or 5xx.
type statusError struct {
	status     int
	code       string // X-Error-Code
	message    string // X-Error-Message, made printable
	retryAfter time.Duration
	html       bool
	fromHub    bool // not from a storage server
}

func (e *statusError) Error() string {
	if e.message != "" {
		return fmt.Sprintf("status %d: %s", e.status, e.message)
	}
	return fmt.Sprintf("status %d", e.status)
}

// brokenError is an answer whose body cannot be used.
type brokenError struct {
	kind     error // one of the sentinels
	msg      string
	progress bool // more is there than ever before: try again at once
	final    bool // trying again cannot help
}

func (e *brokenError) Error() string { return e.msg }
func (e *brokenError) Unwrap() error { return e.kind }

// fail makes an error of this package.
func fail(code diag.Code, kind error, format string, args ...any) *diag.Error {
	e := diag.Errorf(diag.Pos{}, code, format, args...)
	e.Err = errors.Join(kind, e.Err)
	return e
}

func errOffline(s subject) error {
	return fail(diag.IO, ErrOffline, "%s: not in the cache, and offline mode is on", s).
		WithHint("go online (unset HF_HUB_OFFLINE, leave --offline out) and fetch it once")
}
