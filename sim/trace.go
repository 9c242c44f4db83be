package sim

import (
	"fmt"
	"io"
	"time"

	"github.com/foresay/foresay/internal/msgtext"
	"github.com/foresay/foresay/protocol"
)

// A trace keeps the last things that happened, and writes all of them if it is to.
type trace[M any] struct {
	out  io.Writer // nil: only keep
	ring []line[M]
	next int // in ring
	full bool
	off  bool
}

// A line is one thing that happened. It becomes text only if somebody wants to read it.
type line[M any] struct {
	at     time.Duration
	step   uint64
	what   action
	node   protocol.ID
	peer   protocol.ID
	effect protocol.Kind
	n      uint64
	timer  protocol.Timer
	msg    M
	key    []byte
	value  []byte
	text   string
}

// action is what a line tells: an event, or one of these.
type action uint8

const (
	actSent action = iota + 100
	actLost
	actEffect
	actNote
)

func newTrace[M any](out io.Writer, keep int) trace[M] {
	return trace[M]{out: out, ring: make([]line[M], max(keep, 0)), off: out == nil && keep <= 0}
}

func (t *trace[M]) add(l *line[M]) {
	if t.out != nil {
		out := *l // a copy, so that l need not be allocated
		fmt.Fprintln(t.out, &out)
	}
	if len(t.ring) == 0 {
		return
	}
	t.ring[t.next] = *l
	if t.next++; t.next == len(t.ring) {
		t.next, t.full = 0, true
	}
}

// kept goes through the lines that are kept, oldest first.
func (t *trace[M]) kept(yield func(*line[M]) bool) {
	from := 0
	n := t.next
	if t.full {
		from, n = t.next, len(t.ring)
	}
	for i := range n {
		if !yield(&t.ring[(from+i)%len(t.ring)]) {
			return
		}
	}
}

func (t *trace[M]) event(s *Sim[M], n *node[M], e *event[M]) {
	if t.off {
		return
	}
	l := line[M]{at: s.now, step: s.steps, what: action(e.kind), peer: e.from, n: e.n, timer: e.timer, msg: e.msg}
	if n != nil {
		l.node = n.id
	}
	t.add(&l)
}

func (t *trace[M]) sent(s *Sim[M], n *node[M], to protocol.ID, msg M) {
	if !t.off {
		t.add(&line[M]{at: s.now, step: s.steps, what: actSent, node: n.id, peer: to, msg: msg})
	}
}

func (t *trace[M]) lost(s *Sim[M], n *node[M], to protocol.ID, why string) {
	if !t.off {
		t.add(&line[M]{at: s.now, step: s.steps, what: actLost, node: n.id, peer: to, text: why})
	}
}

func (t *trace[M]) effect(s *Sim[M], n *node[M], e *protocol.Effect[M]) {
	if !t.off && e.Kind.Durable() {
		t.add(&line[M]{at: s.now, step: s.steps, what: actEffect, node: n.id, effect: e.Kind, n: e.Index, msg: e.Msg,
			key: e.Key, value: e.Value})
	}
}

// note puts a line of text in, about a node or, if that is nil, all of the simulation.
func (t *trace[M]) note(s *Sim[M], n *node[M], text string) {
	if t.off {
		return
	}
	l := line[M]{at: s.now, step: s.steps, what: actNote, text: text}
	if n != nil {
		l.node = n.id
	}
	t.add(&l)
}

// String returns a line of text, such as "12.5ms #17 node 2: receives from 1:
// Accept ballot=1.1 first=4".
func (l *line[M]) String() string {
	head := fmt.Sprintf("%v #%d ", l.at, l.step)
	if l.node != 0 {
		head += fmt.Sprintf("node %d: ", l.node)
	}
	switch l.what {
	case action(evStart):
		return head + "starts"
	case action(evReceive):
		return head + "receives from " + peerName(l.peer) + ": " + describe(l.msg)
	case action(evExpire):
		return head + "timer " + describe(l.timer) + " runs out"
	case action(evBroken):
		return head + "learns that messages from " + peerName(l.peer) + " may be lost"
	case action(evServed):
		return head + "is done with a call"
	case action(evSync):
		return head + fmt.Sprintf("write %d is durable", l.n)
	case action(evApp):
		return head + "its application receives: " + describe(l.msg)
	case action(evResume):
		return head + "goes on"
	case action(evCall):
		return head + "what was planned is done"
	case action(evFault):
		return head + "the next fault"
	case actSent:
		return head + "  sends to " + peerName(l.peer) + ": " + describe(l.msg)
	case actLost:
		return head + "  to " + peerName(l.peer) + " it is lost: " + l.text
	case actEffect:
		return head + "  " + l.effectText()
	}
	return head + l.text
}

func (l *line[M]) effectText() string {
	switch l.effect {
	case protocol.KindAppend:
		return fmt.Sprintf("appends record %d: %s", l.n, describe(l.msg))
	case protocol.KindTruncate:
		return fmt.Sprintf("truncates its log before %d", l.n)
	case protocol.KindPut:
		return fmt.Sprintf("puts %q: %s", shorten(string(l.key)), quoteBytes(l.value))
	default:
		return fmt.Sprintf("deletes %q", shorten(string(l.key)))
	}
}

func peerName(id protocol.ID) string {
	if id == protocol.App {
		return "its application"
	}
	return fmt.Sprint(id)
}

// describe returns a value for people: its kind and what it holds.
func describe(v any) string {
	switch v := v.(type) {
	case nil:
		return "nil"
	case string:
		return fmt.Sprintf("%q", shorten(v))
	}
	return shorten(msgtext.Format(nil).Of(v))
}

func quoteBytes(b []byte) string {
	const limit = 32
	if len(b) > limit {
		return fmt.Sprintf("%d bytes, %x...", len(b), b[:limit])
	}
	return fmt.Sprintf("%q", b)
}

func shorten(s string) string {
	const limit = 240
	if len(s) > limit {
		return s[:limit] + "..."
	}
	return s
}
