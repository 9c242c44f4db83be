// Package storedeploy has stores and their clients in the simulator, for tests, benchmarks and
// measurements: the nodes of a layout at the sites of a network, clients at some of them, and calls
// that are counted. It is to package store what smr/smrsim is to package smr.
package storedeploy
