package layered

import (
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/smr"
	"github.com/foresay/foresay/smr/raft"
	"github.com/foresay/foresay/smr/smrtest"
	"github.com/foresay/foresay/store"
	"github.com/foresay/foresay/store/kit"
	"github.com/foresay/foresay/store/storedeploy"
)

// inMemory is a state machine without a state.
type inMemory struct{}

func (inMemory) Apply([]byte) []byte { return nil }

func (inMemory) Read([]byte) []byte { return nil }

func (inMemory) Snapshot(io.Writer) error { return nil }

func (inMemory) Restore(io.Reader) error { return nil }

// TestEarlierDisk starts a server on the disk of an earlier version of the program, whose groups
// were those of package smr. The server must not take it for an empty one.
func TestEarlierDisk(t *testing.T) {
	layout := storedeploy.Layout(3, 1)
	id := layout.Sites[0].Shards[0]
	replica, err := raft.Protocol().NewReplica(smr.ReplicaConfig{ID: id, Members: []smr.Member{{ID: id}}, Leader: id,
		Machine: inMemory{}})
	if err != nil {
		t.Fatal(err)
	}
	var disk smrtest.Disk
	inner := disk.Env()
	replica.Start(inner, nil)
	for range 10 { // it is elected, and has what it writes confirmed
		out := slices.Clone(inner.Out)
		disk.Write(inner, 0)
		for _, e := range out {
			switch e.Kind {
			case protocol.KindAfter:
				replica.Expire(inner, e.Timer)
			case protocol.KindSend:
				if e.To == id {
					replica.Receive(inner, id, e.Msg)
				}
			}
		}
	}
	if len(disk.Log) == 0 {
		t.Fatal("the replica has written nothing")
	}
	var log []protocol.Record[store.Message]
	for _, r := range disk.Log {
		log = append(log, protocol.Record[store.Message]{Index: r.Index, Msg: grouped{kit.Grouped{Msg: r.Msg}, 0}})
	}

	s, err := newServer(store.Config{ID: id, Layout: layout}, 0)
	if err != nil {
		t.Fatal(err)
	}
	env := protocol.NewEnv[store.Message](&disk, log[len(log)-1].Index+1, rand.New(rand.NewPCG(1, 1)))
	s.Start(env, log)
	said := ""
	for _, e := range env.Out {
		if m, ok := e.Msg.(store.Refused); ok {
			said = m.Reason
		}
		if e.Kind == protocol.KindPut || e.Kind == protocol.KindDelete || e.Kind == protocol.KindTruncate {
			t.Errorf("the server changes the disk: %v %q", e.Kind, e.Key)
		}
	}
	if !strings.Contains(said, "an earlier version of the program") {
		t.Errorf("the server says %q of the disk", said)
	}
	s.Receive(env, 0, store.StatusQuery{Ref: 1})
	s.Receive(env, 99, kit.Ask{Ref: 1, Command: []byte("x")})
	s.Expire(env, sweepTimer{})
	if err := s.Check(); err != nil {
		t.Error(err)
	}
}
