// Package storeconfig reads, checks and writes the files of a store: store.json, which says what
// the store consists of and is the same everywhere, one file for each machine, and client.json.
// Errors name the file, the line and the field. [Init] makes the files of a new store, [Advance]
// those of the next epoch, when a site is fenced or replaced.
package storeconfig
