// Package bftdeploy has groups of package bft's family in the simulator, with the blocking clients
// of package bft/client in goroutines beside it: for tests and measurements of programs that
// speculate. It is to package bft what store/storedeploy is to package store.
package bftdeploy
