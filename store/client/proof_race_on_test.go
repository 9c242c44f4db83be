//go:build race

package client_test

const raceDetector = true

// proofSeeds is how many seeds are played: few, as the race detector takes its time.
const proofSeeds = "6"
