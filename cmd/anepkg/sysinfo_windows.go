package main

import (
	"strings"
	"unsafe"

	"golang.org/x/sys/windows"
	"golang.org/x/sys/windows/registry"
)

// memoryStatus is MEMORYSTATUSEX.
type memoryStatus struct {
	length, load                                                                      uint32
	total, available, totalPage, availablePage, totalVirtual, availableVirtual, extra uint64
}

var globalMemoryStatus = windows.NewLazySystemDLL("kernel32.dll").NewProc("GlobalMemoryStatusEx")

// totalMemory returns the machine's memory in bytes; 0 when not known.
func totalMemory() int64 {
	var s memoryStatus
	s.length = uint32(unsafe.Sizeof(s))
	if globalMemoryStatus.Find() != nil {
		return 0
	}
	if ok, _, _ := globalMemoryStatus.Call(uintptr(unsafe.Pointer(&s))); ok == 0 { //nolint:gosec // the way to call the system
		return 0
	}
	return int64(s.total)
}

// chipName names the processor; "" when not known.
func chipName() string {
	k, err := registry.OpenKey(registry.LOCAL_MACHINE, `HARDWARE\DESCRIPTION\System\CentralProcessor\0`, registry.QUERY_VALUE)
	if err != nil {
		return ""
	}
	defer k.Close() //nolint:errcheck // only read from
	name, _, err := k.GetStringValue("ProcessorNameString")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(name)
}

// translated reports a binary of another processor's code.
func translated() bool { return false }
