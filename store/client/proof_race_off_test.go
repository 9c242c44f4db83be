//go:build !race

package client_test

// proofSeeds is how many seeds are played.
const proofSeeds = "60"
