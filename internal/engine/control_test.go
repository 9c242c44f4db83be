package engine

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/foresay/foresay/control"
)

// What package control says of its fuse and of how it compares requests.
const (
	enough       = 20                     // predictions must be judged before a site is
	judgeEvery   = 100 * time.Millisecond // sites are judged at most
	controlAfter = 1000                   // requests in mode on are left without speculation now and then
)

// chain calls the user and then the price, and returns how long it took.
func (s *shop) chain(ctx context.Context, user string) (time.Duration, error) {
	start := time.Now()
	_, err := Do(ctx, func(ctx context.Context) (any, error) {
		u, err := s.call(ctx, s.user, "u", 10*ms, user)
		if err != nil {
			return nil, err
		}
		return s.call(ctx, s.price, u.(string), 10*ms, u.(string)+" 5")
	}, WithLimits(control.Limits{MinSaving: -1}))
	return time.Since(start), err
}

func TestModesAtRunTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := mustControl(t, control.Config{})
		s := newShop(t, c, control.ModeDefault, 0, "ann")
		expect := func(step string, want time.Duration) {
			t.Helper()
			if took, err := s.chain(t.Context(), "ann"); took != want || err != nil {
				t.Errorf("%s: took %v, %v, want %v", step, took, err, want)
			}
		}
		set := func(site string, m control.Mode, share float64) error { return c.SetMode(site, m, share) }
		expect("observe is the default", 20*ms)
		if err := set("/s/user", control.ModeOn, 0); err != nil {
			t.Fatal(err)
		}
		expect("on", 10*ms)
		go func() { _, _ = s.chain(c.Context(t.Context()), "eve") }()
		for _, want := range []struct {
			after time.Duration
			runs  int64
		}{{5 * ms, 1}, {10 * ms, 0}, {10 * ms, 0}} { // on a wrong guess, and then on none
			time.Sleep(want.after)
			if got := c.Status().Runs; got != want.runs {
				t.Errorf("%d runs are ahead, want %d", got, want.runs)
			}
		}
		ctx, cancel := context.WithTimeout(c.Context(t.Context()), 5*ms)
		if _, err := s.chain(ctx, "ann"); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v", err)
		}
		cancel()
		if got := c.Status().Runs; got != 0 {
			t.Errorf("%d runs are ahead though their task has ended", got)
		}
		c.Kill(true)
		before := s.user.Stats()
		expect("killed", 20*ms)
		if after := s.user.Stats(); after.WouldBeRight != before.WouldBeRight || after.Learnt != before.Learnt {
			t.Errorf("predictors are asked though all is killed: %+v", after)
		}
		c.Kill(false)
		expect("alive again", 10*ms)
		later, err := c.NewCallSite(control.CallSiteConfig{Name: "/s/user", Mode: control.ModeOff}, "another")
		if err != nil {
			t.Fatal(err)
		}
		if m, _ := later.Mode(); m != control.ModeOn {
			t.Errorf("a site that comes later is in mode %v", m)
		}
		if err := set("/s/user", control.ModeDefault, 0); err != nil {
			t.Fatal(err)
		}
		if m, _ := later.Mode(); m != control.ModeOff {
			t.Errorf("taken back: mode %v", m)
		}
		expect("taken back", 20*ms)
		for want, err := range map[string]error{
			"/s/none": set("/s/none", control.ModeOn, 0), "share": set("/s/user", control.ModeCanary, math.NaN()),
			"share 2": set("/s/user", control.ModeCanary, 2), "mode": set("/s/user", 9, 0),
		} {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("got %v, want it to say %s", err, want)
			}
		}
		c.Remove(s.user, later)
		if err := set("/s/user", control.ModeOn, 0); err == nil {
			t.Error("a removed site is switched")
		}
	})
}

func TestKillVariable(t *testing.T) {
	t.Setenv(control.KillVariable, "1")
	if !mustControl(t, control.Config{}).Killed() {
		t.Error("not killed")
	}
	t.Setenv(control.KillVariable, "0")
	if mustControl(t, control.Config{}).Killed() {
		t.Error("killed")
	}
}

// A canary takes the share of the requests that it is given, the same in every
// service, and observes the others.
func TestCanary(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		arms := map[control.Arm]int{}
		var records []*control.RequestRecord
		a := mustControl(t, control.Config{OnRequest: []func(*control.RequestRecord){func(r *control.RequestRecord) {
			records = append(records, r)
		}}})
		b := mustControl(t, control.Config{})
		s, other := newShop(t, a, control.ModeCanary, 0.3, "ann"), newShop(t, b, control.ModeCanary, 0.3, "ann")
		const n = 2000
		for i := range n {
			id := fmt.Sprint("request ", i)
			ctx, r := a.Begin(t.Context(), "page", id)
			took, err := s.chain(ctx, "ann")
			if err != nil {
				t.Fatal(err)
			}
			r.End(nil)
			rec := records[len(records)-1]
			arms[rec.Arm]++
			if on := took == 10*ms; on != (rec.Arm == control.ArmOn) || rec.Duration != took || len(rec.Calls) != 2 ||
				len(rec.Tasks) != 1 {
				t.Fatalf("took %v: %+v", took, rec)
			}
			if i < 200 {
				ctx, _ := b.Begin(t.Context(), "inner", id)
				if there, _ := other.chain(ctx, "ann"); there != took {
					t.Fatalf("%s: %v here, %v there", id, took, there)
				}
			}
		}
		if on := arms[control.ArmOn]; on+arms[control.ArmOff] != n || math.Abs(float64(on)-0.3*n) > 4*math.Sqrt(n*0.3*0.7) {
			t.Errorf("arms: %v", arms)
		}
		if _, err := s.chain(t.Context(), "ann"); err != nil { // without a request chance decides
			t.Error(err)
		}
	})
}

// TestCanaryBesideCallSitesThatAreOn: a request is on the side without speculation only if it takes
// no guess, those of sites that are on included. Until some requests are left without these, no
// request that takes them is on either side.
func TestCanaryBesideCallSitesThatAreOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var got *control.RequestRecord
		c := mustControl(t, control.Config{Budget: -1, ControlShare: 0.2,
			OnRequest: []func(*control.RequestRecord){func(r *control.RequestRecord) { got = r }}})
		site := func(name string, mode control.Mode, share float64, predictors ...control.Predictor) *control.CallSite {
			return callSiteCase(t, c, control.CallSiteConfig{Name: name, Mode: mode, Share: share, Effect: control.EffectNone,
				Predictors: predictors})
		}
		on, canary := site("/s/on", control.ModeOn, 0, constant{"a"}), site("/s/canary", control.ModeCanary, 0.5,
			constant{"b"})
		unpredicted := site("/s/unpredicted", control.ModeOn, 0)
		arms := make(map[string]int)
		for i := range 2 * controlAfter {
			first, when := on, "on"
			if i%3 == 0 {
				first, when = unpredicted, "unpredicted"
			}
			ctx, r := c.Begin(t.Context(), "page", fmt.Sprint(i))
			_, err := Do(ctx, func(ctx context.Context) (int, error) {
				if _, err := callCase(ctx, first, "1", 10*ms, "a", new(atomic.Int64)); err != nil {
					return 0, err
				}
				_, err := callCase(ctx, canary, "2", 10*ms, "b", new(atomic.Int64))
				return 0, err
			})
			if r.End(err); err != nil {
				t.Fatal(err)
			}
			if took := slices.ContainsFunc(got.Calls, func(c control.CallRecord) bool {
				return c.Mode == control.ModeOn && c.Guessed
			}); took && got.Arm == control.ArmOff {
				t.Fatalf("request %d took guesses: %+v", i, got)
			}
			if i >= controlAfter {
				when += ", compared"
			}
			arms[fmt.Sprint(when, " ", got.Arm)]++
		}
		for when, some := range map[string][]control.Arm{"on": {control.ArmNone},
			"on, compared": {control.ArmOff, control.ArmOn}, "unpredicted": {control.ArmOff, control.ArmOn},
			"unpredicted, compared": {control.ArmOff, control.ArmOn}} {
			for _, arm := range []control.Arm{control.ArmNone, control.ArmOff, control.ArmOn} {
				if there := arms[fmt.Sprint(when, " ", arm)] > 0; there != slices.Contains(some, arm) {
					t.Errorf("%s: arms %v, want only %v", when, arms, some)
				}
			}
		}
	})
}

// What a request's record says of calls, in tasks and outside of them.
func TestRequestRecord(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var got *control.RequestRecord
		c := mustControl(t, control.Config{OnRequest: []func(*control.RequestRecord){func(r *control.RequestRecord) {
			got = r
		}, func(*control.RequestRecord) { panic("contained") }}})
		s := newShop(t, c, control.ModeOn, 0, "ann")
		ctx, r := c.Begin(t.Context(), "page", "1")
		if _, err := s.chain(ctx, "ann"); err != nil {
			t.Fatal(err)
		}
		if _, err := s.chain(ctx, "eve"); err != nil { // guessed wrong
			t.Fatal(err)
		}
		var w Watched
		if !w.Begin(ctx, Operation{CallSite: s.user, Transport: &fakeTransport{}}) {
			t.Error("nothing to observe")
		}
		time.Sleep(3 * ms)
		w.Done("bob", nil)
		r.Answered()
		time.Sleep(time.Second)
		r.End(errors.New("failed"))
		r.End(nil)
		if got == nil || got.Duration != 33*ms || !got.Failed || got.Arm != control.ArmNone || len(got.Calls) != 5 {
			t.Fatalf("%+v", got)
		}
		want := []control.CallRecord{
			{CallSite: "/s/user", Effect: control.EffectNone, Mode: control.ModeOn, End: 10 * ms, Guessed: true, Right: true,
				Task: 1},
			{CallSite: "/s/price", Effect: control.EffectNone, Mode: control.ModeObserve, End: 10 * ms, Task: 1},
			{CallSite: "/s/user", Effect: control.EffectNone, Mode: control.ModeOn, Start: 10 * ms, End: 20 * ms, Guessed: true,
				Task: 2},
			{CallSite: "/s/price", Effect: control.EffectNone, Mode: control.ModeObserve, Start: 20 * ms, End: 30 * ms, Task: 2},
			{CallSite: "/s/user", Effect: control.EffectNone, Mode: control.ModeObserve, Start: 30 * ms, End: 33 * ms,
				Guessed: true},
		}
		for i, c := range got.Calls {
			if c != want[i] {
				t.Errorf("call %d: %+v, want %+v", i, c, want[i])
			}
		}
		if len(got.Tasks) != 2 || got.Tasks[0].Saved != 10*ms || got.Tasks[1].Saved != 0 || got.Tasks[0].Wasted != 0 ||
			got.Tasks[1].Wasted != 1 {
			t.Errorf("%+v", got.Tasks)
		}
	})
}

// Observing is no more than comparing: what a program sees, when, and what is sent
// are as in mode off.
func TestObserveChangesNothing(t *testing.T) {
	broken := errors.New("broken")
	run := func(mode control.Mode) (trace []string) {
		synctest.Test(t, func(t *testing.T) {
			c := mustControl(t, control.Config{})
			site, err := c.NewCallSite(control.CallSiteConfig{Name: "/s/get", Mode: mode, Effect: control.EffectNone,
				Predictors: []control.Predictor{constant{"0"}, panicking{}}}, "")
			if err != nil {
				t.Fatal(err)
			}
			start := time.Now()
			for i := range 4 {
				ctx, r := c.Begin(t.Context(), "page", "")
				_, err := Do(Predicting(ctx, "1", 7), func(ctx context.Context) (int, error) {
					v, err := Perform(ctx, &Operation{CallSite: site, Identity: fmt.Sprint(i), CanSpeculate: true,
						Transport: &fakeTransport{ms, func() (any, error) {
							trace = append(trace, fmt.Sprint("sent ", i, " at ", time.Since(start)))
							if i == 3 {
								return nil, broken
							}
							return fmt.Sprint(i), nil
						}}})
					trace = append(trace, fmt.Sprint(v, err, State(ctx), time.Since(start)))
					return 0, err
				})
				trace = append(trace, fmt.Sprint(err))
				r.End(err)
			}
			if mode == control.ModeObserve {
				if s := site.Stats(); s.WouldBeRight != 2 || s.WouldBeWrong != 2 || s.Predicted != 0 {
					t.Errorf("%+v", s)
				}
			}
		})
		return trace
	}
	off, observe := run(control.ModeOff), run(control.ModeObserve)
	if fmt.Sprint(off) != fmt.Sprint(observe) {
		t.Errorf("off:\n%s\nobserve:\n%s", strings.Join(off, "\n"), strings.Join(observe, "\n"))
	}
}

type panicking struct{}

func (panicking) Predict(context.Context, any) []any { panic("predict") }
func (panicking) Learn(context.Context, any, any)    { panic("learn") }

// A site that guesses wrong is switched to observing, tried again after a while,
// and goes on when it is right again.
func TestTrip(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := mustControl(t, control.Config{Retry: time.Minute, Budget: 10})
		s := newShop(t, c, control.ModeOn, 0, "ann")
		calls := func(n int, user string) (took time.Duration) {
			t.Helper()
			for range n {
				d, err := s.chain(t.Context(), user)
				if err != nil {
					t.Fatal(err)
				}
				took += d
				time.Sleep(50 * ms)
			}
			return took / time.Duration(n)
		}
		state := func() control.CallSiteStatus { return c.Status().CallSites[0] }
		calls(30, "ann")
		if st := state(); st.State != control.StateActive || st.HitRate != 1 {
			t.Fatalf("%+v", st)
		}
		calls(120, "eve")
		st := state()
		if st.State != control.StateTripped || !strings.Contains(st.Reason, "break-even") || st.Stats.Trips != 1 ||
			time.Until(st.Until) > time.Minute {
			t.Fatalf("%+v", st)
		}
		wrong := st.Stats.Wrong
		if took := calls(5, "ann"); took != 20*ms {
			t.Errorf("tripped, and calls take %v", took)
		}
		if st := state(); st.Stats.Wrong != wrong || st.Stats.WouldBeRight < 5 {
			t.Errorf("a tripped site should observe: %+v", st.Stats)
		}
		time.Sleep(time.Minute)
		calls(40, "eve") // no better
		if st := state(); st.State != control.StateTripped || st.Stats.Trips != 2 || st.Stats.Wrong > wrong+enough ||
			time.Until(st.Until) < time.Minute {
			t.Fatalf("%+v", st)
		}
		time.Sleep(2 * time.Minute)
		if took := calls(40, "ann"); took > 15*ms {
			t.Errorf("calls take %v", took)
		}
		if st := state(); st.State != control.StateActive || st.Reason != "" {
			t.Errorf("%+v", st)
		}
	})
}

// A site's rates are conclusive once enough predictions are judged, if its mode uses them; of a
// tripped site those that it tripped with.
func TestConclusive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := mustControl(t, control.Config{Retry: time.Minute, Budget: 10})
		s := newShop(t, c, control.ModeOn, 0, "ann")
		after := func(calls int, user string, state control.CallSiteState, conclusive bool) {
			t.Helper()
			for range calls {
				if _, err := s.chain(t.Context(), user); err != nil {
					t.Fatal(err)
				}
				time.Sleep(50 * ms)
			}
			if st := c.Status().CallSites[0]; st.State != state || st.Judged < 1 || st.Conclusive != conclusive {
				t.Errorf("after %d calls of %s: %v, conclusive %v of %v judged; want %v, %v", calls, user, st.State, st.Conclusive,
					st.Judged, state, conclusive)
			}
		}
		after(5, "ann", control.StateLearning, false)
		after(25, "ann", control.StateActive, true)
		if err := s.user.Reconfigure(control.ModeObserve, 0); err != nil {
			t.Fatal(err)
		}
		after(0, "ann", control.StateLearning, false)
		if err := s.user.Reconfigure(control.ModeCanary, 1); err != nil {
			t.Fatal(err)
		}
		after(0, "ann", control.StateActive, true)
		after(120, "eve", control.StateTripped, true)
		// While it only observes there is nothing that a fuse could do, and nobody is told of one.
		// It is as it was when it is switched on again.
		for _, mode := range []control.Mode{control.ModeOff, control.ModeObserve} {
			if err := s.user.Reconfigure(mode, 0); err != nil {
				t.Fatal(err)
			}
			if st := c.Status().CallSites[0]; st.State != control.StateLearning || st.Reason != "" || !st.Until.IsZero() ||
				st.Conclusive {
				t.Errorf("in mode %v: %v until %v because of %q, conclusive %v", mode, st.State, st.Until, st.Reason, st.Conclusive)
			}
		}
		if err := s.user.Reconfigure(control.ModeCanary, 1); err != nil {
			t.Fatal(err)
		}
		after(0, "ann", control.StateTripped, true)
		time.Sleep(time.Minute)
		after(5, "ann", control.StateProbing, false)
	})
}

// A site that was switched to observing is not tripped by what it had done before.
func TestObservingIsNotJudged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := mustControl(t, control.Config{Retry: time.Minute, Budget: 10})
		s := newShop(t, c, control.ModeOn, 0, "ann")
		for i := range enough + 1 { // of which the first weighs a little less than one
			if i == enough { // the last guess turns out wrong once the mode is another one
				time.AfterFunc(5*ms, func() {
					if err := s.user.Reconfigure(control.ModeObserve, 0); err != nil {
						t.Error(err)
					}
				})
			}
			if _, err := s.chain(t.Context(), "eve"); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(2 * judgeEvery)
		if st := c.Status().CallSites[0]; st.Judged < enough || st.State != control.StateLearning || st.Stats.Trips != 0 {
			t.Errorf("%+v", st)
		}
	})
}

// Above the budget the site that wastes most is tripped, and no other.
func TestBudgetTrips(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := mustControl(t, control.Config{})
		wasteful, good := newShop(t, c, control.ModeOn, 0, "ann"), newShop(t, c, control.ModeOn, 0, "ann")
		for i := range 100 {
			user := "ann"
			if i%2 == 0 {
				user = "eve"
			}
			for s, user := range map[*shop]string{wasteful: user, good: "ann"} {
				if _, err := s.chain(t.Context(), user); err != nil {
					t.Fatal(err)
				}
			}
			time.Sleep(50 * ms)
		}
		st := c.Status()
		if w := st.CallSites[0]; w.State != control.StateTripped || !strings.Contains(w.Reason, "budget of 10 %") {
			t.Errorf("%+v", w)
		}
		if g := st.CallSites[3]; g.State != control.StateActive || g.Stats.Trips != 0 {
			t.Errorf("%+v", g)
		}
		if st.ExtraLoad > 0.12 {
			t.Errorf("extra load %v", st.ExtraLoad)
		}
	})
}

// Without predictors a site tells how often the last response would have been right.
func TestDigests(t *testing.T) {
	c := mustControl(t, control.Config{})
	site, err := c.NewCallSite(control.CallSiteConfig{Name: "/s/get"}, "")
	if err != nil {
		t.Fatal(err)
	}
	for i, answer := range []string{"a", "a", "b", "b"} {
		watched := func(asked uint64, v any, err error) {
			var w Watched
			w.Begin(t.Context(), Operation{CallSite: site, Transport: digesting{fakeTransport{}, asked}})
			w.Done(v, err)
		}
		watched(7, answer, nil)
		if i == 1 {
			watched(8, "a", nil)
			watched(7, nil, errors.New("broken"))
		}
	}
	if s := site.Stats(); s.WouldBeRight != 2 || s.WouldBeWrong != 2 || s.Plain != 6 {
		t.Errorf("%+v", s)
	}
}

type digesting struct {
	fakeTransport
	asked uint64
}

func (d digesting) Start(context.Context, *Attempt)      {}
func (d digesting) Equal(p, a any) bool                  { return p == a }
func (d digesting) Same(a, b any) bool                   { return a == b }
func (d digesting) Accept(v any) (any, bool)             { return v, true }
func (d digesting) RequestDigest(context.Context) uint64 { return d.asked }
func (d digesting) ResponseDigest(v any) (digest uint64, ok bool) {
	s, ok := v.(string)
	return uint64(s[0]), ok
}

// A prediction that misled a run counts, also if another one of the call was right:
// what the run wasted is its price.
func TestMisled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := mustControl(t, control.Config{Budget: 10})
		s := newShop(t, c, control.ModeOn, 0, "eve")
		for range 40 {
			_, err := Do(Predicting(t.Context(), "eve", "ann"), func(ctx context.Context) (any, error) {
				u, err := s.call(ctx, s.user, "u", 10*ms, "ann")
				if err != nil {
					return nil, err
				}
				return s.call(ctx, s.price, u.(string), 10*ms, u)
			}, WithLimits(control.Limits{MinSaving: -1}))
			if err != nil {
				t.Fatal(err)
			}
			time.Sleep(50 * ms)
		}
		st := c.Status().CallSites[0]
		if st.Stats.Right != 40 || st.Stats.Wrong != 0 || st.Stats.Misled != 40 || math.Abs(st.HitRate-0.5) > 0.01 ||
			st.BreakEven < 0.3 || st.BreakEven > 0.7 {
			t.Errorf("%+v", st)
		}
	})
}
