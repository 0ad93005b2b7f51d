//go:build unix

package main

import (
	"runtime"
	"syscall"
)

// peakRSS returns the largest resident size of this process in bytes, memory
// maps included; 0 when the system does not tell.
func peakRSS() int64 {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	if runtime.GOOS == "darwin" || runtime.GOOS == "ios" {
		return int64(u.Maxrss) //nolint:unconvert // int32 on some systems; bytes there, kilobytes elsewhere
	}
	return int64(u.Maxrss) << 10 //nolint:unconvert // as above
}
