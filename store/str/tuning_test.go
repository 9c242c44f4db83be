package str

import (
	"strings"
	"testing"
	"time"

	"github.com/foresay/foresay/internal/plant"
	"github.com/foresay/foresay/sim"
	"github.com/foresay/foresay/store"
	"github.com/foresay/foresay/store/storetest"
)

// tunedWorld has coordinators that choose a degree.
type tunedWorld struct {
	*storetest.World
	t *testing.T
}

func newTunedWorld(t *testing.T) tunedWorld {
	t.Helper()
	s := subject(modes()[0])
	s.Watched = nil
	w, err := storetest.New(s, storetest.Scenario{Seed: 1, Clients: 12, Keys: 200, Coordinators: 2, Ahead: true,
		Certain: true, Pause: time.Millisecond, CheckEvery: 1000, Test: t.Name()})
	if err != nil {
		t.Fatal(err)
	}
	return tunedWorld{w, t}
}

// up returns the coordinators that are up, in the layout's order.
func (w tunedWorld) up() (out []*coordinator) {
	for _, s := range w.Layout.Sites {
		for _, id := range s.Coordinators {
			if w.Sim.Up(id) {
				out = append(out, w.Sim.Get(id).(*coordinator))
			}
		}
	}
	return out
}

// run runs the world. All the time none of the coordinators may be more than a window behind, and
// those of the same window have the same degree. It returns the number of the last window.
func (w tunedWorld) run(d time.Duration) (number uint64) {
	w.t.Helper()
	for end := w.Sim.Now() + d; w.Sim.Now() < end; {
		if err := w.Sim.Run(storetest.RoundTrip); err != nil {
			w.t.Fatal(err)
		}
		degrees := map[uint64]degree{}
		for _, c := range w.up() {
			n := c.tuning.number
			if is, ok := degrees[n]; ok && is != c.degree {
				w.t.Errorf("at %v: in window %d some have degree %v, others %v", w.Sim.Now(), n, is, c.degree)
			}
			degrees[n], number = c.degree, max(number, n)
		}
		for n := range degrees {
			if n+1 < number {
				w.t.Errorf("at %v: some are in window %d, and others in %d", w.Sim.Now(), n, number)
			}
		}
	}
	return number
}

// chooses expects one coordinator to choose: the first that is up.
func (w tunedWorld) chooses() {
	w.t.Helper()
	for i, c := range w.up() {
		if is := c.tuning.tuner != nil; is != (i == 0) {
			w.t.Errorf("coordinator %d chooses: %v", c.cfg.ID, is)
		}
	}
}

// TestTuneTogether has the coordinators of a cluster choose one degree. The site of the one that
// chooses is lost, and another one goes on, until it is back.
func TestTuneTogether(t *testing.T) {
	w := newTunedWorld(t)
	first := w.run(20 * time.Second)
	w.chooses()
	if s := w.up()[0].tuning.status(); first < 4 || s.Windows == 0 || s.Last[0].Committed < windowTxns {
		t.Errorf("in window %d; those that are over: %+v", first, s)
	}
	site := w.SiteNodes(0)
	for _, id := range site {
		w.Sim.Crash(id, sim.KeepAll)
	}
	second := w.run(15 * time.Second)
	if w.chooses(); second < first+2 {
		t.Errorf("window %d before the site was lost, %d after it", first, second)
	}
	for _, id := range site {
		w.Sim.Restart(id)
	}
	if err := w.Sim.Run(time.Second); err != nil { // those that are back know of no window at first
		t.Fatal(err)
	}
	if third := w.run(10 * time.Second); third < second+2 {
		t.Errorf("window %d before the site was back, %d after it", second, third)
	}
	w.chooses()
}

// TestTuneAfterRestart: a coordinator that chooses and is started again, before others have missed
// it, goes on from the degree that is in force.
func TestTuneAfterRestart(t *testing.T) {
	w := newTunedWorld(t)
	w.run(8 * time.Second)
	others := w.up()[1]
	number := others.tuning.number
	for _, id := range w.SiteNodes(0) {
		w.Sim.Crash(id, sim.KeepAll)
		w.Sim.Restart(id)
	}
	begun := false
	for range 10 {
		before := others.degree
		if err := w.Sim.Run(200 * time.Millisecond); err != nil {
			t.Fatal(err)
		}
		first := w.up()[0]
		if first.tuning.tuner == nil || first.tuning.over > 0 || first.tuning.number <= number {
			continue
		}
		if begun = true; first.degree != before {
			t.Errorf("degree %v was in force, and it begins with %v", before, first.degree)
		}
	}
	if !begun {
		t.Error("it did not go on from the window that was under way")
	}
	w.run(3 * time.Second)
	w.chooses()
	for _, c := range w.up() {
		if c.tuning.number < number+1 {
			t.Errorf("coordinator %d is in window %d, and was in %d", c.cfg.ID, c.tuning.number, number)
		}
	}
}

// TestTuneSettings has a coordinator take newer settings only, and from coordinators only.
func TestTuneSettings(t *testing.T) {
	c := newSoloCoordinator(t)
	expect := func(number uint64, d degree) {
		t.Helper()
		if c.tuning.number != number || c.degree != d {
			t.Errorf("degree %v of setting %d, want %v of %d", c.degree, c.tuning.number, d, number)
		}
	}
	c.Receive(c.env, 20, setting{5, 3})
	expect(5, 3)
	c.Receive(c.env, 20, setting{5, 4})
	c.Receive(c.env, 20, setting{4, 4})
	c.Receive(c.env, 11, setting{6, 4})
	c.Receive(c.env, 20, setting{6, degreeMost + 1})
	c.Receive(c.env, 20, setting{1 << 63, 4})
	expect(5, 3)
	for range silentTunes + 1 {
		c.env.Now += tuneTrips * c.cfg.RoundTrip
		c.Expire(c.env, tuneTimer{})
	}
	if c.tuning.tuner == nil {
		t.Fatal("nobody else is there, and it does not choose")
	}
	expect(6, 3)
	c.said()
	c.Receive(c.env, 20, setting{9, 4}) // it does not know yet who chooses
	expect(10, 4)
	if got := only[setting](c.said()); len(got) != 3 || got[0] != (setting{10, 4}) {
		t.Errorf("the others are told %v", got)
	}
}

// TestSpeculate has a coordinator speculate as far as its configuration says, and choose otherwise.
func TestSpeculate(t *testing.T) {
	l := newAlone(t).l
	begin := func(speculate string, m variant) (*coordinator, error) {
		return newCoordinator(store.Config{ID: 10, Layout: l, Speculate: speculate}, m)
	}
	for speculate, want := range map[string]struct {
		d     degree
		tunes bool
	}{
		"": {degreeMost, true}, "tuned": {degreeMost, true}, "off": {degreeOff, false}, "reads": {degreeReads, false},
		"1": {2, false}, "8": {degreeMost, false},
	} {
		c, err := begin(speculate, modes()[0])
		if err != nil || c.degree != want.d || c.mode.tunes != want.tunes {
			t.Errorf("%q: %+v, error %v", speculate, c, err)
		}
	}
	for speculate, m := range map[string]variant{"9": modes()[0], "0": modes()[0], "off": modes()[1]} {
		if _, err := begin(speculate, m); err == nil || !strings.Contains(err.Error(), "Config.Speculate") {
			t.Errorf("%q in mode %s: error %v", speculate, m.name, err)
		}
	}
	for i, p := range []store.Protocol{Protocol(), Protocol().Variant("clocksi-rep")} {
		if got := len(p.Degrees); got != []int{11, 0}[i] {
			t.Errorf("%s has %d degrees", p.Title(), got)
		}
	}
}

// togetherPlants have coordinators not agree on a degree.
func togetherPlants() []plant.Bug {
	return []plant.Bug{
		{
			Name: "who is told how far to speculate chooses all the same", Test: "TestSpeculate",
			Old: "v.degree, v.tunes = degree(i-1), false\n", New: "v.degree, v.tunes = degree(i-1), v.tunes && MUTANT\n",
		},
		{
			Name: "an older setting overrules a newer one", Test: "TestTuneSettings",
			Old: "\tif m.Number > t.number {\n", New: "\tif m.Number > t.number || MUTANT {\n",
		},
		{
			Name: "nobody takes over the choice of the degree", Test: "TestTuneTogether",
			Old: "\t\tif env.Now-t.heard <= ", New: "\t\tif MUTANT && t.self > 0 || env.Now-t.heard <= ",
		},
		{
			Name: "who has chosen meanwhile goes on", Test: "TestTuneTogether",
			Old: "\tif place < t.self {\n", New: "\tif place < t.self && (t.tuner == nil || !MUTANT) {\n",
		},
	}
}
