package wirefmt_test

import (
	"crypto/ed25519"
	"fmt"

	"github.com/foresay/foresay/internal/wirefmt"
)

// Vote is a message, and Signed one that says who said another one.
type (
	Vote   struct{ View, Slot uint64 }
	Signed struct {
		Msg       any
		Signature []byte
	}
)

const signedTag = 2

// Example_signature signs a message: its declaration gives the bytes that are sent and those that
// are signed. As a message has one form, no other bytes pass for what was signed.
func Example_signature() {
	var f *wirefmt.Format[any]
	f = wirefmt.NewFormat("example", 1,
		wirefmt.NewKind[any](1, func(c *wirefmt.Coder, m *Vote) {
			wirefmt.Uint(c, &m.View)
			wirefmt.Uint(c, &m.Slot)
		}),
		wirefmt.NewKind[any](signedTag, func(c *wirefmt.Coder, m *Signed) {
			f.Inner(c, signedTag, &m.Msg)
			wirefmt.Bytes(c, &m.Signature)
		}))
	// What is signed begins with the protocol's name, so that it means nothing in another one.
	signed := func(msg any) []byte {
		b, _ := f.Append([]byte("example: "), msg)
		return b
	}

	public, private, _ := ed25519.GenerateKey(nil)
	vote := Vote{View: 3, Slot: 300}
	b, _ := f.Append(nil, Signed{vote, ed25519.Sign(private, signed(vote))})

	msg, _ := f.Decode(b)
	got := msg.(Signed)
	fmt.Println(got.Msg, ed25519.Verify(public, signed(got.Msg), got.Signature))

	longer := append([]byte{b[0], b[1], b[2], b[3] | 0x80, 0}, b[4:]...) // the view with a further byte
	_, err := f.Decode(longer)
	fmt.Println(err)
	// Output:
	// {3 300} true
	// example: wirefmt_test.Signed wirefmt_test.Vote at byte 1 of 70: a number has more bytes than it needs
}
