package fstest

import (
	"bytes"
	"errors"
	"fmt"
	"reflect"
	"slices"

	"github.com/foresay/foresay/keyspace"
	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/specfs"
	"github.com/foresay/foresay/specfs/tree"
)

// A record is a transaction whose results a program was told for good.
type record struct {
	client protocol.ID
	items  []item
	// serial is that of the transaction, or of the state in which it was true if it has changed
	// nothing. 0: of some state from floor to ceiling, as a lease was believed.
	serial specfs.Version
	// floor is what others had been told before: it has to be seen.
	floor, ceiling specfs.Version
}

// judge decides whether all that programs were told is what they would have been told one after
// another, in an order in which nobody is behind what was told before [Speculator §7.4].
type judge struct {
	records []record
	// maybes are transactions of processes that have crashed, which may have been carried out.
	maybes []record
}

func newJudge() *judge { return &judge{} }

func (j *judge) add(r record) { j.records = append(j.records, r) }

func (j *judge) maybe(r record) { j.maybes = append(j.maybes, r) }

// verdict plays all transactions in their order.
func (j *judge) verdict(w *World) error {
	states := []*keyspace.Memory{{}, initial()}
	for serial := specfs.Version(2); serial <= w.serial; serial++ {
		state := states[serial-1]
		writers := 0
		for _, r := range j.records {
			if r.serial != serial {
				continue
			}
			after, wrote, wrong := play(state, serial, r)
			switch {
			case !wrote || wrong != "":
			case writers == 0:
				writers++
				states = append(states, after)
			case w.saw(serial, after) == w.saw(serial, states[serial]):
				writers++
			case w.saw(serial, after):
				states[serial] = after // the other one would have changed something before it
			}
		}
		switch writers {
		case 0:
			after, err := j.untold(w, state, serial)
			switch {
			case err == nil:
			case w.config.Crashes:
				return err
			default:
				after = state // it has removed what has no name
			}
			states = append(states, after)
		case 1:
		default:
			return fmt.Errorf("fstest: %d transactions have serial %d", writers, serial)
		}
	}
	for _, r := range j.records {
		if err := j.fits(states, r); err != nil {
			return err
		}
	}
	return nil
}

// saw reports whether a state may have been the server's after a transaction.
func (w *World) saw(serial specfs.Version, state *keyspace.Memory) bool {
	if serial >= specfs.Version(len(w.seen)) || w.seen[serial] == nil {
		return true
	}
	_, same := alike(w.seen[serial], state)
	return same
}

// errUntold says that of several transactions that were made at once one is nobody's that is known.
var errUntold = errors.New("fstest: it is not known what a process did before it crashed")

// untold returns the state after a transaction of which no program was told: one of a process that
// has crashed, or the server has removed what has no name.
func (j *judge) untold(w *World, state *keyspace.Memory, serial specfs.Version) (*keyspace.Memory, error) {
	if serial >= specfs.Version(len(w.seen)) || w.seen[serial] == nil {
		return nil, errUntold
	}
	seen := w.seen[serial]
	for i, r := range j.maybes {
		after, wrote := replay(state, seen, serial, r)
		if _, same := alike(seen, after); !wrote || !same {
			continue
		}
		j.maybes = slices.Delete(j.maybes, i, i+1)
		return after, nil
	}
	for id := range tree.Orphans(state, 0) {
		reap := state.Copy()
		tree.Do(reap, tree.Call{Serial: serial}, specfs.Reap{ID: id})
		if seen == nil {
			continue // it comes out later what it was
		}
		if _, same := alike(seen, reap); same {
			return reap, nil
		}
	}
	if key, same := alike(seen, state); !same {
		return nil, fmt.Errorf("fstest: nobody made transaction %d, with record %q; %d may have been made",
			serial, key, len(j.maybes))
	}
	return state, nil
}

// replay plays a record of which it is not known whether it happened, nor what its last operation
// came to.
func replay(state, seen *keyspace.Memory, serial specfs.Version, r record) (*keyspace.Memory, bool) {
	after, c := state.Copy(), &counted{}
	for _, it := range r.items {
		if made, ok := it.op.(specfs.Make); ok && made.New == 0 {
			made.New = fresh(state, seen)
			it.op = made
		}
		tree.Do(after, tree.Call{Serial: serial, Witness: c}, it.op)
	}
	return after, c.changed > 0
}

// fresh returns an object that one state has and the other has not.
func fresh(state, seen *keyspace.Memory) specfs.ID {
	for k := range seen.Scan([]byte("o"), []byte("p")) {
		if _, ok := state.Get(k); !ok {
			id, _ := tree.Object(k)
			return id
		}
	}
	return 0
}

// alike reports whether two states are the same but for times, and else a record that is not.
func alike(a, b *keyspace.Memory) (key []byte, same bool) {
	for _, pair := range [][2]*keyspace.Memory{{a, b}, {b, a}} {
		for k, v := range pair[0].Scan(nil, nil) {
			other, ok := pair[1].Get(k)
			if ok && k[0] == 'o' {
				id, _ := tree.Object(k)
				attr := func(m *keyspace.Memory) specfs.Result {
					return timeless(tree.Do(m, tree.Call{}, specfs.GetAttr{ID: id}))
				}
				ok = reflect.DeepEqual(attr(a), attr(b))
			} else {
				ok = ok && bytes.Equal(v, other)
			}
			if !ok {
				return k, false
			}
		}
	}
	return nil, true
}

// fits tells whether a record's results are those of one of its states.
func (j *judge) fits(states []*keyspace.Memory, r record) error {
	if r.serial == 0 {
		r.ceiling = min(r.ceiling, specfs.Version(len(states)-1))
		for s := max(r.floor, 1); s <= r.ceiling; s++ {
			if _, _, wrong := play(states[s], s, r); wrong == "" {
				return nil
			}
		}
		_, _, wrong := play(states[r.ceiling], r.ceiling, r)
		return fmt.Errorf("fstest: client %d read under a lease what was in no state from %d to %d: %s",
			r.client, r.floor, r.ceiling, wrong)
	}
	if r.serial < r.floor {
		return fmt.Errorf("fstest: client %d has transaction %d, and somebody had been told of %d before it began",
			r.client, r.serial, r.floor)
	}
	if _, wrote, wrong := play(states[r.serial-1], r.serial, r); wrote && wrong == "" {
		return nil
	}
	if _, _, wrong := play(states[r.serial], r.serial, r); wrong != "" {
		_, _, before := play(states[r.serial-1], r.serial, r)
		return fmt.Errorf("fstest: client %d was told in transaction %d what is not so: %s; before it: %s",
			r.client, r.serial, wrong, before)
	}
	return nil
}

// initial returns the file system as the server makes it.
func initial() *keyspace.Memory {
	m := &keyspace.Memory{}
	tree.Format(m, tree.Call{Serial: 1}, 0o777)
	return m
}

// counted is a tree.Witness that counts changes.
type counted struct{ changed int }

// Saw is part of tree.Witness.
func (*counted) Saw(specfs.Assumption) {}

// Changed is part of tree.Witness.
func (c *counted) Changed(specfs.Assumption) { c.changed++ }

// play executes a record's operations after a state. It returns whether they change anything, and
// what is wrong with the results that the program was told, "" if nothing.
func play(state *keyspace.Memory, serial specfs.Version, r record) (after *keyspace.Memory, wrote bool, wrong string) {
	after = state.Copy()
	c := &counted{}
	for i, it := range r.items {
		if it.result.Errno == specfs.ESTALE && reaped(state) {
			continue
		}
		got := tree.Do(after, tree.Call{Serial: serial, Witness: c}, it.op)
		if want := it.result; !reflect.DeepEqual(timeless(got), timeless(want)) {
			wrong := fmt.Sprintf("operation %d of %d, %#v: told %+v, it is %+v", i+1, len(r.items), it.op, want, got)
			return after, c.changed > 0, wrong
		}
	}
	return after, c.changed > 0, ""
}

// reaped reports whether the server may have removed an object without a name in a state, which
// nobody told it to be open.
func reaped(state *keyspace.Memory) bool {
	for range tree.Orphans(state, 0) {
		return true
	}
	return false
}

// timeless returns a result without times, which depend on the clients' clocks.
func timeless(r specfs.Result) specfs.Result {
	r.Attr.Modified, r.Attr.Changed, r.Attr.Accessed, r.Attr.Created = 0, 0, 0, 0
	r.Data = slices.Clone(r.Data)
	if len(r.Data) == 0 {
		r.Data = nil
	}
	return r
}
