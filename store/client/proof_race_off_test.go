//go:build !race

package client_test

const raceDetector = false

// proofSeeds is how many seeds are played.
const proofSeeds = "60"
