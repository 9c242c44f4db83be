package kit

import (
	"testing"

	"github.com/foresay/foresay/bft"
	"github.com/foresay/foresay/bft/sessions"
	"github.com/foresay/foresay/protocol"
)

// TestParts: results are split so that each message has little more than its bound, and nothing is
// left out.
func TestParts(t *testing.T) {
	for _, each := range []int{0, 100, 100 << 10, 3 << 20} {
		var all []sessions.Entry
		for i := range 64 {
			all = append(all, sessions.Entry{Number: bft.Number(i), Result: bft.Result{Value: make([]byte, each)}})
		}
		next := bft.Number(0)
		for part := range Parts(all, true) {
			size := 0
			for _, e := range part {
				if e.Number != next {
					t.Fatalf("%d bytes each: %d comes in place of %d", each, e.Number, next)
				}
				next++
				size += len(e.Result.Value)
			}
			if len(part) > 1 && size > replyBytes+each {
				t.Errorf("%d bytes each: %d go together", each, size)
			}
		}
		if next != 64 {
			t.Errorf("%d bytes each: %d are told", each, next)
		}
	}
}

// requests are those of a replica that has a batch of so many requests, with one command of so many
// bytes each.
func requests(t *testing.T, n, each int) (*Requests, bft.Digest, []bft.Signed[bft.Request]) {
	t.Helper()
	var secrets bft.Secrets
	me := secrets.Signer(9)
	st := NewStatements(bft.NewScheme("test", &secrets), "test", false)
	dir := &bft.Directory{Clients: map[protocol.ID]bft.Key{9: me.Key()}}
	q := newRequests(&st, &bft.ReplicaConfig{Directory: dir, MaxBatch: defaultMaxBatch, Limits: bft.DefaultLimits()})
	var b Batch
	var all []bft.Signed[bft.Request]
	for i := range n {
		s := st.Requests.Sign(st.Scheme, me, bft.Request{Client: 9, Session: 1, First: bft.Number(i + 1),
			Operations: []bft.Operation{{Command: make([]byte, each)}}})
		b.Entries = append(b.Entries, BatchEntry{Request: st.DigestOfRequest(s.Body())})
		all = append(all, s)
	}
	d := st.DigestOf(b)
	q.TakeBatch(b, d)
	return &q, d, all
}

// TestBatchBytes: nobody accepts a batch that has more bytes than an honest primary proposes, nor
// keeps more of it.
func TestBatchBytes(t *testing.T) {
	l := bft.DefaultLimits()
	for _, more := range []int{0, 1} {
		n := l.Batch/l.Command + more
		q, d, all := requests(t, n, l.Command)
		for i := range all {
			q.TakeRequest(&all[i], d)
		}
		if q.Acceptable(d) != (more == 0) || len(q.bodies) != l.Batch/l.Command {
			t.Errorf("%d requests of %d bytes: acceptable is %v, %d are kept", n, l.Command, q.Acceptable(d), len(q.bodies))
		}
		for i := range all { // as their client gave them to this replica
			q.submit(q.st.DigestOfRequest(all[i].Body()), &Submitted{Request: all[i]}, 0, 9)
		}
		if q.Acceptable(d) != (more == 0) {
			t.Errorf("%d requests of %d bytes that wait here: acceptable is %v", n, l.Command, q.Acceptable(d))
		}
	}
}

// TestWaitingBytes: a client has no more waiting at a replica than its share. What a member passes
// on has a share of its own, so that the replica is never late with what it has no room for.
func TestWaitingBytes(t *testing.T) {
	l := bft.DefaultLimits()
	most := waitingBatches * l.Batch / l.Command
	q, _, all := requests(t, most+1, l.Command)
	submit := func(i int, by protocol.ID) bool {
		fresh, _ := q.submit(q.st.DigestOfRequest(all[i].Body()), &Submitted{Request: all[i]}, 0, by)
		return fresh
	}
	for i := range most {
		if !submit(i, 9) {
			t.Fatalf("%d of %d requests wait", i, most)
		}
	}
	if submit(most, 9) {
		t.Error("a client has more waiting than its share")
	}
	if !submit(most, 2) {
		t.Error("a member cannot pass on what its client left out")
	}
	q.Settled(q.st.DigestOfRequest(all[0].Body()))
	q.Settled(q.st.DigestOfRequest(all[most].Body()))
	if !submit(most, 9) {
		t.Error("what was executed still takes room")
	}
}

// TestAnswerBytes: an answer to a member that lacks bodies has little more than its bound, and it
// comes by all of them if it asks again.
func TestAnswerBytes(t *testing.T) {
	l := bft.DefaultLimits()
	q, d, all := requests(t, 16, l.Command)
	lacking, _, _ := requests(t, 16, l.Command)
	for i := range all {
		q.TakeRequest(&all[i], d)
	}
	for asked := 0; !lacking.Lacking(d).None(); asked++ {
		out, about := q.Answer(lacking.Lacking(d))
		size := 0
		for i := range out.Requests {
			size += out.Requests[i].Body().Bytes()
			lacking.TakeRequest(&out.Requests[i], d)
		}
		if about < size || size > answerBytes+l.Command || asked > 2 {
			t.Fatalf("answer %d has %d bytes", asked, size)
		}
	}
}

// TestAffords: who asks for more than a message's worth again and again in a tick gets no more.
func TestAffords(t *testing.T) {
	var r Replica
	got := 0
	for r.Affords(7, 1<<20) {
		if got += 1 << 20; got > 2*tickBytes {
			t.Fatalf("%d bytes in a tick", got)
		}
	}
	if r.Tick++; !r.Affords(7, 1) || !r.Affords(8, 1) {
		t.Error("nothing in the next tick")
	}
}
