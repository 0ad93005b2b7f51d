//go:build !linux && !darwin && !windows

package main

// totalMemory is not known on this system.
func totalMemory() int64 { return 0 }

// translated reports a binary of another processor's code.
func translated() bool { return false }

// chipName is not known on this system.
func chipName() string { return "" }
