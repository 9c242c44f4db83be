package protocol

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

// A Ref is a byte string that belongs into encoded bytes, before the one at a place.
type Ref struct {
	At   int
	Data []byte
}

// A SharingCodec can leave large byte strings where they are, so that what goes to several peers
// has them once.
type SharingCodec[M any] interface {
	// AppendShared is Append, but for byte strings that are not changed any more: it adds them to
	// refs, with where in buf they belong, in this order.
	AppendShared(buf []byte, refs []Ref, msg M) ([]byte, []Ref, error)
}
