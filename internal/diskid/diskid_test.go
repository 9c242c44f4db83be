package diskid

import (
	"math/rand/v2"
	"testing"

	"github.com/foresay/foresay/internal/wirefmt/wiretest"
)

type keys map[string]string

func (k keys) Get(key []byte) ([]byte, bool) {
	v, ok := k[string(key)]
	return []byte(v), ok
}

func (k keys) Put(key, value []byte) { k[string(key)] = string(value) }

func TestIdentity(t *testing.T) {
	disk := keys{}
	if _, found, err := Read(disk, "self"); found || err != nil {
		t.Errorf("a blank disk has an identity: %v, %v", found, err)
	}
	id := New(rand.New(rand.NewPCG(1, 1)))
	if id.Disk == 0 || id.Joined || id.Refused != "" {
		t.Errorf("a new identity is %+v", id)
	}
	for _, want := range []Identity{id, {id.Disk, true, ""}, {id.Disk, true, "it is old"}} {
		want.Write(disk, "self")
		if got, found, err := Read(disk, "self"); got != want || !found || err != nil {
			t.Errorf("got %+v, %v, %v, want %+v", got, found, err, want)
		}
	}
	for n := range len(disk["self"]) {
		part := keys{"self": disk["self"][:n]}
		if _, found, err := Read(part, "self"); !found || err == nil {
			t.Errorf("%d of %d bytes are enough", n, len(disk["self"]))
		}
	}
}

// TestLayouts tests how an identity looks on disk.
func TestLayouts(t *testing.T) {
	wiretest.Layouts(t, wiretest.Sample("identity", layout, Identity{Disk: 300, Joined: true, Refused: "why"}))
}
