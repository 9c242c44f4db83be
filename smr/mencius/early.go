package mencius

import (
	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/smr"
	"github.com/foresay/foresay/smr/kit"
)

// maxEarly bounds the commands whose clients want to know early that their positions are fixed.
// Others hear it when they are executed.
const maxEarly = 1 << 16

// wish names a command whose client wants to know that its position is fixed, before it can be
// executed.
type wish struct {
	client  protocol.ID
	session kit.SessionID
	seq     kit.Seq
}

func wishFor(e kit.Entry) wish { return wish{e.Client, e.Session, e.Seq} }

func (r *replica) noteEarly(from protocol.ID, m kit.Request) {
	for _, c := range m.Commands {
		if c.Early && len(r.early) < maxEarly {
			r.early[wish{from, m.Session, c.Seq}] = true
		}
	}
}

// tellDurable tells clients of commands in the own track that are decided from a position on. The
// slots below may be open still.
func (r *replica) tellDurable(env *protocol.Env[smr.Message], l *track, first pos) {
	var out kit.EarlyReplies
	for p := max(first, l.base+1); p <= l.commit && len(r.early) > 0; p++ {
		if e := l.at(p).Entry; e.Kind == kit.Command && r.early[wishFor(e)] {
			delete(r.early, wishFor(e))
			out.Add(e, r.epoch.slot(l, p))
		}
	}
	out.Flush(env)
}
