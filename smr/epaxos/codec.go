package epaxos

import (
	"github.com/foresay/foresay/internal/wirefmt"
	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/smr"
)

// Codec returns the codec of the protocol's messages and records.
func Codec() protocol.Codec[smr.Message] {
	return wirefmt.NewFormat("epaxos", 1, append(smr.SharedKinds(),
		kind(64, func(w *wire, m PreAccept) { w.head(m.Head); w.id(m.ID); w.command(m.Cmd); w.deps(m.Deps) },
			func(r *reader) PreAccept { return PreAccept{r.head(), r.id(), r.command(), r.deps()} }),
		kind(65, func(w *wire, m PreAccepted) { w.head(m.Head); w.id(m.ID); w.deps(m.Deps); w.Bool(m.Fenced) },
			func(r *reader) PreAccepted { return PreAccepted{r.head(), r.id(), r.deps(), r.Bool()} }),
		kind(66, func(w *wire, m Accept) {
			w.head(m.Head)
			w.id(m.ID)
			w.ballot(m.Ballot)
			w.command(m.Cmd)
			w.deps(m.Deps)
		}, func(r *reader) Accept { return Accept{r.head(), r.id(), r.ballot(), r.command(), r.deps()} }),
		kind(67, func(w *wire, m Accepted) { w.head(m.Head); w.id(m.ID); w.ballot(m.Ballot) },
			func(r *reader) Accepted { return Accepted{r.head(), r.id(), r.ballot()} }),
		kind(68, func(w *wire, m Commit) { w.head(m.Head); w.id(m.ID); w.command(m.Cmd); w.deps(m.Deps) },
			func(r *reader) Commit { return Commit{r.head(), r.id(), r.command(), r.deps()} }),
		kind(69, func(w *wire, m Recover) { w.head(m.Head); w.id(m.ID); w.ballot(m.Ballot) },
			func(r *reader) Recover { return Recover{r.head(), r.id(), r.ballot()} }),
		kind(70, writeRecovered, readRecovered),
		kind(71, func(w *wire, m Validate) {
			w.head(m.Head)
			w.id(m.ID)
			w.ballot(m.Ballot)
			w.command(m.Cmd)
			w.deps(m.Deps)
		}, func(r *reader) Validate { return Validate{r.head(), r.id(), r.ballot(), r.needed(), r.deps()} }),
		kind(72, writeValidated, readValidated),
		kind(73, func(w *wire, m Waiting) { w.head(m.Head); w.id(m.ID); w.Uint(m.Agreed) },
			func(r *reader) Waiting { return Waiting{r.head(), r.id(), r.Uint()} }),
		kind(74, func(w *wire, m Refusal) { w.head(m.Head); w.id(m.ID); w.ballot(m.Promised) },
			func(r *reader) Refusal { return Refusal{r.head(), r.id(), r.ballot()} }),
		kind(75, func(w *wire, m News) { w.head(m.Head); w.deps(m.Top) },
			func(r *reader) News { return News{r.head(), r.deps()} }),
		kind(76, writeWant, readWant),
		kind(77, writePoll, readPoll),
		kind(78, func(w *wire, m Polled) { w.head(m.Head); w.Uint(m.Round); w.deps(m.Deps) },
			func(r *reader) Polled { return Polled{r.head(), r.Uint(), r.deps()} }),
		kind(79, func(w *wire, m Settled) { w.head(m.Head); w.id(m.ID) },
			func(r *reader) Settled { return Settled{r.head(), r.id()} }),
		kind(80, func(w *wire, m Submit) { w.Uint(uint64(m.After)); smr.AppendRequest(&w.Writer, m.Request) },
			func(r *reader) Submit { return Submit{smr.Slot(r.Uint()), smr.TakeRequest(r.Reader)} }),
		kind(81, func(w *wire, m Lacking) { w.head(m.Head); w.id(m.ID) },
			func(r *reader) Lacking { return Lacking{r.head(), r.id()} }),
		kind(90, writeRecord, readRecord),
	)...)
}

// wire and reader write and read what the messages are made of.
type wire struct{ wirefmt.Writer }

type reader struct{ *wirefmt.Reader }

func kind[T any](tag byte, write func(*wire, T), read func(*reader) T) wirefmt.Kind[smr.Message] {
	return wirefmt.NewKind[smr.Message](tag,
		func(w *wirefmt.Writer, m T) {
			x := wire{*w}
			write(&x, m)
			*w = x.Writer
		},
		func(r *wirefmt.Reader) T { return read(&reader{r}) })
}

func (w *wire) head(h Head) { w.Uint(uint64(h.From)); w.Uint(h.Gen) }

func (r *reader) head() Head { return Head{smr.Incarnation(r.Uint()), r.Uint()} }

func (w *wire) id(i ID) { w.Uint(uint64(i.Row)); w.Uint(i.Index) }

func (r *reader) id() ID { return ID{protocol.ID(r.Uint32()), r.Uint()} }

func (w *wire) ballot(b Ballot) { w.Uint(uint64(b)) }

func (r *reader) ballot() Ballot { return Ballot(r.Uint()) }

func (w *wire) deps(d Deps) {
	w.List(len(d))
	for _, x := range d {
		w.Uint(x)
	}
}

func (r *reader) deps() Deps {
	var d Deps
	for range r.List(1) {
		d = append(d, r.Uint())
	}
	return d
}

func (w *wire) command(c *Command) {
	if c == nil {
		w.Buf = append(w.Buf, 0)
		return
	}
	w.Buf = append(w.Buf, byte(c.Kind))
	if c.Kind == Nothing {
		return
	}
	w.Uint(c.Stamp)
	if c.Kind != Work {
		return
	}
	w.List(len(c.Entries))
	for _, e := range c.Entries {
		smr.AppendEntry(&w.Writer, e)
	}
}

func (r *reader) command() *Command {
	k := CommandKind(r.Byte())
	if k == 0 {
		return nil
	}
	if k > Fence {
		r.Failf("there is no %v", k)
		return nil
	}
	c := &Command{Kind: k}
	if k == Nothing {
		return c
	}
	c.Stamp = r.Uint()
	if k == Work {
		for range r.List(smr.MinEntryBytes) {
			if r.Err() != nil {
				return nil
			}
			c.Entries = append(c.Entries, smr.ReadEntry(r.Reader))
		}
	}
	return c
}

// needed reads a command that has to be there.
func (r *reader) needed() *Command {
	c := r.command()
	if c == nil {
		r.Failf("there is no command")
	}
	return c
}

func writeRecovered(w *wire, m Recovered) {
	w.head(m.Head)
	w.id(m.ID)
	w.ballot(m.Ballot)
	w.Buf = append(w.Buf, m.Phase)
	w.ballot(m.Voted)
	w.command(m.Cmd)
	w.deps(m.Init)
	w.deps(m.Deps)
}

func readRecovered(r *reader) Recovered {
	return Recovered{r.head(), r.id(), r.ballot(), r.phase(), r.ballot(), r.command(), r.deps(), r.deps()}
}

func (r *reader) phase() uint8 {
	p := r.Byte()
	if p > uint8(committed) {
		r.Failf("there is no phase %d", p)
	}
	return p
}

func writeValidated(w *wire, m Validated) {
	w.head(m.Head)
	w.id(m.ID)
	w.ballot(m.Ballot)
	w.Bool(m.Invalid)
	w.List(len(m.Pending))
	for _, i := range m.Pending {
		w.id(i)
	}
}

func readValidated(r *reader) Validated {
	m := Validated{Head: r.head(), ID: r.id(), Ballot: r.ballot(), Invalid: r.Bool()}
	for range r.List(2) {
		m.Pending = append(m.Pending, r.id())
	}
	return m
}

func writeWant(w *wire, m Want) {
	w.head(m.Head)
	w.List(len(m.Missing))
	for _, x := range m.Missing {
		w.Uint(uint64(x.Row))
		w.Uint(x.First)
		w.Uint(x.Last)
	}
}

func readWant(r *reader) Want {
	m := Want{Head: r.head()}
	for range r.List(3) {
		m.Missing = append(m.Missing, Range{protocol.ID(r.Uint32()), r.Uint(), r.Uint()})
	}
	return m
}

func writePoll(w *wire, m Poll) {
	w.head(m.Head)
	w.Uint(m.Round)
	w.Bool(m.All)
	w.List(len(m.Keys))
	for _, k := range m.Keys {
		w.String(k)
	}
}

func readPoll(r *reader) Poll {
	m := Poll{Head: r.head(), Round: r.Uint(), All: r.Bool()}
	for range r.List(1) {
		m.Keys = append(m.Keys, r.String())
	}
	return m
}

func writeRecord(w *wire, m InstanceRecord) {
	w.id(m.ID)
	w.Buf = append(w.Buf, m.Phase)
	w.ballot(m.Ballot)
	w.ballot(m.Voted)
	w.Bool(m.Nothing)
	w.command(m.Cmd)
	w.deps(m.Init)
	w.deps(m.Deps)
}

func readRecord(r *reader) InstanceRecord {
	return InstanceRecord{r.id(), r.phase(), r.ballot(), r.ballot(), r.Bool(), r.command(), r.deps(), r.deps()}
}
