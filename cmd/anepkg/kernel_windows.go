package main

import (
	"fmt"

	"golang.org/x/sys/windows"
)

// kernelVersion names the system and its build.
func kernelVersion() string {
	v := windows.RtlGetVersion()
	return fmt.Sprintf("Windows %d.%d build %d", v.MajorVersion, v.MinorVersion, v.BuildNumber)
}
