package multipaxos

import (
	"fmt"

	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/smr"
	"github.com/foresay/foresay/smr/kit"
)

// slotLog is what a replica has accepted: one vote for each slot above base, and where the votes
// are on disk. It has no gaps, so one number can say how far it is another replica's log. A slot
// keeps the latest vote only: phase 1 asks for no other.
type slotLog struct {
	base    smr.Slot
	slots   kit.Paged[vote] // slots.At(i) is slot base+1+i
	journal kit.Journal
}

func (l *slotLog) last() smr.Slot { return l.base + smr.Slot(l.slots.Len()) }

func (l *slotLog) at(s smr.Slot) vote { return *l.slots.At(int(s - l.base - 1)) }

// set puts a vote in a slot that is at most one beyond the last; slots up to base are done with.
func (l *slotLog) set(s smr.Slot, v vote) {
	switch {
	case s <= l.base:
	case s <= l.last():
		*l.slots.At(int(s - l.base - 1)) = v
	case s == l.last()+1:
		l.slots.Add(v)
	default:
		panic(fmt.Sprintf("multipaxos: slot %d leaves a gap after %d", s, l.last()))
	}
}

// write puts votes for consecutive slots into the log, and writes them down. They count as votes
// once they are on disk, so whatever tells of them is sent with Send.
func (l *slotLog) write(env *protocol.Env[smr.Message], rec acceptRecord) {
	for i, e := range rec.Entries {
		l.set(rec.First+smr.Slot(i), vote{rec.Ballot, e})
	}
	l.journal.Wrote(env.Append(rec), rec.First+smr.Slot(len(rec.Entries))-1)
}

func (l *slotLog) promise(env *protocol.Env[smr.Message], rec promiseRecord) {
	l.journal.Promised(env.Append(rec))
}

// load takes over a record from the disk. Records come in the order of writing: a later one has the
// later vote for a slot. The log may begin above slot 1, after a cut, but has no gap from there on.
func (l *slotLog) load(rec protocol.Record[smr.Message]) error {
	switch m := rec.Msg.(type) {
	case promiseRecord:
		l.journal.Promised(rec.Index)
	case acceptRecord:
		if l.slots.Len() == 0 && m.First > l.base+1 {
			l.base = m.First - 1
		}
		if m.First > l.last()+1 {
			return fmt.Errorf("record %d begins with slot %d, after a gap behind %d", rec.Index, m.First, l.last())
		}
		for i, e := range m.Entries {
			l.set(m.First+smr.Slot(i), vote{m.Ballot, e})
		}
		l.journal.Found(rec.Index, m.First+smr.Slot(len(m.Entries))-1)
	default:
		return fmt.Errorf("record %d is a %T, which is none of the protocol's", rec.Index, rec.Msg)
	}
	return nil
}

// cut forgets the slots up to one, in memory, and on disk as far as whole records allow. The
// promise is written again: its record may be among those that are cut (TestPromiseSurvivesACut).
func (l *slotLog) cut(env *protocol.Env[smr.Message], to smr.Slot, p promiseRecord) {
	if to <= l.base {
		return
	}
	l.forget(to)
	l.journal.Cut(env, to, p)
}

// forget forgets the slots up to one in memory.
func (l *slotLog) forget(to smr.Slot) {
	if to > l.base {
		l.slots.Forget(int(min(to-l.base, smr.Slot(l.slots.Len()))))
		l.base = to
	}
}

// entries returns what was accepted for the slots from first to last, or as many of them as fit in
// one message.
func (l *slotLog) entries(first, last smr.Slot) []kit.Entry {
	var out []kit.Entry
	var message kit.Page
	for s := first; s <= last; s++ {
		e := l.at(s).Entry
		if !message.Takes(e) {
			break
		}
		out = append(out, e)
	}
	return out
}
