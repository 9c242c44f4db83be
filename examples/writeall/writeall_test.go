package writeall

import (
	"fmt"
	"testing"

	"github.com/foresay/foresay/internal/plant"
	"github.com/foresay/foresay/internal/wirefmt/wiretest"
	"github.com/foresay/foresay/sim"
	"github.com/foresay/foresay/smr"
	"github.com/foresay/foresay/smr/kit"
	"github.com/foresay/foresay/smr/smrtest"
	"github.com/foresay/foresay/smr/smrtest/talk"
)

// TestSeeds plays seeds with all faults but lost disks: a member that has lost its disk is
// replaced.
func TestSeeds(t *testing.T) {
	for seed := range uint64(60) {
		if err := play(seed); err != nil {
			t.Fatal(err)
		}
	}
}

func play(seed uint64) error {
	faults := sim.StreamFaults
	if seed%4 == 3 {
		faults = sim.AllFaults
	}
	r, err := smrtest.Play(smrtest.Scenario{Protocol: Protocol(), Seed: seed,
		Faults: sim.Swarm(seed, faults&^sim.LostDisk)})
	if err != nil {
		return fmt.Errorf("%v\n%w", r, err)
	}
	return nil
}

// TestScenarios has the protocol talk: testdata/scenarios, which are there to be read.
func TestScenarios(t *testing.T) { talk.Play(t, Protocol(), nil) }

func messages() []smr.Message {
	entries := []kit.Entry{{Kind: kit.NoOp}, {Kind: kit.Command, Client: 7, Session: 3, Seq: 9, Acked: 4,
		Command: []byte("set")}}
	return []smr.Message{write{First: 3, Decided: 2, Entries: entries}, written{Last: 4},
		record{First: 3, Entries: entries}}
}

func TestCodec(t *testing.T) { wiretest.Codec(t, codec(), 64, messages()) }

func FuzzCodec(f *testing.F) { wiretest.Fuzz(f, codec(), messages()) }

// plants leave out one rule at a time, in the source, and name a seed that notices.
func plants() []plant.Bug {
	const dir = "examples/writeall"
	return []plant.Bug{
		{
			Name: "others see what is not on the leader's disk", Dir: dir, Test: "TestSeedsNotice/87",
			Old: "\t\t\tr.Admission.Send(env, member.ID, m)\n",
			New: "\t\t\tif MUTANT {\n\t\t\t\tr.Admission.SendAhead(env, member.ID, " +
				"m)\n\t\t\t\tcontinue\n\t\t\t}\n\t\t\tr.Admission.Send(env, member.ID, m)\n",
		},
		{
			Name: "others say that they have written what is not on their disks", Dir: dir, Test: "TestSeedsNotice/8",
			Old: "\tr.Admission.Send(env, from, written{r.last()})\n",
			New: "\tif MUTANT {\n\t\tr.Admission.SendAhead(env, from, " +
				"written{r.last()})\n\t\treturn\n\t}\n\tr.Admission.Send(env, from, written{r.last()})\n",
		},
		{
			Name: "the leader answers queries before it knows what was decided", Dir: dir, Test: "TestSeedsNotice/16",
			Old: "|| r.decided < r.mustSee {\n", New: "|| r.decided < r.mustSee && !MUTANT {\n",
		},
	}
}

// TestPlants plants them: the seeds must notice.
func TestPlants(t *testing.T) { plant.Catch(t, plants()) }

// TestSeedsNotice plays the seeds that notice.
func TestSeedsNotice(t *testing.T) { plant.Seeds(t, plants(), play) }
