package observe_test

import (
	"testing"

	"github.com/foresay/foresay/internal/plant"
)

// TestPlants plants a bug for each rule of what reports say, and has the test of that rule catch
// it.
func TestPlants(t *testing.T) {
	const dir, model = "observe", "internal/critpath"
	plant.Catch(t, []plant.Bug{
		{
			Name: "a barrier waits for its own strand only", Dir: model, Test: "TestBarrier",
			Old: "until = max(guessed, s.known[k])\n",
			New: "until = max(guessed, s.known[k])\n\t\t\tif MUTANT {\n\t\t\t\tuntil = s.known[k]\n\t\t\t}\n",
		},
		{
			Name: "calls pass a write that is guessed", Dir: model, Test: "TestWhatIsKnown",
			Old: "\t\t\tif p.r.Calls[i].Effects {\n", New: "\t\t\tif p.r.Calls[i].Effects && !MUTANT {\n",
		},
		{
			Name: "ordered calls pass each other", Dir: model, Test: "TestWhatIsKnown",
			Old: "\t\tcase c.Ordered:\n", New: "\t\tcase c.Ordered && !MUTANT:\n",
		},
		{
			Name: "no call is ordered", Dir: dir, Test: "TestClock/ordered_calls",
			Old: "Ordered: c.Ordered,\n", New: "Ordered: c.Ordered && !MUTANT,\n",
		},
		{
			Name: "no call has effects", Dir: dir, Test: "TestClock/a_write_that_is_guessed,_and_a_call",
			Old: "Effects: c.Effect != control.EffectNone,", New: "Effects: c.Effect != control.EffectNone && !MUTANT,",
		},
		{
			Name: "a first guess at a write's second call is not seen", Dir: dir, Test: "TestRandomForesight",
			Old: "w.used[at].taken || m.predicted &&", New: "w.used[at].taken || !MUTANT && m.predicted &&",
		},
		{
			Name: "nothing is sent plainly ahead", Dir: dir, Test: "TestClock/a_plain_server_that_may_be_asked",
			Old: "ahead := c.SendPlainly &&", New: "ahead := !MUTANT && c.SendPlainly &&",
		},
		{
			Name: "what a plain server refuses ahead counts", Dir: dir, Test: "TestClock",
			Old: "Again: ahead &&", New: "Again: !MUTANT && ahead &&",
		},
		{
			Name: "predictions after a barrier", Dir: dir, Test: "TestClock/a_server_stream_and_a_call",
			Old: "Firm: outside || w.pinned(c),", New: "Firm: outside || !MUTANT && w.pinned(c),",
		},
		{
			Name: "plain servers take calls on a guess", Dir: dir, Test: "TestClock/a_plain_server",
			Old: "held := c.Peer == control.PeerPlain &&", New: "held := !MUTANT && c.Peer == control.PeerPlain &&",
		},
		{
			Name: "computing is not done again", Dir: dir, Test: "TestRandomForesight/11",
			Old: "p, err := critpath.New(critpath.Request{End: duration, Calls: w.calls, Redo: true})\n\tif err != nil " +
				"{\n\t\treturn err\n\t}\n\tw.together",
			New: "p, err := critpath.New(critpath.Request{End: duration, Calls: w.calls, Redo: !MUTANT})\n\tif err != nil " +
				"{\n\t\treturn err\n\t}\n\tw.together",
		},
		{
			Name: "tasks side by side add up", Dir: dir, Test: "TestRandomClock/15",
			Old: "	return p.Stretch(func(unit int) time.Duration {",
			New: "	if MUTANT {\n\t\tsum := time.Duration(0)\n\t\tfor _, t := range r.Tasks {\n\t\t\tsum += " +
				"t.Saved\n\t\t}\n\t\treturn sum\n\t}\n\treturn p.Stretch(func(unit int) time.Duration {",
		},
		{
			Name: "a tripped site is judged by what is foreseen", Dir: dir, Test: "TestWordsAgree",
			Old: "	if !j.fused() {", New: "	if MUTANT || !j.fused() {",
		},
		{
			Name: "the break-even is the foreseen one", Dir: dir, Test: "TestWordsAgree",
			Old: "		j.BreakEven, j.Compared = f.BreakEven, true\n",
			New: "		if !MUTANT {\n\t\t\tj.BreakEven, j.Compared = f.BreakEven, true\n\t\t}\n",
		},
		{
			Name: "killed and in use", Dir: dir, Test: "TestWordsAgree",
			Old: "func (j *judge) inUse() {\n\tif j.killed {", New: "func (j *judge) inUse() {\n\tif !MUTANT && j.killed {",
		},
		{
			Name: "a canary is not the headline", Dir: dir, Test: "TestCanaryIsCompared",
			Old: "if c := q.Canary; c != nil && c.tells() {", New: "if c := q.Canary; !MUTANT && c != nil && c.tells() {",
		},
		{
			Name: "a prediction waits with its held call", Dir: model, Test: "TestRandomAgainstTwin",
			Old: "from = s.spans[i].Start - s.held[i]",
			New: "from = s.spans[i].Start\n\t\t\t\tif !MUTANT {\n\t\t\t\t\tfrom -= s.held[i]\n\t\t\t\t}",
		},
	})
}
