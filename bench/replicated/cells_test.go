package replicated

import (
	"bytes"
	"maps"
	"strings"
	"testing"

	"github.com/foresay/foresay/smr/epaxos"
)

var _ epaxos.Interferer = (*cells)(nil)

func TestCells(t *testing.T) {
	a := newCells()
	for _, c := range [][2]string{{"key....1", "value..1"}, {"key....2", "value..2"}, {"key....1", "value..3"}} {
		if got := a.Apply(put(c[0], c[1])); string(got) != c[1] {
			t.Errorf("put %s: %q", c, got)
		}
	}
	if got := a.Apply([]byte("short")); got != nil || len(a.rows) != 2 {
		t.Errorf("a malformed command gave %q and %d rows", got, len(a.rows))
	}
	if keys, ok := a.Footprint(put("key....1", "value..1")); !ok || len(keys) != 1 || keys[0] != "key....1" {
		t.Errorf("footprint %q, %v", keys, ok)
	}
	if _, ok := a.Footprint([]byte("short")); ok {
		t.Error("a malformed command has a footprint")
	}
	if got := string(a.Read([]byte("key....1"))); got != "value..3" || !a.has("key....1") || a.has("key....3") ||
		a.Read([]byte("key....3")) != nil {
		t.Errorf("read %q", got)
	}
	var b bytes.Buffer
	if err := a.Snapshot(&b); err != nil {
		t.Fatal(err)
	}
	other := newCells()
	other.Apply(put("key....9", "value..9"))
	if err := other.Restore(&b); err != nil || !maps.Equal(a.rows, other.rows) {
		t.Errorf("restored %v, %v", other.rows, err)
	}
	if err := other.Restore(strings.NewReader("short")); err == nil {
		t.Error("a damaged snapshot was taken")
	}
}
