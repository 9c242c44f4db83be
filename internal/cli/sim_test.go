package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/foresay/foresay/internal/catalog"
	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/smr"
	"github.com/foresay/foresay/smr/raft"
	"github.com/foresay/foresay/smr/smrtest"
)

// TestReplayCommandGivesTheSameRun runs the commands that the conformance suite would print.
func TestReplayCommandGivesTheSameRun(t *testing.T) {
	for _, proto := range catalog.Protocols() {
		for _, seed := range []uint64{5, 8, 13} {
			t.Run(fmt.Sprint(proto.Name, seed), func(t *testing.T) {
				t.Parallel()
				sc := smrtest.Swarm(proto, seed)
				want, err := smrtest.Play(sc)
				if err != nil {
					t.Fatal(err)
				}
				words := strings.Fields(sc.Replay)
				if got := strings.Join(words[:3], " "); got != "go run ./cmd/foresay" {
					t.Fatalf("the command begins with %q", got)
				}
				for _, args := range [][]string{words[3:], {"sim", "run", "--protocol", proto.Name, "--seed", fmt.Sprint(seed)}} {
					got := runJSON(t, append(args, "--json"))
					if len(got) != 1 || got[0].Hash != fmt.Sprintf("%016x", want.Hash) || got[0].Steps != want.Steps || !got[0].OK {
						t.Errorf("%q gave %+v, want the hash %016x", args, got, want.Hash)
					}
					if got[0].Replay != sc.Replay {
						t.Errorf("%q prints the command %q, want %q", args, got[0].Replay, sc.Replay)
					}
				}
			})
		}
	}
}

func runJSON(t *testing.T, args []string) []verdict {
	t.Helper()
	var out, errs bytes.Buffer
	if code := Main(t.Context(), args, Streams{In: strings.NewReader(""), Out: &out, Err: &errs}); code != 0 {
		t.Fatalf("%q ended with %d: %s", args, code, errs.String())
	}
	var got []verdict
	if err := json.Unmarshal(out.Bytes(), &got); err != nil {
		t.Fatalf("%q: %v\n%s", args, err, out.String())
	}
	return got
}

// forgetful is a replica that answers no client.
type forgetful struct{ protocol.Node[smr.Message] }

func (f forgetful) Receive(env *protocol.Env[smr.Message], from protocol.ID, msg smr.Message) {
	switch msg.(type) {
	case smr.Request, smr.OpenRequest, smr.ReadRequest:
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
	p := &program{Streams: Streams{Out: &out, Err: &errs}}
	err := p.playSeeds(t.Context(), simFlags{faults: "none", seed: 3, seeds: 2, explain: true}, broken)
	if err == nil || err.Error() != "sim run: 2 of 2 seeds broke a promise" {
		t.Errorf("the error is %v", err)
	}
	for _, want := range []string{
		"BROKEN: raft: seed 3, faults none: liveness: 15s after the faults ended, a client was not answered",
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
