package fstest

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/specfs"
	"github.com/foresay/foresay/specfs/view"
)

// A program makes random operations. What it makes depends on what it was told before, so going
// back to an earlier state is all that it takes to undo it.
type program struct {
	world  *World
	id     protocol.ID
	system view.System
	state  state
	// items are the operations that are not settled, in their order.
	items   []item
	pending *item
	tag     uint64
	era     specfs.Era
	refused int
}

// state is a program between two operations.
type state struct {
	rnd     rand.PCG
	objects []known
	left    int // operations that it still makes
	epoch   int // how many of them before it ends the epoch
	wide    bool
}

// known is an object of which a program has heard.
type known struct {
	id   specfs.ID
	kind specfs.Kind
}

// item is an operation, and what a program was told.
type item struct {
	op     specfs.Op
	result specfs.Result
	epoch  specfs.Number
	floor  specfs.Version // the highest serial that anybody had been told when it was asked for
	before state
}

func (p *program) start() { p.next(0) }

// next makes the next operation after a time.
func (p *program) next(after time.Duration) {
	p.tag++
	tag := p.tag
	p.world.sim.After(after, func() {
		if tag != p.tag {
			return // taken back meanwhile
		}
		if p.state.left == 0 {
			p.world.sim.Deliver(p.id, view.Cut{})
			return
		}
		before := p.state.clone()
		p.state.left--
		op := p.state.op()
		p.pending = &item{op: op, before: before, floor: p.world.known}
		p.world.sim.Deliver(p.id, view.Do{Tag: tag, Era: p.era, Op: op})
	})
}

// crash ends the process. What became of what was not settled nobody knows.
func (p *program) crash() {
	p.tag++
	left := p.items
	if p.pending != nil {
		left = append(left, *p.pending)
	}
	for len(left) > 0 {
		n := 1
		for n < len(left) && p.system.Behind && left[n].epoch == left[0].epoch {
			n++
		}
		p.world.judge.maybe(record{client: p.id, items: left[:n]})
		left = left[n:]
	}
	p.items, p.pending, p.era = nil, nil, 0
}

func (p *program) done() bool { return p.state.left == 0 && p.pending == nil && len(p.items) == 0 }

func (p *program) onDone(m view.Done) {
	if p.pending == nil || m.Tag != p.tag {
		return
	}
	it := *p.pending
	p.pending = nil
	it.result, it.epoch = m.Result, m.Epoch
	if made, ok := it.op.(specfs.Make); ok {
		made.New = m.Result.ID
		it.op = made
	}
	p.state.learn(it)
	switch {
	case p.system.Behind:
		p.items = append(p.items, it)
		if p.state.epoch--; p.state.epoch <= 0 {
			p.state.epoch = 1 + p.state.roll(6)
			p.world.sim.Deliver(p.id, view.Cut{})
		}
	case m.Serial == 0:
		p.world.judge.add(record{client: p.id, items: []item{it}, floor: it.floor, ceiling: p.world.reached()})
	default:
		p.world.settle(record{client: p.id, items: []item{it}, floor: it.floor, serial: m.Serial})
	}
	p.next(time.Duration(p.state.roll(4)) * time.Millisecond)
}

func (p *program) onSettled(m view.Settled) {
	i := slices.IndexFunc(p.items, func(it item) bool { return it.epoch != m.Epoch })
	if i < 0 {
		i = len(p.items)
	}
	r := record{client: p.id, items: slices.Clone(p.items[:i]), serial: m.Serial, ceiling: p.world.reached()}
	for _, it := range r.items {
		r.floor = max(r.floor, it.floor)
	}
	p.items = p.items[i:]
	p.world.settle(r)
}

// onRefused goes back to before an epoch.
func (p *program) onRefused(m view.Refused) {
	p.refused++
	p.era = m.Era
	i := slices.IndexFunc(p.items, func(it item) bool { return it.epoch >= m.Epoch })
	if i < 0 {
		panic(fmt.Sprintf("fstest: epoch %d is refused, which has nothing", m.Epoch))
	}
	p.state = p.items[i].before
	p.items, p.pending = p.items[:i], nil
	p.next(time.Millisecond)
}

func (s state) clone() state {
	s.objects = slices.Clone(s.objects)
	return s
}

func (s *state) roll(n int) int { return int(s.rnd.Uint64() % uint64(n)) }

// learn takes what the program was told.
func (s *state) learn(it item) {
	add := func(k known) {
		if !slices.Contains(s.objects, k) && k.id != 0 {
			s.objects = append(s.objects, k)
		}
	}
	switch it.op.(type) {
	case specfs.Make, specfs.Lookup:
		add(known{it.result.ID, it.result.Attr.Kind})
	case specfs.List:
		for _, e := range it.result.Entries {
			add(known{e.ID, e.Kind})
		}
	}
	if n := len(s.objects); n > 12 {
		s.objects = s.objects[n-12:]
	}
}

// any returns an object of a kind, the root if there is none that is a directory.
func (s *state) any(k specfs.Kind) specfs.ID {
	var of []specfs.ID
	if k == specfs.Directory {
		of = append(of, specfs.Root)
	}
	for _, o := range s.objects {
		if o.kind == k {
			of = append(of, o.id)
		}
	}
	if len(of) == 0 {
		return 0
	}
	return of[s.roll(len(of))]
}

func (s *state) name() string { return string(rune('a' + s.roll(4))) }

func (s *state) dir() specfs.ID { return s.any(specfs.Directory) }

// op returns a random operation.
func (s *state) op() specfs.Op {
	file := s.any(specfs.File)
	if s.wide && s.roll(2) == 0 {
		return s.wideOp(file)
	}
	if file == 0 || s.roll(3) == 0 {
		return s.dirOp()
	}
	switch s.roll(8) {
	case 0, 1, 2:
		return specfs.ReadAt{ID: file, Length: 64}
	case 3:
		return specfs.WriteAt{ID: file, Append: true, Data: []byte{byte('a' + s.roll(26))}}
	case 4:
		return specfs.WriteAt{ID: file, Offset: uint64(s.roll(40)), Data: []byte{byte('A' + s.roll(26)), '.'}}
	case 5:
		return specfs.GetAttr{ID: file}
	case 6:
		return specfs.SetAttr{ID: file, Set: specfs.SetSize, Size: uint64(s.roll(3) * 10)}
	}
	return specfs.SetXattr{ID: file, Name: "user.x", Value: []byte{byte(s.roll(256))}, Create: s.roll(2) == 0}
}

// wideOp returns an operation of a kind that is not so frequent.
func (s *state) wideOp(file specfs.ID) specfs.Op {
	const block = 16 << 10
	at := uint64(s.roll(4)*block + s.roll(3) - 1)
	if at > 1<<20 {
		at = 0
	}
	if file != 0 {
		switch s.roll(9) {
		case 0:
			return specfs.WriteAt{ID: file, Offset: at, Data: make([]byte, s.roll(2*block))}
		case 1:
			return specfs.WriteAt{ID: file, Offset: at, Data: []byte("across")}
		case 2:
			return specfs.ReadAt{ID: file, Offset: at, Length: s.roll(3 * block)}
		case 3:
			return specfs.SetAttr{ID: file, Set: specfs.SetSize, Size: at}
		case 4:
			return specfs.Allocate{ID: file, Offset: at, Length: uint64(1 + s.roll(block)), Keep: true, Punch: s.roll(2) == 0}
		case 5:
			return specfs.Link{ID: file, Parent: s.dir(), Name: s.name()}
		case 6:
			return specfs.ListXattrs{ID: file}
		case 7:
			return specfs.RemoveXattr{ID: file, Name: "user.x"}
		case 8:
			return specfs.SetAttr{ID: file, Set: specfs.SetMode, Mode: specfs.Mode(s.roll(0o1000))}
		}
	}
	switch s.roll(5) {
	case 0, 1:
		return specfs.Rename{From: s.dir(), Name: s.name(), To: s.dir(), NewName: s.name(), Exchange: true}
	case 2:
		return specfs.ParentOf{ID: s.dir()}
	case 3:
		return specfs.List{ID: s.dir(), Most: 1 + s.roll(3), After: s.name()}
	}
	return specfs.Make{Parent: s.dir(), Name: s.name(), Kind: specfs.Directory, Mode: 0o777}
}

// dirOp returns an operation on a directory.
func (s *state) dirOp() specfs.Op {
	switch s.roll(12) {
	case 0, 1:
		return specfs.Lookup{Parent: s.dir(), Name: s.name()}
	case 2, 3:
		return specfs.List{ID: s.dir(), Most: 100}
	case 4, 5:
		return specfs.Make{Parent: s.dir(), Name: s.name(), Kind: specfs.File, Mode: 0o644}
	case 6:
		return specfs.Make{Parent: s.dir(), Name: s.name(), Kind: specfs.Directory, Mode: 0o755}
	case 7:
		return specfs.Unlink{Parent: s.dir(), Name: s.name()}
	case 8:
		return specfs.RemoveDir{Parent: s.dir(), Name: s.name()}
	case 9, 10:
		return specfs.Rename{From: s.dir(), Name: s.name(), To: s.dir(), NewName: s.name(), Replace: true}
	}
	return specfs.GetAttr{ID: s.dir()}
}
