// Package storeconfig has the files that the commands of foresay store are configured by: one that says what a store consists of, which all of it share, one for each
// machine, and one for clients. It makes them, and those of the next epoch when a site is lost.
package storeconfig
