package fetch

import (
	"context"
	"errors"
	"io"
	"sync/atomic"
	"time"
)

// errSilent ends a request whose server says nothing any more.
var errSilent = errors.New("the server went silent")

// guardedBody ends a read that brings no byte for limit, and counts.
type guardedBody struct {
	rc     io.ReadCloser
	cause  func() error // why the request was cancelled
	cancel context.CancelCauseFunc
	timer  *time.Timer
	limit  time.Duration
	count  *atomic.Int64
	own    int64 // bytes of this body
}

func (b *guardedBody) Read(p []byte) (int, error) {
	b.timer.Reset(b.limit)
	n, err := b.rc.Read(p)
	b.timer.Stop()
	b.own += int64(n)
	b.count.Add(int64(n))
	if err != nil && !errors.Is(err, io.EOF) {
		if cause := b.cause(); cause != nil {
			err = cause
		}
	}
	return n, err
}

func (b *guardedBody) Close() error {
	b.timer.Stop()
	err := b.rc.Close()
	b.cancel(nil)
	return err
}
