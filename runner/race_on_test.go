//go:build race

package runner

// raceOn: the race detector allocates, and empties pools at random.
const raceOn = true
