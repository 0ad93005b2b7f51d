//go:build race

package cpu_test

// raceOn: the race detector allocates, and empties pools at random.
const raceOn = true
