package simcmd

import (
	"bytes"
	"strings"
	"testing"

	"github.com/foresay/foresay/internal/cli/command"
	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/smr"
	"github.com/foresay/foresay/smr/kit"
	"github.com/foresay/foresay/smr/raft"
)

// forgetful is a replica that answers no client.
type forgetful struct{ protocol.Node[smr.Message] }

func (f forgetful) Receive(env *protocol.Env[smr.Message], from protocol.ID, msg smr.Message) {
	switch msg.(type) {
	case kit.Request, kit.OpenRequest, kit.ReadRequest:
		return
	}
	f.Node.Receive(env, from, msg)
}

func TestBrokenPromiseIsToldAndExplained(t *testing.T) {
	broken := raft.Protocol()
	build := broken.NewReplica
	broken.NewReplica = func(cfg smr.ReplicaConfig) (protocol.Node[smr.Message], error) {
		n, err := build(cfg)
		return forgetful{n}, err
	}
	var out, errs bytes.Buffer
	p := &program{&command.Program{Streams: command.Streams{Out: &out, Err: &errs}}}
	err := p.playSeeds(t.Context(), simFlags{faults: "none", seed: 3, seeds: 2, explain: true}, broken)
	if err == nil || err.Error() != "sim run: 2 of 2 seeds broke a promise" {
		t.Errorf("the error is %v", err)
	}
	for _, want := range []string{
		"BROKEN: raft: seed 3, faults none: liveness: 5s after the faults ended, a client was not answered",
		"BROKEN: raft: seed 4,", "go run ./cmd/foresay sim run --protocol raft --seed 4 --faults none",
		"what happened last:", "nodes:", "node 1 at s1", "to come,",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is not told:\n%.3000s", want, out.String())
		}
	}
	if want := "sim: 1 of 2 done, now seed 4"; !strings.Contains(errs.String(), want) {
		t.Errorf("the progress is %q, want %q in it", errs.String(), want)
	}
}
