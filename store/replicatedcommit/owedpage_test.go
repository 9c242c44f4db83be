package replicatedcommit

import (
	"bytes"
	"fmt"
	"iter"
	"testing"
	"time"

	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/store"
)

// TestOwedPages: what is owed is found among many keys with few requests, in small pages, and
// nothing that is owed is left out.
func TestOwedPages(t *testing.T) {
	const since = 1000
	for _, tc := range []struct {
		name              string
		keys, size, every int // one of every so many keys is owed
		pages             int
	}{
		{"few are owed", 20_000, 10, 10_000, 5},
		{"all are owed", 5_000, 10, 1, 10},
		{"few large ones are owed", 100, 100 << 10, 50, 10},
	} {
		t.Run(tc.name, func(t *testing.T) {
			b := newServerBench(t)
			value := bytes.Repeat([]byte("x"), tc.size)
			b.do(func() {
				for i := range tc.keys {
					v := store.Value{Version: store.Version{Time: since, Client: 1}, Present: true, Bytes: value}
					if i%tc.every == tc.every/2 {
						v.Version.Time++
					}
					putValue(b.env, store.Key(fmt.Sprintf("%06d", i)), v)
				}
			})
			pages, from := 0, ""
			var found []keyValue
			for {
				b.give(21, askPage{Stage: copyValues, From: from, Since: since, Round: 1})
				p := sentPage(t, b.env.Out)
				pages++
				size := 0
				for _, kv := range p.Values {
					size += len(kv.Key) + len(kv.Value.Bytes)
				}
				if len(p.Values) > maxOwedEntries || len(p.Values) > 1 && size > maxOwedBytes ||
					p.Scanned > owedScan*maxOwedEntries {
					t.Errorf("a page has %d values of %d bytes, from %d keys", len(p.Values), size, p.Scanned)
				}
				found = append(found, p.Values...)
				if from = p.Next; from == "" {
					break
				}
			}
			if want := tc.keys / tc.every; len(found) != want || pages != tc.pages {
				t.Errorf("%d pages with %d values; want %d with %d", pages, len(found), tc.pages, want)
			}
			for _, kv := range found {
				if kv.Value.Version.Time <= since {
					t.Errorf("%s is not owed", kv.Key)
				}
			}
		})
	}
}

func sentPage(t *testing.T, out []protocol.Effect[message]) page {
	t.Helper()
	for _, e := range out {
		if p, ok := e.Msg.(page); ok {
			return p
		}
	}
	t.Fatal("there is no page")
	return page{}
}

// TestScanIsPaced: who copies leaves the source time for others also where it looks at many keys
// and finds nothing, but does not wait for what cannot be.
func TestScanIsPaced(t *testing.T) {
	const scan = owedScan * maxOwedEntries
	for _, tc := range []struct {
		scanned int
		want    time.Duration
	}{
		{10, time.Millisecond / catchUpPace},
		{scan, scan * catchUpScan},
		{1 << 30, scan * catchUpScan},
	} {
		c := copyPace{asked: time.Second}
		if got := c.pause(time.Second, time.Millisecond, 0, catchUpLeast, page{Scanned: tc.scanned}); got != tc.want {
			t.Errorf("after %d keys it waits for %v; want %v", tc.scanned, got, tc.want)
		}
	}
}

// TestCopyLeavesTimeForTransactions: a page of a thousand values is followed by a pause that is as
// long as transactions need, up to ten times, or twice at a newcomer.
func TestCopyLeavesTimeForTransactions(t *testing.T) {
	page := page{Values: make([]keyValue, 1000)}
	alone := 1000 * catchUpValue
	for _, tc := range []struct {
		perSecond uint64
		least     float64
		want      time.Duration
	}{
		{0, catchUpLeast, alone},
		{500, catchUpLeast, alone * 10 / 7},
		{1500, catchUpLeast, alone * 10},
		{100_000, catchUpLeast, alone * 10},
		{500, newcomerLeast, alone * 10 / 7},
		{100_000, newcomerLeast, alone * 2},
	} {
		c, got := copyPace{}, time.Duration(0)
		for i := range uint64(100) { // a page each 100 ms
			now := time.Duration(i+1) * 100 * time.Millisecond
			c.asked = now
			got = c.pause(now, time.Millisecond, i*tc.perSecond/10, tc.least, page)
		}
		if got < tc.want*99/100 || got > tc.want*101/100 {
			t.Errorf("beside %d transactions a second, with a share of %v, it waits for %v; want %v", tc.perSecond, tc.least,
				got, tc.want)
		}
	}
}

// countedKeys counts how often a key is looked up, and how many keys are gone through.
type countedKeys struct {
	protocol.Keys
	gets, scanned int
}

func (c *countedKeys) Get(key []byte) ([]byte, bool) {
	c.gets++
	return c.Keys.Get(key)
}

func (c *countedKeys) Scan(lo, hi []byte) iter.Seq2[[]byte, []byte] {
	return func(yield func(key, value []byte) bool) {
		for k, v := range c.Keys.Scan(lo, hi) {
			if c.scanned++; !yield(k, v) {
				return
			}
		}
	}
}

// TestPagesAreTaken: what a page has is taken where it is newer than what is there, in whatever
// order it comes. A whole page is compared on one way through the keys; one whose keys lie far
// apart does not have the server go through all that lie between.
func TestPagesAreTaken(t *testing.T) {
	version := func(time uint64) store.Version { return store.Version{Time: time, Client: 1} }
	const keys = 4000
	for _, tc := range []struct {
		name          string
		page          []int // keys
		gets, scanned int
	}{
		{"all keys", numbers(0, keys, 1), 0, keys},
		{"one of four", numbers(0, keys, 4), 0, keys - 3},
		{"far apart", []int{0, 1, 3000}, 1, 3 * heldScan},
		{"out of order", []int{3000, 2, 1000, 1001}, 4, 0},
		{"one twice", []int{5, 6, 5}, 1, 1},
		{"new ones", numbers(keys, 2*keys, 1), 0, 0},
		{"none", nil, 0, 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			b := newServerBench(t)
			key := func(i int) store.Key { return store.Key(fmt.Sprintf("%06d", i)) }
			put := func(time uint64) store.Value {
				return store.Value{Version: version(time), Present: true, Bytes: []byte("v")}
			}
			b.do(func() {
				for i := range keys {
					// the page has 101: one is older, one the same, one newer
					putValue(b.env, key(i), put(100+uint64(i%3)))
				}
			})
			counted := &countedKeys{Keys: b.disk}
			b.env = protocol.NewEnv[message](counted, 11, b.env.Rand)
			var page []keyValue
			for _, i := range tc.page {
				page = append(page, keyValue{key(i), put(101)})
			}
			b.do(func() { b.server.takeValues(b.env, page) })
			if counted.gets != tc.gets || counted.scanned != tc.scanned {
				t.Errorf("%d keys were looked up and %d gone through; want %d and %d", counted.gets, counted.scanned, tc.gets,
					tc.scanned)
			}
			for _, i := range tc.page {
				want := uint64(101)
				if i < keys {
					want = max(want, 100+uint64(i%3))
				}
				b.do(func() {
					if got := value(b.env, key(i)).Version; got != version(want) {
						t.Errorf("key %d has version %v, want %v", i, got, version(want))
					}
				})
			}
		})
	}
}

func numbers(from, below, step int) (all []int) {
	for i := from; i < below; i += step {
		all = append(all, i)
	}
	return all
}
