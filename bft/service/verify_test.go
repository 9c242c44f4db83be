package service

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/foresay/foresay/bft"
	"github.com/foresay/foresay/bft/kit"
	"github.com/foresay/foresay/bft/pbft"
	"github.com/foresay/foresay/protocol"
)

// counting counts what it is asked for.
type counting struct {
	bft.Verifier
	asked int
}

func (c *counting) Verify(key bft.Key, message, signature []byte) bool {
	c.asked++
	return c.Verifier.Verify(key, message, signature)
}

// TestSignaturesOfAPeer: a peer that sends more signatures than anybody needs has no more checked,
// which is counted; another peer's are, and its own are again after a while. One that was right is
// not checked again, whoever sends it.
func TestSignaturesOfAPeer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		secrets := &bft.Secrets{}
		verifier := &counting{Verifier: secrets}
		m := newMetered(pbft.Protocol().Codec, "shop", verifier)
		// Each is signed in a group: that of the other one is a wrong signature here.
		signed := func(group string) []byte {
			request := bft.Requests().Sign(bft.NewScheme(group, secrets), secrets.Signer(9),
				bft.Request{Client: 9, First: 1, Operations: []bft.Operation{{}}})
			b, err := m.Append(nil, kit.Submitted{Request: request})
			if err != nil {
				t.Fatal(err)
			}
			return b
		}
		right, wrong := signed("shop"), signed("bank")
		decode := func(from protocol.ID, b []byte) (proven, checked bool) {
			asked := verifier.asked
			msg, err := m.DecodeFrom(from, b)
			if err != nil {
				t.Fatal(err)
			}
			s := msg.(kit.Submitted)
			return s.Request.By(secrets.Signer(9).Key()), verifier.asked > asked
		}
		if proven, checked := decode(8, right); !proven || !checked {
			t.Errorf("a right signature: proven %v, checked %v", proven, checked)
		}
		if proven, checked := decode(9, right); !proven || checked {
			t.Errorf("the same of another peer: proven %v, checked %v", proven, checked)
		}
		if proven, checked := decode(9, wrong); proven || !checked {
			t.Errorf("a wrong signature: proven %v, checked %v", proven, checked)
		}
		for i := range signaturesAtOnce - 1 {
			if _, checked := decode(9, wrong); !checked {
				t.Fatalf("of %d signatures at once one is not checked", i)
			}
		}
		if _, checked := decode(9, wrong); checked || m.unchecked.Load() != 1 {
			t.Errorf("one more than %d is checked, or %d are counted", signaturesAtOnce, m.unchecked.Load())
		}
		if _, checked := decode(10, wrong); !checked {
			t.Error("another peer's signatures are not checked")
		}
		time.Sleep(time.Second / signaturesPerSecond)
		if _, checked := decode(9, wrong); !checked {
			t.Error("it stays unheard")
		}
	})
}
