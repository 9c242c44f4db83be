package domino

import (
	"math/rand/v2"
	"reflect"
	"testing"
	"time"

	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/smr"
	"github.com/foresay/foresay/smr/kit"
	"github.com/foresay/foresay/smr/kv"
)

// strange returns values of all kinds of messages: with fields at random, small or enormous.
func strange(rnd *rand.Rand, own kit.Incarnation) smr.Message {
	between := []smr.Message{ // replicas
		news{}, missing{}, accept{}, prepare{}, promise{}, refusal{}, revoke{}, revoked{}, learned{}, fetch{}, decided{},
		poll{}, polled{}, kit.SnapshotChunk{}, kit.SnapshotWanted{},
	}
	others := []smr.Message{
		submit{}, vote{}, placed{}, outcome{}, ordered{},
		probe{}, echo{}, kit.Request{}, kit.OpenRequest{}, kit.ChangeRequest{}, kit.ReadRequest{}, kit.Replies{},
		kit.OpenReply{}, kit.ReadReplies{}, kit.Redirect{}, kit.Busy{},
		kit.NotYet{}, kit.Hello{}, kit.Welcome{}, kit.Ping{}, kit.Pong{}, smr.Done{}, ownRecord{}, trackRecord{},
		closeRecord{},
	}
	i := rnd.IntN(len(between) + len(others))
	v := reflect.New(reflect.TypeOf(append(between, others...)[i])).Elem()
	fill(rnd, v, 4)
	if i >= len(between) {
		return v.Interface()
	}
	if rnd.IntN(5) == 0 {
		own = kit.Incarnation(rnd.Uint64N(5))
	}
	return kit.Letter{Disk: own, Msg: v.Interface()}
}

func fill(rnd *rand.Rand, v reflect.Value, depth int) {
	number := func() uint64 {
		switch rnd.IntN(4) {
		case 0:
			return rnd.Uint64()
		case 1:
			return uint64(time.Hour) + rnd.Uint64N(uint64(10*time.Second))
		}
		return rnd.Uint64N(5)
	}
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			fill(rnd, v.Field(i), depth)
		}
		if !v.CanInterface() {
			return // it is embedded in a message
		}
		if e, ok := v.Addr().Interface().(*kit.Entry); ok { // what is decoded has what its kind says
			if e.Kind == kit.OpenSession && e.Open == nil {
				e.Open = &kit.Open{}
			}
			if e.Kind == kit.ChangeMembers && e.Members == nil {
				e.Members = &kit.MemberChange{}
			}
		}
	case reflect.Slice:
		if depth == 0 {
			return
		}
		n := rnd.IntN(4)
		s := reflect.MakeSlice(v.Type(), n, n)
		for i := range n {
			fill(rnd, s.Index(i), depth-1)
		}
		v.Set(s)
	case reflect.Pointer:
		if rnd.IntN(2) == 0 {
			v.Set(reflect.New(v.Type().Elem()))
			fill(rnd, v.Elem(), depth)
		}
	case reflect.Uint64, reflect.Uint32:
		v.SetUint(number() & (1<<uint(v.Type().Bits()) - 1))
	case reflect.Uint8:
		v.SetUint(rnd.Uint64N(5))
	case reflect.Int64, reflect.Int:
		v.SetInt(int64(number()))
	case reflect.Bool:
		v.SetBool(rnd.IntN(2) == 0)
	case reflect.String:
		v.SetString("x")
	}
}

// TestHostileMessages gives replicas and clients messages that no right node sends, from members,
// clients and strangers: none panics, and each still says what its state is.
func TestHostileMessages(t *testing.T) {
	for seed := range uint64(12) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		w := newWorld(t, setup{preset: "na3", opt: beyond()})
		env := protocol.NewEnv[smr.Message](nil, 1<<40, rnd)
		nodes := []protocol.Node[smr.Message]{w.replica(1), w.replica(2), w.client("VA")}
		for range 400 {
			from := []protocol.ID{1, 2, 3, 9, 100, 1 << 31}[rnd.IntN(6)]
			own := kit.Incarnation(1)
			if from >= 1 && from <= 3 {
				own = w.replica(from).Admission.Own()
			}
			n := nodes[rnd.IntN(len(nodes))]
			env.Begin(w.Clock(1) + time.Duration(rnd.IntN(1000))*time.Millisecond)
			switch rnd.IntN(8) {
			case 0:
				n.Expire(env, []protocol.Timer{beatTimer{}, wakeTimer{}, campaignTimer{}, kit.FlushTimer{},
					kit.TickTimer{}, probeTimer{}}[rnd.IntN(6)])
			case 1:
				n.(protocol.Linked[smr.Message]).Broken(env, from)
			default:
				n.Receive(env, from, strange(rnd, own))
			}
		}
		env.Begin(w.Clock(1))
		w.replica(1).Receive(env, protocol.App, smr.StatusQuery{ID: 1})
		if len(env.Out) != 1 {
			t.Errorf("seed %d: the replica says %+v", seed, env.Out)
		}
	}
}

// TestStrangersAreIgnored: messages of replicas' kinds from nodes that are no members change
// nothing: the group goes on.
func TestStrangersAreIgnored(t *testing.T) {
	for seed := range uint64(8) {
		w, _ := withPuppet(t, setup{preset: "na3", opt: beyond()}, 1)
		rnd := rand.New(rand.NewPCG(seed, 1))
		for range 300 {
			m := strange(rnd, 1)
			if _, ok := m.(kit.ChangeRequest); ok {
				continue // any client may ask for that
			}
			w.Deliver(puppetID, errand{ids(1, 2, 3), m})
			w.Run(time.Millisecond)
		}
		w.Call(w.Client("VA"), smr.Call{Kind: smr.Execute, Command: kv.Put([]byte("k"), []byte("v"))})
		w.Run(500 * time.Millisecond)
		if len(w.Done) != 1 || w.Done[0].Outcome != smr.Committed {
			t.Errorf("seed %d: the answers are %+v", seed, w.Done)
		}
	}
}
