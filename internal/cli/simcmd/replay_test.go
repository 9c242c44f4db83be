package simcmd_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/foresay/foresay/internal/catalog"
	"github.com/foresay/foresay/internal/cli"
	"github.com/foresay/foresay/internal/cli/command"
	"github.com/foresay/foresay/internal/seed"
	"github.com/foresay/foresay/smr/smrtest"
)

// TestReplayCommandGivesTheSameRun runs the commands that the conformance suite would print.
func TestReplayCommandGivesTheSameRun(t *testing.T) {
	for _, proto := range catalog.Protocols() {
		for _, seed := range []uint64{5, 8, 13}[:seed.Count(t, 3)] {
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

// An outcome is what the command says of a run.
type outcome struct {
	Hash, Replay string
	Steps        uint64
	OK           bool
}

func runJSON(t *testing.T, args []string) []outcome {
	t.Helper()
	var out, errs bytes.Buffer
	if code := cli.Main(t.Context(), args, command.Streams{In: strings.NewReader(""), Out: &out, Err: &errs}); code != 0 {
		t.Fatalf("%q ended with %d: %s", args, code, errs.String())
	}
	var got []outcome
	if err := json.Unmarshal(out.Bytes(), &got); err != nil {
		t.Fatalf("%q: %v\n%s", args, err, out.String())
	}
	return got
}
