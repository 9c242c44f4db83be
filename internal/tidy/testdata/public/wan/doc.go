// Package wan has all that it should.
package wan
