package main

import "golang.org/x/sys/unix"

// totalMemory returns the machine's memory in bytes; 0 when not known.
func totalMemory() int64 {
	n, err := unix.SysctlUint64("hw.memsize")
	if err != nil {
		return 0
	}
	return int64(n)
}

// translated reports a binary that Rosetta runs.
func translated() bool {
	n, err := unix.SysctlUint32("sysctl.proc_translated")
	return err == nil && n == 1
}

// chipName names the processor, "Apple M4" for example; "" when not known.
func chipName() string {
	name, err := unix.Sysctl("machdep.cpu.brand_string")
	if err != nil {
		return ""
	}
	return name
}
