package memdir

import (
	"os"
	"path/filepath"
	"testing"
)

// TestUse: directories of tests are in memory if there is room, and where TMPDIR says if it does.
func TestUse(t *testing.T) {
	said := t.TempDir()
	for _, dir := range []string{said, ""} {
		t.Setenv("TMPDIR", dir)
		Use()
		want := dir
		if want == "" && shared != "" && freeBytes(shared) >= leastBytes {
			want = shared
		}
		if got := os.Getenv("TMPDIR"); got != want {
			t.Errorf("with TMPDIR=%q it is %q, want %q", dir, got, want)
		}
	}
	if free := freeBytes(filepath.Join(said, "none")); free != 0 {
		t.Errorf("where there is no directory %d bytes are free", free)
	}
}
