package protocol

import "time"

// An ID names a participant of a protocol: a replica or a client. No two participants that can
// reach one another share one, and a participant that has lost its disk comes back with another.
type ID uint32

// App is the local application of a node: it asks by messages from App, and is answered by messages
// to App. It is never the sender of a message from the network.
const App ID = 0

// A Timer names a timer of a node. It is a comparable value, such as viewTimer{3}; each value is a
// timer of its own.
type Timer any

// A Record is an entry of a node's log, as it is given back after a restart.
type Record[M any] struct {
	Index uint64 // what Append returned for it
	Msg   M
}

// A Node is one participant of a protocol whose messages and records are of type M. Its effects
// depend only on its inputs, env.Now, env.Rand and the key space. It keeps no env, and no slice of
// one, after a call.
type Node[M any] interface {
	// Start is called once, before all else, with the records that survived, in order of their
	// indices.
	Start(env *Env[M], log []Record[M])
	// Receive is called with each message that arrives. Whatever msg holds, it must not panic.
	Receive(env *Env[M], from ID, msg M)
	// Expire is called when a timer has run out.
	Expire(env *Env[M], t Timer)
}

// Linked is a Node that relies on the order of messages.
type Linked[M any] interface {
	Node[M]
	// Broken says that messages from the peer may have been lost since the last one that arrived.
	// None that was sent before arrives after it. What was lost before a node's Start it is not
	// told.
	Broken(env *Env[M], from ID)
}

// Checked is a Node that can look for broken invariants of its own.
type Checked interface {
	// Check returns an error that names the invariant and the values that break it, or nil. It
	// changes nothing.
	Check() error
}

// Kind is what an Effect does.
type Kind uint8

// The kinds of effects, each with the fields of Effect that it uses.
const (
	KindAppend    Kind = iota + 1 // Index, Msg
	KindTruncate                  // Index
	KindPut                       // Key, Value
	KindDelete                    // Key
	KindSend                      // To, Msg
	KindSendAhead                 // To, Msg
	KindAfter                     // Timer, Delay
	KindStop                      // Timer
)

// Durable reports whether the effect is part of what a call writes to the disk.
func (k Kind) Durable() bool { return k >= KindAppend && k <= KindDelete }

// An Effect is one thing that a node wants done.
type Effect[M any] struct {
	Kind  Kind
	To    ID
	Index uint64 // of the record, or of the first record that is kept
	Delay time.Duration
	Timer Timer
	Msg   M
	Key   []byte
	Value []byte
	// Unhurried goes with KindSend, and is a hint: see [Env.SendUnhurried]. Runners may take no
	// notice.
	Unhurried bool
}

// A Codec turns the messages and records of a protocol into bytes and back. The bytes say which
// version of the format they are in. It is safe for concurrent use.
type Codec[M any] interface {
	// Append adds the bytes of a message to buf. It fails if the message is of no type of the
	// protocol.
	Append(buf []byte, msg M) ([]byte, error)
	// Decode returns the message whose bytes are all of b. Whatever b is, it does not panic, and
	// takes memory only in proportion to it; its errors say what is wrong and where. The message
	// holds no reference to b.
	Decode(b []byte) (M, error)
}

// A PeerCodec reads what each peer sends in its own way. Decode is for what is on disk.
type PeerCodec[M any] interface {
	Codec[M]
	// DecodeFrom is Decode of a message that a node has sent.
	DecodeFrom(from ID, b []byte) (M, error)
}

// A Ref is a byte string that belongs into encoded bytes, before the one at a place.
type Ref struct {
	At   int
	Data []byte
}

// RefBytes returns how many bytes refs have.
func RefBytes(refs []Ref) (n int) {
	for _, r := range refs {
		n += len(r.Data)
	}
	return n
}

// AppendJoined appends to buf what a SharingCodec has made of a message: a payload, with the bytes
// that refs name where they belong.
func AppendJoined(buf, payload []byte, refs []Ref) []byte {
	at := 0
	for _, r := range refs {
		buf = append(append(buf, payload[at:r.At]...), r.Data...)
		at = r.At
	}
	return append(buf, payload[at:]...)
}

// A SharingCodec can leave large byte strings where they are, so that what goes to several peers
// has them once.
type SharingCodec[M any] interface {
	// AppendShared is Append, but for byte strings that are not changed any more: it adds them to
	// refs, with where in buf they belong, in this order.
	AppendShared(buf []byte, refs []Ref, msg M) ([]byte, []Ref, error)
}
