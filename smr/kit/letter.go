package kit

import (
	"github.com/foresay/foresay/internal/msgtext"
	"github.com/foresay/foresay/internal/wirefmt"
	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/smr"
)

// A Letter is what a replica says to another one, or to itself, with the disk that it says it on. A
// replica that lost its disk is somebody else under the same ID, who does not know what was
// promised: see Admission.Genuine.
type Letter struct {
	Disk Incarnation
	Msg  smr.Message
}

// String returns what is said, for traces.
func (l Letter) String() string { return msgtext.Format(nil).Of(l.Msg) }

// Removed tells a replica that it is no member any more: the sender has executed its removal.
type Removed struct{}

// Inside returns what a message says: what is in it, of a Letter.
func Inside(msg smr.Message) smr.Message {
	if l, ok := msg.(Letter); ok {
		return l.Msg
	}
	return msg
}

// Send sends a message to another replica, or to the replica itself, once what was written before
// is durable.
func (a *Admission) Send(env *protocol.Env[smr.Message], to protocol.ID, msg smr.Message) {
	env.Send(to, Letter{a.own, msg})
}

// SendAhead sends a message to another replica without waiting for what was written before.
func (a *Admission) SendAhead(env *protocol.Env[smr.Message], to protocol.ID, msg smr.Message) {
	env.SendAhead(to, Letter{a.own, msg})
}

// letterTag is the tag of a Letter, which is never in another one.
const letterTag = 28

// NewFormat returns the format of a protocol: the messages of this package, and the protocol's own,
// whose tags are 64 or more.
func NewFormat(protocolName string, version byte, own ...wirefmt.Kind[smr.Message]) *wirefmt.Format[smr.Message] {
	var f *wirefmt.Format[smr.Message]
	letter := Kind(letterTag, func(c *wirefmt.Coder, m *Letter) {
		wirefmt.Uint(c, &m.Disk)
		f.Inner(c, letterTag, &m.Msg)
	})
	f = wirefmt.NewFormat(protocolName, version, append(append(sharedKinds(), letter), own...)...)
	return f
}

// Kind declares a message of a protocol, by its tag and its fields.
func Kind[T any](tag byte, fields func(*wirefmt.Coder, *T)) wirefmt.Kind[smr.Message] {
	return wirefmt.NewKind[smr.Message](tag, fields)
}
