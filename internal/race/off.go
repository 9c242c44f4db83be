//go:build !race

package race

// Enabled tells whether the race detector watches.
const Enabled = false
