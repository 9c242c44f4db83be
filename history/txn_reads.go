package history

import (
	"fmt"
)

// readChecker goes through the reads of all transactions, in the order of the history.
type readChecker struct {
	x      *txnIndex
	b      *graphBuilder
	chains []chain
	keys   []keyReads // by key
	// updater gives the last transaction that read a version and wrote the key, by write, where the
	// order does not tell; keyReads has the initial one's.
	updater []int32
}

// keyReads is what the present transaction did with a key.
type keyReads struct {
	txn     int32 // whom the rest is about
	own     int32 // how often it wrote
	read    int32 // the version that it read last, of those before its first write
	hasRead bool
	cursor  int32 // of the key's writes, how many belong to this and earlier transactions
	updater int32 // as in readChecker.updater, of the initial version
}

func (b *graphBuilder) addReads(chains []chain) {
	c := &readChecker{
		x: b.x, b: b, chains: chains,
		keys:    make([]keyReads, len(b.x.keys)),
		updater: make([]int32, len(b.x.writes)),
	}
	for i := range c.keys {
		c.keys[i].txn, c.keys[i].updater = -1, -1
	}
	for i := range c.updater {
		c.updater[i] = -1
	}
	for t := range b.x.h.Txns {
		for i := range b.x.h.Txns[t].Accesses {
			c.access(int32(t), b.x.accessKey[t][i], &b.x.h.Txns[t].Accesses[i])
		}
	}
}

func (c *readChecker) access(t, k int32, a *Access) {
	state := &c.keys[k]
	if state.txn != t {
		*state = keyReads{txn: t, cursor: state.cursor, updater: state.updater}
	}
	if a.Kind == Write || a.Kind == Append {
		if state.own == 0 && state.hasRead && c.x.seen[t] {
			c.updates(t, k, state)
		}
		state.own++
		state.cursor++
		return
	}
	if !c.x.seen[t] {
		return
	}
	w, ok := int32(writeInitial), false
	if a.Kind == Read {
		w, ok = c.register(t, k, state, a.Value)
	} else {
		w, ok = c.list(t, k, state, a.List)
	}
	if !ok {
		return
	}
	if state.own == 0 {
		state.read, state.hasRead = w, true
	}
	place := int32(noPlace)
	if w >= 0 {
		place = c.x.writes[w].place
		if writer := c.x.writes[w].txn; !c.x.writes[w].final && c.x.seen[writer] {
			c.report(G1b, t, w, "%v read version %q of %q, which %v replaced itself before it committed")
		}
	}
	c.b.addRead(&c.chains[k], t, k, w, place)
}

func (c *readChecker) report(p Phenomenon, t, w int32, format string) {
	of := c.x.writes[w]
	c.x.report.add(Anomaly{Phenomenon: p, Txns: []TxnID{c.x.id(t), c.x.id(of.txn)}}, func() string {
		return fmt.Sprintf(format, c.x.id(t), of.value, c.x.keys[of.key].name, c.x.id(of.txn))
	})
}

// register returns the version that a transaction read of another one's, or false.
func (c *readChecker) register(t, k int32, state *keyReads, value string) (w int32, ok bool) {
	w = c.x.find(k, value)
	own := w >= 0 && c.x.writes[w].txn == t
	switch {
	case state.own > 0:
		if last := c.x.keys[k].all[state.cursor-1]; w != last {
			c.internal(t, k, fmt.Sprintf("version %q", value), fmt.Sprintf("it had written %q", c.x.writes[last].value))
		}
		return 0, false
	case own:
		c.internal(t, k, fmt.Sprintf("version %q", value), "it wrote that only later")
		return 0, false
	case w == writeGarbage:
		c.garbage(t, k, value)
		return 0, false
	case w >= 0 && c.x.outcome(w) == Failed:
		c.report(G1a, t, w, "%v read version %q of %q, by %v, which aborted")
	}
	return w, true
}

// list returns the last element that a transaction read of another one's, or false. What it
// appended itself must be at the end.
func (c *readChecker) list(t, k int32, state *keyReads, list []string) (w int32, ok bool) {
	key := &c.x.keys[k]
	others := len(list) - int(state.own)
	for i, own := range key.all[state.cursor-state.own : state.cursor] {
		if others < 0 || list[others+i] != c.x.writes[own].value {
			c.internal(t, k, fmt.Sprintf("the list %q", list), fmt.Sprintf("it had appended %q", c.x.writes[own].value))
			return 0, false
		}
	}
	list = list[:others]
	for _, place := range key.dirty {
		if int(place) < len(list) {
			c.report(G1a, t, key.writes[place], "%v read element %q of %q, by %v, which aborted")
		}
	}
	if len(list) == 0 {
		return writeInitial, true
	}
	last := list[len(list)-1]
	w = c.x.find(k, last)
	switch {
	case w == writeGarbage:
		c.garbage(t, k, last)
		return 0, false
	case c.x.writes[w].txn == t:
		c.internal(t, k, fmt.Sprintf("the list %q", list), fmt.Sprintf("it appended %q only later, or once", last))
		return 0, false
	case c.x.outcome(w) == Failed && c.x.writes[w].place == noPlace:
		c.report(G1a, t, w, "%v read element %q of %q, by %v, which aborted")
	}
	return w, true
}

func (c *readChecker) internal(t, k int32, read, but string) {
	c.x.report.add(Anomaly{Phenomenon: Internal, Txns: []TxnID{c.x.id(t)}}, func() string {
		return fmt.Sprintf("%v read %s of %q, but %s", c.x.id(t), read, c.x.keys[k].name, but)
	})
}

func (c *readChecker) garbage(t, k int32, value string) {
	c.x.report.add(Anomaly{Phenomenon: GarbageRead, Txns: []TxnID{c.x.id(t)}}, func() string {
		return fmt.Sprintf("%v read version %q of %q, which nobody wrote", c.x.id(t), value, c.x.keys[k].name)
	})
}

// updates reports a lost update if the transaction replaces a version that another one replaced
// before it. Adya calls that G-cursor: a cycle on one key. Where the order is not known, two that
// replace the same version are enough.
func (c *readChecker) updates(t, k int32, state *keyReads) {
	if c.x.report.Level.cycles() < GNonadjacent {
		return
	}
	other := int32(-1)
	chain, i := &c.chains[k], 0
	if state.read >= 0 {
		i = len(chain.writes)
		if place := c.x.writes[state.read].place; place != noPlace {
			i = int(chain.after[place])
		}
	}
	for state.read >= 0 && i < len(chain.writes) && c.x.writes[chain.writes[i]].txn == c.x.writes[state.read].txn {
		i++ // of an intermediate read
	}
	if i < len(chain.writes) {
		other = c.x.writes[chain.writes[i]].txn
	} else {
		first := &state.updater
		if state.read >= 0 {
			first = &c.updater[state.read]
		}
		if *first >= 0 {
			other = *first
		}
		*first = t
	}
	if other < 0 || other == t {
		return
	}
	c.x.report.add(Anomaly{Phenomenon: LostUpdate, Txns: []TxnID{c.x.id(other), c.x.id(t)}}, func() string {
		version := "nothing"
		if state.read >= 0 {
			version = fmt.Sprintf("version %q", c.x.writes[state.read].value)
		}
		return fmt.Sprintf("%v read %s of %q and wrote the key, but %v had replaced that meanwhile",
			c.x.id(t), version, c.x.keys[k].name, c.x.id(other))
	})
}
