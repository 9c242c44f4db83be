// Package bfttest plays scenarios in which some replicas are traitors, and judges what the honest
// ones and the honest clients came to see.
package bfttest
