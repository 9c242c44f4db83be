package calls

import (
	"testing"
	"testing/synctest"
)

// bubbles runs functions in bubbles of the test.
func bubbles(t *testing.T) func(func()) {
	return func(f func()) { synctest.Test(t, func(*testing.T) { f() }) }
}
