//go:build race

package spectree

const raceEnabled = true
