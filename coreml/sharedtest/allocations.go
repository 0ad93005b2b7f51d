package sharedtest

import "runtime"

// Allocations runs step warm times, and then counts what it allocates: the
// mean number and bytes of times more runs, of all goroutines.
func Allocations(warm, times int, step func()) (count, bytes uint64) {
	for range warm {
		step()
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range times {
		step()
	}
	runtime.ReadMemStats(&after)
	n := uint64(times)
	return (after.Mallocs - before.Mallocs) / n, (after.TotalAlloc - before.TotalAlloc) / n
}
