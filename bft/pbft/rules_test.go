package pbft

import (
	"fmt"
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/foresay/foresay/bft"
	"github.com/foresay/foresay/bft/bfttest"
	"github.com/foresay/foresay/bft/kit"
	"github.com/foresay/foresay/internal/wirefmt/wiretest"
	"github.com/foresay/foresay/protocol"
)

// TestConfirmedIsExact tries all sets of replies of four members.
func TestConfirmedIsExact(t *testing.T) {
	var words []heard
	for _, d := range []bft.Digest{{1}, {2}} {
		words = append(words, heard{there: true, seq: 5, digest: d})
		for v := range bft.View(2) {
			words = append(words, heard{there: true, tentative: true, view: v, seq: 5, digest: d})
		}
	}
	words = append(words, heard{}, heard{there: true, tentative: true, seq: 6, digest: bft.Digest{1}})
	n := len(words)
	for i := range n * n * n * n {
		set := []heard{words[i%n], words[i/n%n], words[i/n/n%n], words[i/n/n/n]}
		for _, reads := range []bool{true, false} {
			want := false
			for mask := range 16 {
				size, same := 0, true
				var first, guess heard // the first that is tentative, too
				for j, h := range set {
					if mask>>j&1 == 0 {
						continue
					}
					if size++; size == 1 {
						first = h
					}
					if h.tentative && !guess.there {
						guess = h
					}
					same = same && h.there && h.digest == first.digest && (!h.tentative || h == guess)
				}
				want = want || same && (size >= 3 || size >= 2 && !reads && !guess.there)
			}
			if _, got := confirmed(set, 3, 2, reads); got != want {
				t.Fatalf("%+v, reads %v: confirmed is %v", set, reads, got)
			}
		}
	}
}

// TestConfirmedIsSafe: whichever one of four members lies, a confirmed result is one that an honest
// one has committed, or two honest ones have executed tentatively in one view and place, of which
// the next view hears one.
func TestConfirmedIsSafe(t *testing.T) {
	words := []heard{{}}
	for _, d := range []bft.Digest{{1}, {2}} {
		words = append(words, heard{there: true, seq: 5, digest: d})
		for i := range 4 {
			words = append(words, heard{there: true, tentative: true, view: bft.View(i % 2), seq: 5 + bft.Seq(i/2), digest: d})
		}
	}
	n := len(words)
	for i := range n * n * n * n {
		set := []heard{words[i%n], words[i/n%n], words[i/n/n%n], words[i/n/n/n]}
		digest, ok := confirmed(set, 3, 2, true)
		if !ok {
			continue
		}
		for liar := range set {
			committed, together := false, map[heard]int{}
			for j, h := range set {
				if j == liar || !h.there || h.digest != digest {
					continue
				}
				committed = committed || !h.tentative
				together[h]++
			}
			safe := committed
			for _, n := range together {
				safe = safe || n >= 2
			}
			if !safe {
				t.Fatalf("%+v: if member %d lies nobody can know that %v stands", set, liar, digest)
			}
		}
	}
}

func samples() (*statements, []bft.Message) {
	var secrets bft.Secrets
	sc, me := bft.NewScheme("test", &secrets), secrets.Signer(1)
	st := newStatements(sc)
	shared := bfttest.Samples(&st.Statements, me)
	r, proof := shared[0].(kit.Submitted).Request, shared[2].(kit.StableProof).Proof
	b := kit.Batch{Entries: []kit.BatchEntry{{Request: bft.Digest{3}, Time: 9}}}
	o := orderBody{View: 1, Seq: 2, Batch: bft.Digest{4}}
	order, vote := st.orders.Sign(sc, me, o), st.votes.Sign(sc, me, voteBody(o))
	p := preparedProof{order, bft.Join([]bft.Signed[voteBody]{vote})}
	change := st.changes.Sign(sc, me, changeBody{3, proof, []preparedProof{p}})
	start := st.starts.Sign(sc, me, startBody{3, []bft.Signed[changeBody]{change}, []bft.Signed[orderBody]{order}})
	result := bft.Result{Outcome: bft.Executed, Value: []byte("v")}
	return st, append(shared,
		earlyReply{st.early.Sign(sc, me, earlyBody{1, 7, 2, []earlyItem{{4, result}}})},
		lie{st.early.Sign(sc, me, earlyBody{1, 7, 2, []earlyItem{{4, result}}})},
		proposal{order, b, []bft.Signed[bft.Request]{r}}, prepare{vote}, viewChange{change}, newView{start},
		preparedRecord{p}, replies{1, 2, []replyItem{{4, 5, true, result.Digest(), true, result}, {Number: 5, Seq: 6}}},
		commit{o, true}, status{1, true, 8, 9}, viewRecord{3, true})
}

func TestCodec(t *testing.T) {
	st, all := samples()
	wiretest.Codec[bft.Message](t, st.format(), 64, all, cmp.Exporter(func(reflect.Type) bool { return true }))
}

// TestSmallRequests: a list of the smallest requests there are is no list that is cut off.
func TestSmallRequests(t *testing.T) {
	st, _ := samples()
	least := st.Requests.Forge(bft.Key{}, nil, bft.Request{})
	for _, m := range []bft.Message{kit.Bodies{Requests: []bft.Signed[bft.Request]{least, least}},
		proposal{Order: st.orders.Forge(bft.Key{}, nil, orderBody{}), Requests: []bft.Signed[bft.Request]{least}}} {
		b, err := st.format().Append(nil, m)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := st.format().Decode(b); err != nil {
			t.Errorf("%T: %v", m, err)
		}
	}
}

// TestNewViewFits: the largest beginning of a view fits into a message, however many members there
// are; a distance of checkpoints with which it would not is an error.
func TestNewViewFits(t *testing.T) {
	secrets := &bft.Secrets{}
	signer := func(i int) *bft.Signer { return secrets.Signer(uint64(i)) }
	st := newStatements(bft.NewScheme("a group with a name as long as most", secrets))
	const far = 1 << 60 // no number takes more bytes
	for _, n := range []int{4, 7, 19, 31, 64} {
		c := bft.ReplicaConfig{ID: 1, Directory: &bft.Directory{}, Scheme: st.Scheme, Signer: signer(0), Service: noService{}}
		for i := range n {
			c.Directory.Members = append(c.Directory.Members, bft.Party{ID: protocol.ID(i + 1), Key: signer(i).Key()})
		}
		r, err := newReplica(c)
		if err != nil {
			t.Fatal(err)
		}
		signature := make([]byte, 64)
		order := func(i int) bft.Signed[orderBody] {
			return st.orders.Forge(c.Directory.Members[0].Key, signature, orderBody{far, far + bft.Seq(i), bft.Digest{1}})
		}
		change := changeBody{View: far}
		var votes []bft.Signed[voteBody]
		var reached []bft.Signed[kit.Checkpoint]
		for i := range r.Dir.Quorum() {
			key := c.Directory.Members[i].Key
			votes = append(votes, st.votes.Forge(key, signature, voteBody{far, far, bft.Digest{1}}))
			reached = append(reached, st.Checkpoints.Forge(key, signature, kit.Checkpoint{Seq: far}))
		}
		change.Stable = bft.Join(reached)
		m := startBody{View: far}
		for i := range int(r.Window()) {
			change.Prepared = append(change.Prepared, preparedProof{order(i), bft.Join(votes)})
			m.Orders = append(m.Orders, order(i))
		}
		for i := range r.Dir.Quorum() {
			m.Changes = append(m.Changes, st.changes.Forge(c.Directory.Members[i].Key, signature, change))
		}
		b, err := st.format().Append(nil, newView{st.starts.Forge(c.Directory.Members[0].Key, signature, m)})
		if err != nil || len(b) > bft.MaxMessageBytes {
			t.Errorf("%d members, a window of %d places: %d bytes, %v", n, r.Window(), len(b), err)
		}
		c.CheckpointEvery = 40 * r.Config.CheckpointEvery
		if _, err := newReplica(c); err == nil {
			t.Errorf("%d members, %d places between checkpoints: no error", n, c.CheckpointEvery)
		}
	}
}

func FuzzCodec(f *testing.F) {
	st, all := samples()
	wiretest.Fuzz[bft.Message](f, st.format(), all)
}

// TestChoiceIsExact tries all sets of three changes that have prepared, in two places, a batch of
// one of two views, or nothing.
func TestChoiceIsExact(t *testing.T) {
	var secrets bft.Secrets
	sc, me := bft.NewScheme("test", &secrets), secrets.Signer(1)
	st := newStatements(sc)
	kinds := []orderBody{{}, {View: 1, Batch: bft.Digest{1}}, {View: 2, Batch: bft.Digest{1}},
		{View: 2, Batch: bft.Digest{2}}, {View: 1}}
	n := len(kinds) * len(kinds)
	for i := range n * n * n {
		var changes []*changeBody
		var want [3]orderBody // by place, the newest
		conflict, last := false, bft.Seq(0)
		for k := i; len(changes) < 3; k /= n {
			c := &changeBody{View: 4}
			for seq, kind := range map[bft.Seq]int{1: k % n % len(kinds), 2: k % n / len(kinds)} {
				o := kinds[kind]
				o.Seq = seq
				if kind == 0 {
					continue
				}
				last = max(last, seq)
				conflict = conflict || want[seq].View == o.View && want[seq].Batch != o.Batch
				if o.View > want[seq].View {
					want[seq] = o
				}
			}
			for seq := bft.Seq(1); seq <= 2; seq++ {
				kind := []int{k % n % len(kinds), k % n / len(kinds)}[seq-1]
				if o := kinds[kind]; kind != 0 {
					o.Seq = seq
					c.Prepared = append(c.Prepared, preparedProof{Order: st.orders.Sign(sc, me, o)})
				}
			}
			changes = append(changes, c)
		}
		if conflict {
			continue // two quorums of one view share an honest member
		}
		stable, got := choose(4, changes)
		var orders []orderBody
		for seq := bft.Seq(1); seq <= last; seq++ {
			orders = append(orders, orderBody{4, seq, want[seq].Batch})
		}
		if fmt.Sprint(got) != fmt.Sprint(orders) || stable.Body().Seq != 0 {
			t.Fatalf("case %d: %v, want %v", i, got, orders)
		}
	}
}
