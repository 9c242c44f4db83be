package kit

import (
	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/smr"
)

// Forget says that an entry that was taken is not proposed. The protocol answers the client.
func (d *Desk) Forget(e Entry) {
	t := ticketFor(e)
	d.bytes -= d.taken[t].bytes
	delete(d.taken, t)
}

// GiveBack says that entries that were taken cannot be proposed now. The clients are told that
// there is too much to do, and ask again.
func (d *Desk) GiveBack(env *protocol.Env[smr.Message], entries []Entry) {
	for _, e := range entries {
		d.Forget(e)
		switch e.Kind {
		case OpenSession:
			env.Send(e.Client, Busy{Open: true})
		case Command, ChangeMembers:
			env.Send(e.Client, Busy{Session: e.Session, Seqs: []Seq{e.Seq}})
		}
	}
}
