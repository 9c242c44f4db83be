package bfttest

import (
	"crypto/sha256"

	"github.com/foresay/foresay/bft"
	"github.com/foresay/foresay/bft/kit"
)

// Link returns the end of an epoch at a place, with what follows, by the word of some.
func Link(st *kit.Statements, at kit.Checkpoint, next *bft.Directory, signers ...*bft.Signer) kit.Link {
	at.Members = sha256.Sum256(next.Encode())
	var signed []bft.Signed[kit.Checkpoint]
	for _, s := range signers {
		signed = append(signed, st.Checkpoints.Sign(st.Scheme, s, at))
	}
	return kit.Link{Proof: bft.Join(signed), Members: next.Encode()}
}

// Samples returns messages of all kinds that protocols share, for the tests of their codecs.
func Samples(st *kit.Statements, me *bft.Signer) []bft.Message {
	r := st.Requests.Sign(st.Scheme, me, bft.Request{Client: 7, Session: 2, Acked: 3, First: 4,
		Operations: []bft.Operation{{Command: []byte("set"), Members: true, After: 3,
			Conditions: []bft.Condition{{Number: 3, Digest: bft.Digest{1}}}}}})
	at := st.Checkpoints.Sign(st.Scheme, me, kit.Checkpoint{Seq: 8, State: bft.Digest{5}, Members: bft.Digest{9}})
	b := kit.Batch{Entries: []kit.BatchEntry{{Request: bft.Digest{3}, Time: 9}}}
	return []bft.Message{
		kit.Submitted{Request: r, Full: true},
		kit.Reached{Checkpoint: at},
		kit.StableProof{Proof: bft.Join([]bft.Signed[kit.Checkpoint]{at})},
		kit.Bodies{Batches: []kit.Batch{b}, Requests: []bft.Signed[bft.Request]{r}},
		kit.ReadAsk{ID: 3, Query: []byte("q"), Full: true},
		kit.Links{Links: []kit.Link{{Proof: bft.Join([]bft.Signed[kit.Checkpoint]{at}), Members: []byte("m")}}},
		kit.LinksWanted{After: 3},
		kit.ReadReply{ID: 3, Epoch: 2, Digest: bft.Digest{6}, Full: true, Value: []byte("v")},
		kit.Wanted{Batches: []bft.Digest{{7}}, Requests: []bft.Digest{{8}}},
		kit.StateWanted{Seq: 8, Wants: []string{"w"}},
		kit.StatePage{Seq: 8, Want: "w", Page: []byte("page")},
		kit.DoneRecord{Committed: 9},
	}
}
