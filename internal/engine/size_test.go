package engine

import (
	"testing"
	"unsafe"
)

// TestSizeOfTask: a task is allocated at once, and its size is a good part of what a short one
// costs. The allocator has room for 3,064 bytes and a header of 8, and next for 4,096.
func TestSizeOfTask(t *testing.T) {
	if size := unsafe.Sizeof(task{}); size > 3064 {
		t.Errorf("a task has %d bytes, want at most 3064", size)
	}
}
