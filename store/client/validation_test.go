package client

import (
	"testing"

	"github.com/foresay/foresay/store"
)

// TestHooksHaveNoLock: what a read's actual result sets off, a program's OnRollback too, may read
// on.
func TestHooksHaveNoLock(t *testing.T) {
	v := newValidation(&attempt{}, nil)
	v.add("k", store.Value{})
	told := false
	ended := v.end("k", func() {
		if told = v.mu.TryLock(); told {
			v.mu.Unlock()
		}
	})
	if !ended || !told || v.telling != 0 {
		t.Errorf("the read has ended: %v; the lock was free: %v; %d are being told", ended, told, v.telling)
	}
}
