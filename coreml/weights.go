package coreml

// Weights is filled in by open.go.
type Weights struct{}
