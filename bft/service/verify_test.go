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
// which is counted; another peer's are, and its own are again after a while.
func TestSignaturesOfAPeer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		secrets := &bft.Secrets{}
		verifier := &counting{Verifier: secrets}
		m := newMetered(pbft.Protocol().Codec, "shop", verifier)
		request := bft.Requests().Sign(bft.NewScheme("shop", secrets), secrets.Signer(9),
			bft.Request{Client: 9, First: 1, Operations: []bft.Operation{{}}})
		b, err := m.Append(nil, kit.Submitted{Request: request})
		if err != nil {
			t.Fatal(err)
		}
		proven := func(from protocol.ID) bool {
			msg, err := m.DecodeFrom(from, b)
			if err != nil {
				t.Fatal(err)
			}
			s := msg.(kit.Submitted)
			return s.Request.By(secrets.Signer(9).Key())
		}
		for range signaturesAtOnce {
			if !proven(9) {
				t.Fatalf("of %d signatures at once one is not checked", verifier.asked)
			}
		}
		asked := verifier.asked
		if proven(9) || verifier.asked != asked || m.unchecked.Load() != 1 {
			t.Errorf("one more than %d is checked, or %d are counted", signaturesAtOnce, m.unchecked.Load())
		}
		if !proven(10) {
			t.Error("another peer's signatures are not checked")
		}
		if time.Sleep(time.Second / signaturesPerSecond); !proven(9) {
			t.Error("it stays unheard")
		}
	})
}
