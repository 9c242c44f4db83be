package geostore

import (
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/foresay/foresay/host"
	"github.com/foresay/foresay/internal/wirefmt"
	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/store"
	"github.com/foresay/foresay/store/replicatedcommit"
)

func (d *disk) put(key, value string) {
	d.Commit([]host.Op{{Kind: protocol.KindPut, Key: []byte(key), Value: []byte(value)}}, func(error) {})
}

func (d *disk) remove(key string) {
	d.Commit([]host.Op{{Kind: protocol.KindDelete, Key: []byte(key)}}, func(error) {})
}

// TestDiskIsLikeOneThatWasWritten compares a disk over a keyspace with a plain one that got all its
// keys one by one.
func TestDiskIsLikeOneThatWasWritten(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	ks := newKeyspace(replicatedcommit.Protocol().Preload, 30, []byte("first"))
	d, twin := newDisk(&device{}, ks), newDisk(&device{}, keyspace{})
	for i := range uint64(30) {
		twin.put(string(ks.diskKey(i)), string(ks.value))
	}
	for range 2000 {
		key := string(ks.diskKey(r.Uint64N(40)))
		if r.IntN(4) == 0 {
			key = "t" + key
		}
		switch r.IntN(3) {
		case 0:
			value := string(rune('a' + r.IntN(26)))
			d.put(key, value)
			twin.put(key, value)
		case 1:
			d.remove(key)
			twin.remove(key)
		}
		got, ok := d.Keys().Get([]byte(key))
		want, wantOK := twin.Keys().Get([]byte(key))
		if ok != wantOK || string(got) != string(want) {
			t.Fatalf("%s is %q, %v, want %q, %v", key, got, ok, want, wantOK)
		}
		lo, hi := ks.diskKey(r.Uint64N(40)), ks.diskKey(r.Uint64N(40))
		if r.IntN(10) == 0 {
			lo, hi = nil, nil
		}
		if diff := cmp.Diff(scanned(twin, lo, hi), scanned(d, lo, hi)); diff != "" {
			t.Fatalf("from %s to %s (-want +got):\n%s", lo, hi, diff)
		}
	}
}

func scanned(d *disk, lo, hi []byte) []string {
	var all []string
	for k, v := range d.Keys().Scan(lo, hi) {
		all = append(all, string(k)+"="+string(v))
	}
	return all
}

func TestBaseHasTheFirstVersion(t *testing.T) {
	ks := newKeyspace(replicatedcommit.Protocol().Preload, 10_000_000, []byte("x"))
	b, ok := newDisk(&device{}, ks).Keys().Get([]byte("vk9999999"))
	r := wirefmt.NewReader(b)
	var got store.Value
	store.ValueFields(r.Coder(), &got)
	want := store.Value{Version: firstVersion(), Present: true, Bytes: []byte("x")}
	if err := r.Close(); !ok || err != nil || !cmp.Equal(got, want) {
		t.Errorf("got %v, %v, %v, want %v", got, ok, err, want)
	}
}

// TestGroupCommit: the first commit takes one sync, what comes during it the rest of that one and
// another.
func TestGroupCommit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &device{sync: time.Millisecond}
		start := time.Now()
		var got []time.Duration
		commit := func() { d.commit(func(error) { got = append(got, time.Since(start)) }) }
		commit()
		time.Sleep(400 * time.Microsecond)
		commit()
		commit()
		time.Sleep(4600 * time.Microsecond)
		commit()
		time.Sleep(time.Second)
		want := []time.Duration{time.Millisecond, 2 * time.Millisecond, 2 * time.Millisecond, 6 * time.Millisecond}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("commits were done at (-want +got):\n%s", diff)
		}
	})
}
