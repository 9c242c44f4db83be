// Package tidy has its comment in the wrong file.
package tidy
