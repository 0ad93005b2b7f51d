package main

import (
	"context"
	"io"
)

// ctxReader ends a read that waits, such as one of standard input, when the
// context ends. The read itself goes on in the background until the process
// ends.
type ctxReader struct {
	ctx  context.Context //nolint:containedctx // io.Reader has no parameter for it
	r    io.Reader
	buf  []byte
	left []byte
	err  error
}

// Read implements io.Reader.
func (c *ctxReader) Read(p []byte) (int, error) {
	if len(c.left) == 0 && c.err == nil {
		c.fill()
	}
	if len(c.left) == 0 {
		return 0, c.err
	}
	n := copy(p, c.left)
	c.left = c.left[n:]
	return n, nil
}

func (c *ctxReader) fill() {
	type result struct {
		n   int
		err error
	}
	if c.buf == nil {
		c.buf = make([]byte, 64<<10)
	}
	done := make(chan result, 1)
	go func() {
		n, err := c.r.Read(c.buf)
		done <- result{n, err}
	}()
	select {
	case <-c.ctx.Done():
		c.err = c.ctx.Err()
	case r := <-done:
		c.left, c.err = c.buf[:r.n], r.err
	}
}
