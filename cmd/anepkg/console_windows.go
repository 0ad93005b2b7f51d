package main

import "golang.org/x/sys/windows"

// enableEscapes makes the console of standard output obey escape sequences,
// which older consoles do only when asked.
func enableEscapes() (restore func()) {
	var mode uint32
	out, err := windows.GetStdHandle(windows.STD_OUTPUT_HANDLE)
	if err != nil || windows.GetConsoleMode(out, &mode) != nil {
		return func() {}
	}
	_ = windows.SetConsoleMode(out, mode|windows.ENABLE_PROCESSED_OUTPUT|windows.ENABLE_VIRTUAL_TERMINAL_PROCESSING)
	return func() { _ = windows.SetConsoleMode(out, mode) }
}
