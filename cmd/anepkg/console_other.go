//go:build !windows

package main

// enableEscapes has nothing to do: terminals know escape sequences.
func enableEscapes() (restore func()) { return func() {} }
