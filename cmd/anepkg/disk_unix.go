//go:build unix

package main

import "golang.org/x/sys/unix"

// freeDisk returns the bytes that this user may still write at a folder.
func freeDisk(dir string) (int64, error) {
	var s unix.Statfs_t
	if err := unix.Statfs(dir, &s); err != nil {
		return 0, err
	}
	return int64(uint64(s.Bavail) * uint64(s.Bsize)), nil //nolint:unconvert // types differ between systems
}

// kernelVersion names the system as uname does.
func kernelVersion() string {
	var u unix.Utsname
	if err := unix.Uname(&u); err != nil {
		return ""
	}
	return unix.ByteSliceToString(u.Sysname[:]) + " " + unix.ByteSliceToString(u.Release[:])
}
