// Package fstest plays random programs on simulated clients and a server of a file system, and
// judges what they were shown: it must be what they would have seen one after another.
package fstest
