// Package shape has a comment and a test.
package shape
