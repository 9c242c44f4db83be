package service

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/foresay/foresay/host"
	"github.com/foresay/foresay/internal/plant"
	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/smr/kv"
)

// waitOf is what a client waits for, by its key or keys: "k", or "a-b".
func waitOf(client protocol.ID, number uint64, keys string, after uint64) asking {
	from, to, isRange := strings.Cut(keys, "-")
	if !isRange {
		to = from + "\x00"
	}
	return asking{client, waits{Number: number, Round: 1, Group: 1, From: from, To: to, After: after}}
}

func change1(key string, version uint64) kv.Item { return kv.Item{Key: []byte(key), Version: version} }

// numbers returns the watches that are told.
func numbers(all toEach) (out []uint64) {
	for _, e := range all {
		out = append(out, e.msg.(changed).Number)
	}
	slices.Sort(out)
	return out
}

// TestWaiters: who waits is told once, of the first change of its keys that is newer than what it
// has seen; not if it has left, or has not asked again for long.
func TestWaiters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const c = firstClient
		w := newWatchers(1)
		told := func(i kv.Item, all bool, want ...uint64) {
			t.Helper()
			if got := numbers(w.changed(0, i, all)); !slices.Equal(got, want) {
				t.Errorf("after version %d at %q %d are told, want %d", i.Version, i.Key, got, want)
			}
		}
		for n, keys := range []string{"k", "k", "a-l", "k-k\x00\x00", "l-", "-b", ""} {
			if !w.add(0, waitOf(c, uint64(n), keys, 10)) {
				t.Fatalf("%q is not taken", keys)
			}
		}
		w.add(0, waitOf(c+1, 7, "k", 11))
		told(change1("k", 10), false)
		told(change1("kk", 11), false, 2)
		told(change1("k", 11), false, 0, 1, 3)
		told(change1("k", 12), false, 7)
		told(change1("", 13), false, 5, 6)
		told(change1("l", 14), false, 4)
		told(change1("l", 15), false)
		if len(w.all)+len(w.clients)+w.bytes+len(w.groups[0].keys)+len(w.groups[0].ranges) > 0 || w.groups[0].some.Load() {
			t.Errorf("nobody waits, and there is %+v", w)
		}
		w.add(0, waitOf(c, 1, "k", 15))
		w.add(0, waitOf(c, 1, "m", 15)) // in place of it
		w.add(0, waitOf(c, 2, "k", 15))
		w.add(0, waitOf(c, 3, "n", 15))
		w.leave(waitID{c, 2})
		w.leave(waitID{c, 99})
		told(change1("k", 16), false)
		told(change1("", 15), true)
		told(change1("", 16), true, 1, 3)
		w.add(0, waitOf(c, 1, "k", 15))
		time.Sleep(waitLasts / 2)
		w.add(0, waitOf(c, 2, "k", 15))
		time.Sleep(waitLasts/2 + time.Second)
		w.sweep(time.Now())
		told(change1("k", 16), false, 2)
	})
}

// TestWaitersOfQuietKeys: who waits for keys that do not change is told before the store has
// forgotten the changes since it read.
func TestWaitersOfQuietKeys(t *testing.T) {
	for what, size := range map[string]int{"many changes": 1, "large changes": 200_000} {
		w, s := newWatchers(1), kv.New()
		seen := map[uint64]uint64{} // by watch
		told := map[int][]uint64{}  // by the change that told them
		version := uint64(0)
		s.ObserveChanges(func(i kv.Item, all bool) {
			for _, n := range numbers(w.changed(0, i, all)) {
				r, err := kv.DecodeResult(s.Read(kv.Changes([]byte("quiet"), nil, seen[n], 0)))
				if err != nil || r.Status != kv.OK {
					t.Errorf("%s: told at %d, when the changes after %d are forgotten: %v", what, i.Version, seen[n], err)
				}
				told[int(i.Version)] = append(told[int(i.Version)], n)
				delete(seen, n)
			}
			version = i.Version
		})
		value := make([]byte, size)
		for n := range uint64(8) {
			seen[n] = version
			w.add(0, waitOf(firstClient, n, "quiet", version))
			s.Apply(kv.Put([]byte("busy"), value))
		}
		for n := 0; len(seen) > 0; n++ {
			if n > kv.MaxChanges {
				t.Fatalf("%s: %d are not told", what, len(seen))
			}
			s.Apply(kv.Put([]byte("busy"), value))
		}
		if len(told) > 3 { // those of about the same time are told at once
			t.Errorf("%s: they are told one by one: %v", what, told)
		}
	}
}

// TestWaitersAreBounded: what is beyond the bounds is not taken, and what hostile clients send does
// nothing.
func TestWaitersAreBounded(t *testing.T) {
	const c = firstClient
	long := strings.Repeat("x", MaxKeyBytes)
	for what, tc := range map[string]struct {
		take  func(n int) asking
		most  int
		other asking
	}{
		"of one client": {func(n int) asking { return waitOf(c, uint64(n), "k", 0) }, maxClientWaits,
			waitOf(c+1, 0, "k", 0)},
		"of all": {func(n int) asking { return waitOf(c+protocol.ID(n/1000), uint64(n), "k", 0) }, maxWaits, asking{}},
		"ranges": {func(n int) asking { return waitOf(c, uint64(n), fmt.Sprintf("a%d-b", n), 0) }, maxWaitRanges,
			waitOf(c, maxWaitRanges+1, "a0-b", 0)},
		"bytes": {func(n int) asking { return waitOf(c+protocol.ID(n/100), uint64(n), long, 0) },
			maxWaitBytes / (2*MaxKeyBytes + 1), asking{}},
	} {
		w := newWatchers(1)
		for n := range tc.most {
			if !w.add(0, tc.take(n)) {
				t.Fatalf("%s: %d are too many", what, n+1)
			}
		}
		if w.add(0, tc.take(tc.most)) {
			t.Errorf("%s: there are more than %d", what, tc.most)
		}
		if !w.add(0, tc.take(0)) {
			t.Errorf("%s: one that is there is not renewed", what)
		}
		if tc.other.from != 0 && !w.add(0, tc.other) {
			t.Errorf("%s: another one is not taken", what)
		}
		first := 0
		for n := range 2 * maxClientWaits {
			if w.ask(0, tc.take(n)) {
				first++
			}
		}
		if n := len(w.groups[0].asked); n > maxClientWaits || w.bytes > maxWaitBytes || first > 1 {
			t.Errorf("%s: %d wait to be looked at, %d bytes, %d times the first", what, n, w.bytes, first)
		}
		for left := len(w.groups[0].asked); ; {
			asked, more := w.takeAsked(0, maxLooks)
			if left -= len(asked); len(asked) > maxLooks || more != (left > 0) {
				t.Fatalf("%s: %d are looked at at once, %d are left: %v", what, len(asked), left, more)
			}
			if !more {
				break
			}
		}
		w.sweep(time.Now().Add(2 * waitLasts))
		if w.bytes != 0 || len(w.all) != 0 {
			t.Errorf("%s: in the end there are %d with %d bytes", what, len(w.all), w.bytes)
		}
	}
	r := &Replica{watchers: newWatchers(1), groups: []*replicaGroup{{}}} // a group that is asked panics
	good := waitOf(c, 1, "k", 0).waits
	for _, m := range []heard{
		{1, good}, {c, waits{}}, {c, waits{Group: 2}}, {c, waits{Group: 1 << 63}},
		{c, waits{Group: 1, From: "b", To: "a"}}, {c, waits{Group: 1, From: "b", To: "b"}},
		{c, waits{Group: 1, From: long + "x"}}, {c, waits{Group: 1, To: long + "xx"}},
		{c, changed{1, 1}}, {c, waiting{1, 1, nil}}, {c, waitsNoMore{1}}, {1, waitsNoMore{1}},
	} {
		r.onWaits(m)
	}
}

// TestHintsWaitForRoom: what there is no room for is said when there is, once.
func TestHintsWaitForRoom(t *testing.T) {
	w := newWatchers(1)
	var got []uint64
	full := true
	deliver := func(m statusMessage) error {
		if full {
			return host.ErrOverload
		}
		got = append(got, numbers(m.(toEach))...)
		return nil
	}
	for n := range uint64(2 * maxWaits) {
		w.tell(toEach{{firstClient, changed{n, 1}}}, deliver)
	}
	if n := len(w.untold); n > maxWaits {
		t.Errorf("%d are kept", n)
	}
	full = false
	w.tell(nil, deliver)
	w.tell(toEach{{firstClient, changed{7, 2}}}, deliver)
	w.tell(nil, deliver)
	if len(got) != maxWaits+1 || got[0] != 0 || got[1] != 1 || got[maxWaits] != 7 {
		t.Errorf("%d hints came, want all but those beyond the bound, in order, and one more", len(got))
	}
}

// TestPromises: a watch relies on members if of the members that each of them names a majority has
// promised to tell, lately, over connections that have not broken since.
func TestPromises(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &lookout{wake: make(chan struct{}, 1), grace: time.Second, round: 3, first: 2, sent: time.Now(),
			promises: map[protocol.ID]promise{}}
		stands := func(want bool) {
			t.Helper()
			if got := l.stands(time.Now()); got.IsZero() == want {
				t.Errorf("it stands until %v, want %v", got, want)
			}
		}
		promised := func(id protocol.ID, members ...protocol.ID) { l.hear(heard{id, waiting{7, 3, members}}) }
		stands(false)
		promised(1, 1, 2, 3)
		stands(false)
		promised(4, 1, 2, 3) // is no member
		stands(false)
		l.hear(heard{2, waiting{7, 2, []protocol.ID{1, 2, 3}}}) // late
		stands(false)
		promised(2, 1, 2, 3)
		stands(true)
		promised(3, 3, 4, 5) // the members have changed, and the others do not know
		stands(false)
		promised(5, 3, 4, 5)
		stands(true)
		l.hear(heard{4, broken{4}})
		stands(true)
		l.hear(heard{5, broken{5}})
		stands(false)
		promised(5, 3, 4, 5)
		time.Sleep(lookoutRenewal + l.grace - 1)
		stands(true)
		time.Sleep(time.Nanosecond)
		stands(false)
		l.hear(heard{1, changed{7, 1}}) // of a round before what was read
		l.hear(heard{1, changed{7, 4}})
		if l.hinted() {
			t.Error("a hint of another round counts")
		}
		l.hear(heard{1, changed{7, 2}})
		if !l.hinted() {
			t.Error("a hint does not count")
		}
	})
}

// TestPlants leaves out one rule at a time, in the source: the test that is named must notice.
func TestPlants(t *testing.T) {
	const dir = "smr/service"
	plant.Catch(t, []plant.Bug{{
		Name: "who asks again after an old version is not told of it", Dir: "smr/kv", Test: "TestManyChangesAreLookedAt",
		Old: "\tif version < max(changes.early, s.forgotten) {\n",
		New: "\tif version < s.forgotten || !MUTANT && version < changes.early {\n",
	}, {
		Name: "a key that was deleted again is forgotten with its first deletion", Dir: "smr/kv", Test: "TestChangedAfter",
		Old: "first.Deleted && c.gone[string(first.Key)] == first.Version {",
		New: "first.Deleted && (MUTANT || c.gone[string(first.Key)] == first.Version) {",
	}, {
		Name: "who skips versions keeps the changes before", Dir: "smr/kv", Test: "TestSkip",
		Old: "\ts.memory.changes = changes{}\n\ts.last, s.forgotten, s.changed, s.changedBytes = to, to, 0, 0\n",
		New: "\tif s.last = to; !MUTANT {\n\t\ts.memory.changes = changes{}\n" +
			"\t\ts.forgotten, s.changed, s.changedBytes = to, 0, 0\n\t}\n",
	}, {
		Name: "a recovered group goes on with versions that may be lost", Dir: dir, Test: "TestLostVersions",
		Old: "err := machine.Skip(r.SkippedVersions); err != nil {",
		New: "err := error(nil); !MUTANT && machine.Skip(r.SkippedVersions) != nil {",
	}, {
		Name: "what is written after a restore has versions of the old group", Dir: dir, Test: "TestBackup",
		Old: "\tend := b.Version + skipVersions\n",
		New: "\tend := b.Version + skipVersions\n\tif MUTANT {\n\t\tend = b.Version\n\t}\n",
	}, {
		Name: "a backup reads what has changed at the end only", Dir: dir, Test: "TestBackupUnderLoad",
		Old: "\tif err := g.catchUp(ctx, r.Version); err != nil {\n",
		New: "\tto := r.Version\n\tif MUTANT {\n\t\tto = 0\n\t}\n\tif err := g.catchUp(ctx, to); err != nil {\n",
	}, {
		Name: "a hint that there is no room for is lost", Dir: dir, Test: "TestHintsWaitForRoom",
		Old: "\tif len(all) == 0 || deliver(all) == nil {\n",
		New: "\tif len(all) == 0 || deliver(all) == nil || MUTANT {\n",
	}, {
		Name: "of many who ask some are not looked at", Dir: dir, Test: "TestManyWaits",
		Old: "\tif more {\n\t\tdefer g.look()\n", New: "\tif more && !MUTANT {\n\t\tdefer g.look()\n",
	}, {
		Name: "changes between a watch's read and its request are not looked for", Dir: dir, Test: "TestWatchOfTwoChanges",
		Old: "if g.machine.ChangedAfter(", New: "if !MUTANT && g.machine.ChangedAfter(",
	}, {
		Name: "a watch that was told and has read does not ask anew", Dir: dir, Test: "TestWatchedGroupsRest/raft",
		Old: "\tanew := l.round == 0 || read && l.told\n", New: "\tanew := l.round == 0 || read && l.told && !MUTANT\n",
	}, {
		Name: "old hints count", Dir: dir, Test: "TestPromises",
		Old: "if msg.Round < l.first ||", New: "if msg.Round < l.first && !MUTANT ||",
	}, {
		Name: "promises outlive their connection", Dir: dir, Test: "TestPromises",
		Old: "\t\tdelete(l.promises, m.peer)\n", New: "\t\tif !MUTANT {\n\t\t\tdelete(l.promises, m.peer)\n\t\t}\n",
	}, {
		Name: "one member's word about the members is enough", Dir: dir, Test: "TestPromises",
		Old: "\t\tif n < quorum.", New: "\t\tif !MUTANT && n < quorum.",
	}, {
		Name: "those who wait for quiet keys are not told before the store forgets", Dir: dir, Test: "TestWaitersOfQuietKeys",
		Old: "\tif all || g.seen.beyond(g.oldest, 4) {\n", New: "\tif all || !MUTANT && g.seen.beyond(g.oldest, 4) {\n",
	}, {
		Name: "who waits is told of what it has seen", Dir: dir, Test: "TestWaiters",
		Old: "\t\tfor n := range those {\n\t\t\tif i.Version > n.After {\n",
		New: "\t\tfor n := range those {\n\t\t\tif MUTANT || i.Version > n.After {\n",
	}, {
		Name: "who does not ask again is kept", Dir: dir, Test: "TestWaitersAreBounded",
		Old: "\t\tif now.After(n.until) {\n", New: "\t\tif now.After(n.until) && !MUTANT {\n",
	}})
}
