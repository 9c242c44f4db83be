package observe

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/foresay/foresay/control"
)

// TestWordsAgree: in all states of a method and its site there is one verdict with one reason,
// which do not contradict each other or what the site's status says.
func TestWordsAgree(t *testing.T) {
	seen := make(map[Verdict]int)
	for _, mode := range []control.Mode{control.ModeOff, control.ModeObserve, control.ModeShadow, control.ModeCanary,
		control.ModeOn} {
		for _, state := range []control.CallSiteState{control.StateLearning, control.StateActive, control.StateTripped,
			control.StateProbing} {
			for _, killed := range []bool{false, true} {
				for _, judged := range []float64{0, 5, 500} {
					for _, figures := range []methodSums{
						{}, {asked: 400}, {asked: 400, guessed: 12, right: 12}, {asked: 1000, guessed: 1000, right: 950},
						{asked: 1000, guessed: 1000, right: 550}, {asked: 1000, guessed: 1000, right: 30},
						{asked: 1000, guessed: 1000, right: 560, sharedGuessed: 1000, sharedRight: 936, sharedSaved: 9000},
						{asked: 1000, sharedGuessed: 1000, sharedRight: 936, sharedSaved: 9000},
					} {
						for _, gain := range []float64{0, 10} {
							for _, effect := range []control.Effect{control.EffectNone, control.EffectImmediate} {
								for _, predicted := range []bool{false, true} {
									seen[wordsOf(t, mode, state, killed, judged, figures, gain, effect, predicted)]++
								}
							}
						}
					}
				}
			}
		}
	}
	for _, v := range []Verdict{WorthIt, NotWorthIt, TooEarly, InUse, Tripped, HasEffects} {
		if seen[v] == 0 {
			t.Errorf("no state has the verdict %s", v)
		}
	}
}

// TestHeadlineTellsFailures: where more requests fail with speculation, that they end early is not
// sold as a saving.
func TestHeadlineTellsFailures(t *testing.T) {
	side := func(failed float64) Arm {
		s := Arm{Requests: 100, Canary: 100}
		s.FailedShare.Value, s.Latency.MeanMS = failed, 44
		return s
	}
	c := &Canary{On: side(0.3), Off: side(0), MeanMS: &Interval{-22, -23, -21}, FailedShare: &Interval{0.3, 0.18, 0.42}}
	if got, want := c.headline(), "more requests fail with speculation: 30 % against 0 %, by the canary of 100 "+
		"requests on and 100 off"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	c.FailedShare = &Interval{0.02, -0.01, 0.05}
	if got := c.headline(); !strings.HasPrefix(got, "speculation saves 22.0 ms of 44.0 ms") {
		t.Errorf("got %s", got)
	}
}

// TestFewRequestsAreNotCompared: where the sentence says that it is too early to tell, there are no
// figures that tell.
func TestFewRequestsAreNotCompared(t *testing.T) {
	f := &frozen{}
	for side, n := range []int{fewestForMedian - 1, 100} {
		for range n {
			f.arms[side].add(10)
			f.arms[side].latency.add(10 * time.Millisecond)
		}
	}
	if c := f.canary(nil); !strings.HasPrefix(c.Summary, "too early to tell") || c.MeanMS != nil || c.P50MS != nil ||
		c.FailedShare != nil {
		t.Errorf("%+v", c)
	}
	f.arms[0].add(10)
	f.arms[0].latency.add(10 * time.Millisecond)
	if c := f.canary(nil); strings.HasPrefix(c.Summary, "too early to tell") || c.MeanMS == nil || c.P50MS == nil ||
		c.FailedShare == nil {
		t.Errorf("%+v", c)
	}
}

func wordsOf(
	t *testing.T, mode control.Mode, state control.CallSiteState, killed bool, judged float64, s methodSums, gain float64,
	effect control.Effect, predicted bool,
) Verdict {
	t.Helper()
	const name, requests = "/shop.Catalogue/Get", 1000
	s.calls = requests
	if gain > 0 && s.guessed > 0 { // requests were worked out
		s.workedGuessed, s.workedRight = float64(s.guessed), float64(s.right)
		s.gain, s.cost = gain*float64(s.guessed), gain*float64(s.guessed)
		s.alone, s.saved = gain*float64(s.right), gain*float64(s.right)
	}
	m := &method{name: name, effect: effect, predicted: predicted, total: s, now: s, reads: true}
	m.latency = *m.latency.freeze()
	site := control.CallSiteStatus{
		Name: name, Mode: mode, State: state, Judged: judged, BreakEven: 0.05, Stats: control.CallSiteStats{Calls: requests},
	}
	if judged > 0 {
		site.HitRate, site.BreakEven, site.Gain, site.Cost = 0.41, 0.59, 10*time.Millisecond, 14390*time.Microsecond
	}
	site.Conclusive = mode >= control.ModeCanary && (judged >= enoughGuesses || state == control.StateTripped)
	if predicted {
		site.Predictors, site.Stats.Predicted = 1, int64(judged)
	}
	if state == control.StateTripped || state == control.StateProbing {
		site.Reason = "hit rate 41 % is below the break-even of 59 %"
	}
	r := &Report{Budget: 0.1, Status: &control.Status{Killed: killed, CallSites: []control.CallSiteStatus{site}}}
	f := &frozen{name: "GET /page", total: kindSums{requests: requests, worked: requests, calls: requests},
		methods: []method{*m}}
	out := f.method(m, &Config{MinSaving: 100 * time.Microsecond}, r)
	at := fmt.Sprintf("mode %v, %v, killed %v, judged %v, %+v, gain %v, %v, predicted %v: %s: %s; break-even %v", mode,
		state, killed, judged, s, gain, effect,
		predicted, out.Verdict, out.Why, out.BreakEven)

	tripped := state == control.StateTripped && !killed
	switch {
	case tripped != (out.Verdict == Tripped):
		t.Errorf("tripped and not so: %s", at)
	case tripped && (!strings.HasPrefix(out.Why, site.Reason) || out.Configure != ""):
		t.Errorf("another reason than the fuse's: %s; configure %s", at, out.Configure)
	case state == control.StateProbing && !killed && (out.Verdict != TooEarly || !strings.Contains(out.Why, site.Reason)):
		t.Errorf("probing and not so: %s", at)
	case strings.Count(out.Why, "needs ") > 1 || strings.Contains(out.Why, "needs ") &&
		!strings.Contains(out.Why, "needs "+percent(out.BreakEven)+":"):
		t.Errorf("two break-evens: %s", at)
	case site.Conclusive && out.BreakEven != site.BreakEven:
		t.Errorf("another break-even than the fuse's %v: %s", site.BreakEven, at)
	case !site.Conclusive && judged > 0 && out.BreakEven == site.BreakEven:
		t.Errorf("the break-even of a fuse that has judged too little: %s", at)
	case out.Compared != (site.Conclusive || strings.Contains(out.Why, "needs ")):
		t.Errorf("compared with a break-even of which neither the reason nor the fuse knows, or not: %v: %s", out.Compared,
			at)
	case out.Verdict == WorthIt && (out.HitRate < out.BreakEven || strings.Contains(out.Why, "saves 0 ms")):
		t.Errorf("worth it for nothing: %s", at)
	case out.Verdict == InUse && mode < control.ModeCanary:
		t.Errorf("in use in a mode that uses nothing: %s", at)
	case killed && (out.Verdict == InUse || out.Verdict == Tripped):
		t.Errorf("killed: %s", at)
	}
	var text bytes.Buffer
	r.Requests = []RequestReport{{Name: "GET /page", Methods: []MethodReport{out}}}
	if err := r.WriteText(&text); err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(text.String(), out.Why); n != 1 || strings.Count(text.String(), "tripped:") > 0 {
		t.Errorf("the text says the reason %d times: %s\n%s", n, at, &text)
	}
	return out.Verdict
}
