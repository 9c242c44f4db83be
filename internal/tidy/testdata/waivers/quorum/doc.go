// Package quorum has all that the other rules ask for.
package quorum
