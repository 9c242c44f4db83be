package kv_test

import (
	"strings"
	"testing"
	"time"

	"github.com/foresay/foresay/smr/kv"
)

// TestQuota goes through what a store takes and refuses that is nearly full.
func TestQuota(t *testing.T) {
	s := kv.New()
	key := func(k string) []byte { return []byte(k) }
	lease := kv.LeaseID(apply(t, s, kv.Grant(time.Minute)).Version)
	for _, c := range []struct {
		name    string
		command []byte
		want    kv.Status
		message string
		bytes   uint64 // afterwards
		keys    uint64
	}{
		{"a quota", kv.SetQuota(kv.Quota{Bytes: 10, Keys: 3}), kv.OK, "", 0, 0},
		{"fits exactly", kv.Put(key("a"), key("123456789")), kv.OK, "", 10, 1},
		{"an empty key has no bytes", kv.Put(nil, nil), kv.OK, "", 10, 2},
		{"one byte more", kv.Put(key("b"), nil), kv.QuotaExceeded,
			"the keys and values have 10 bytes of 10, and would have 1 more", 10, 2},
		{"growing", kv.Put(key("a"), key("1234567890")), kv.QuotaExceeded, "", 10, 2},
		{"growing by compare and set", kv.CompareAndSet(key("a"), 2, key("1234567890")), kv.QuotaExceeded, "", 10, 2},
		{"growing of another version", kv.CompareAndSet(key("a"), 9, key("1234567890")), kv.Conflict, "", 10, 2},
		{"growing with a lease", kv.PutLeased(key("a"), key("1234567890"), lease), kv.QuotaExceeded, "", 10, 2},
		{"as large", kv.PutLeased(key("a"), key("987654321"), lease), kv.OK, "", 10, 2},
		{"smaller", kv.Put(key("a"), key("1")), kv.OK, "", 2, 2},
		{"a third key", kv.PutLeased(key("b"), key("2"), lease), kv.OK, "", 4, 3},
		{"a fourth key", kv.Put(key("c"), nil), kv.QuotaExceeded, "there are 3 keys of 3, and there would be 1 more", 4, 3},
		{"a lower quota", kv.SetQuota(kv.Quota{Bytes: 1, Keys: 1}), kv.OK, "", 4, 3},
		{"smaller, though too large", kv.Put(key("a"), nil), kv.OK, "", 3, 3},
		{"a deletion, though too large", kv.Delete(key("a")), kv.OK, "", 2, 2},
		{"the end of a lease", kv.Revoke(lease), kv.OK, "", 0, 1},
		{"none", kv.SetQuota(kv.Quota{}), kv.OK, "", 0, 1},
		{"much", kv.Put(key("c"), make([]byte, 1000)), kv.OK, "", 1001, 2},
	} {
		r := apply(t, s, c.command)
		if r.Status != c.want || !strings.Contains(r.Message, c.message) {
			t.Errorf("%s: %v, %q", c.name, r.Status, r.Message)
		}
		for _, store := range []*kv.Store{s, restored(t, s)} {
			if u := store.Usage(); u.Bytes != c.bytes || u.Keys != c.keys || u != store.Usage() {
				t.Errorf("%s: %+v", c.name, u)
			}
		}
		if a, b := s.Usage(), restored(t, s).Usage(); a != b {
			t.Errorf("%s: %+v, after a restart %+v", c.name, a, b)
		}
	}
}

// TestQuotaOfABackup says that a backup that does not fit is refused as a whole.
func TestQuotaOfABackup(t *testing.T) {
	s := kv.New()
	apply(t, s, kv.SetQuota(kv.Quota{Bytes: 3}))
	load := kv.Load{To: 2, Items: []kv.Item{{Key: []byte("a"), Value: []byte("1"), Version: 1},
		{Key: []byte("b"), Value: []byte("2"), Version: 2}}, Last: true}
	if r := apply(t, s, load.Encode()); r.Status != kv.QuotaExceeded || !strings.Contains(r.Message, "would have 4 more") {
		t.Errorf("%v, %q", r.Status, r.Message)
	}
	apply(t, s, kv.SetQuota(kv.Quota{Bytes: 4}))
	if r := apply(t, s, load.Encode()); r.Status != kv.OK || s.Usage().Bytes != 4 {
		t.Errorf("%v, %q", r.Status, r.Message)
	}

	// What is half restored goes on when there is room.
	s = kv.New()
	first, second := kv.Load{To: 1, Items: load.Items[:1]}, kv.Load{After: 1, To: 2, Items: load.Items[1:], Last: true}
	apply(t, s, kv.SetQuota(kv.Quota{Keys: 1}))
	for _, step := range []struct {
		command []byte
		want    kv.Status
	}{{first.Encode(), kv.OK}, {second.Encode(), kv.QuotaExceeded}, {kv.Put([]byte("c"), nil), kv.Malformed},
		{kv.SetQuota(kv.Quota{}), kv.OK}, {second.Encode(), kv.OK}} {
		if r := apply(t, s, step.command); r.Status != step.want {
			t.Errorf("%v, %q, want %v", r.Status, r.Message, step.want)
		}
	}
}

// TestUsageIsAQuery says that what a store holds can be read, and a quota cannot be set that way.
func TestUsageIsAQuery(t *testing.T) {
	s := kv.New()
	apply(t, s, kv.Put([]byte("k"), []byte("value")))
	r, err := kv.DecodeResult(s.Read(kv.GetUsage()))
	if err != nil {
		t.Fatal(err)
	}
	if u, err := r.Usage(); err != nil || u != (kv.Usage{Bytes: 6, Keys: 1}) {
		t.Errorf("%+v, %v", u, err)
	}
	if r, err = kv.DecodeResult(s.Read(kv.SetQuota(kv.Quota{Keys: 1}))); err != nil || r.Status != kv.Malformed {
		t.Errorf("a quota was set by a query: %v, %v", r, err)
	}
	if _, err := (kv.Result{Value: []byte{1}}).Usage(); err == nil {
		t.Error("a usage of one byte is one")
	}
}

// TestSnapshotWithoutQuota restores what earlier versions of the program have written.
func TestSnapshotWithoutQuota(t *testing.T) {
	s := kv.New()
	apply(t, s, kv.Put([]byte("k"), []byte("value")))
	var b strings.Builder
	if err := s.Snapshot(&b); err != nil {
		t.Fatal(err)
	}
	old := "\x02" + b.String()[1:b.Len()-2] // the version, and no quota
	again := kv.New()
	if err := again.Restore(strings.NewReader(old)); err != nil || again.Usage() != s.Usage() {
		t.Errorf("%+v, %v", again.Usage(), err)
	}
}
