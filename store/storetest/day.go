package storetest

import (
	"maps"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/foresay/foresay/internal/seed"
	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/sim"
	"github.com/foresay/foresay/store"
)

// Day has three clients make a transaction now and then for a day, and none in the last minutes of
// each hour, while a server or coordinator crashes each hour. When all is at rest no node may hold
// more at the end of the day than after two hours. A run that names no seed has a day of four
// hours. Servers are to remember fewer ended transactions than there are in two hours, which is
// about 900 at each of two shards.
func Day(t *testing.T, subject Subject) {
	hours := 4
	if seed.Named() {
		hours = 24
	}
	w, err := New(subject, Scenario{Seed: seed.First(t, 1), Clients: 3, Keys: 8, Pause: 20 * time.Second, CheckEvery: 1000,
		Test: t.Name(), Configure: func(c *store.Config) { c.RoundTrip, c.Retain = 5*time.Second, time.Minute }})
	if err != nil {
		t.Fatal(err)
	}
	var ids []protocol.ID
	for _, a := range w.Clients {
		ids = append(ids, a.ID)
	}
	ids = append(ids, w.Nodes()...)
	var early map[protocol.ID]int
	var begun int
	for hour := range hours {
		id := w.Nodes()[w.Rand.IntN(len(w.Nodes()))]
		w.Sim.After(time.Minute, func() { w.Sim.Crash(id, sim.Keep(w.Rand.IntN(3))) })
		w.Sim.After(2*time.Minute, func() { w.Sim.Restart(id) })
		if err := w.Sim.Run(55 * time.Minute); err != nil {
			t.Fatal(err)
		}
		w.Stopped = true
		if err := w.Sim.Run(5 * time.Minute); err != nil {
			t.Fatal(err)
		}
		w.Stopped = false
		if hour == 1 {
			early, begun = w.holdings(t, ids), w.Txns
		}
		if hour < hours-1 {
			for _, a := range w.Clients {
				a.Next()
			}
		}
	}
	if left := w.Unquiet(); left != "" {
		t.Errorf("after %d hours %s", hours, left)
	}
	late := w.holdings(t, ids)
	ended := w.Txns - begun
	t.Logf("%d transactions; after 2 hours nodes hold %v, after %d %v", w.Txns, early, hours, late)
	for _, id := range slices.Sorted(maps.Keys(late)) {
		if most := early[id]*5/4 + 100; late[id] > most {
			t.Errorf("node %d holds %d after %d hours and %d transactions more, %d after two", id, late[id], hours, ended,
				early[id])
		}
	}
	if ended < 100*(hours-2) {
		t.Errorf("only %d transactions in %d hours", ended, hours-2)
	}
}

// holdings returns how many elements nodes have in all their maps and slices, and on disk.
func (w *World) holdings(t *testing.T, ids []protocol.ID) map[protocol.ID]int {
	t.Helper()
	all := map[protocol.ID]int{}
	for _, id := range ids {
		all[id] = elements(reflect.ValueOf(w.Sim.Get(id)), map[uintptr]bool{})
		log, keys, err := w.Sim.Disk(id)
		if err != nil {
			t.Fatal(err)
		}
		for range log {
			all[id]++
		}
		for range keys.Scan(nil, nil) {
			all[id]++
		}
	}
	return all
}

// elements counts what can be reached from a value.
func elements(v reflect.Value, seen map[uintptr]bool) (n int) {
	switch v.Kind() {
	case reflect.Pointer:
		if v.IsNil() || seen[v.Pointer()] {
			return 0
		}
		seen[v.Pointer()] = true
		return elements(v.Elem(), seen)
	case reflect.Interface:
		return elements(v.Elem(), seen)
	case reflect.Struct:
		for i := range v.NumField() {
			n += elements(v.Field(i), seen)
		}
	case reflect.Map:
		if v.IsNil() || seen[v.Pointer()] {
			return 0
		}
		seen[v.Pointer()] = true
		n = v.Len()
		for it := v.MapRange(); it.Next(); {
			n += elements(it.Key(), seen) + elements(it.Value(), seen)
		}
	case reflect.Slice, reflect.Array:
		if n = v.Len(); v.Kind() == reflect.Array || v.Type().Elem().Kind() <= reflect.Complex128 {
			return min(n, 1)
		}
		for i := range v.Len() {
			n += elements(v.Index(i), seen)
		}
	}
	return n
}
