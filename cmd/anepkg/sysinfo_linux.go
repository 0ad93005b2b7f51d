package main

import "golang.org/x/sys/unix"

// totalMemory returns the machine's memory in bytes; 0 when not known.
func totalMemory() int64 {
	var s unix.Sysinfo_t
	if err := unix.Sysinfo(&s); err != nil {
		return 0
	}
	return int64(uint64(s.Totalram) * uint64(s.Unit)) //nolint:unconvert // 32 bits wide on some processors
}

// translated reports a binary of another processor's code.
func translated() bool { return false }

// chipName is left to the CPU engine, which reads it where Linux keeps it.
func chipName() string { return "" }
