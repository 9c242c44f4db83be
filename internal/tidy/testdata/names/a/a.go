// Package util is a bag.
package util
