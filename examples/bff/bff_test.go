package main

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/foresay/foresay/wan"
	"github.com/foresay/foresay/wan/shape"
)

// virtual returns a network without delays, for a bubble.
func virtual() network {
	return shape.NewNetwork(wan.Uniform(0, append(serviceSites(), customers, frontSite)...), 0)
}

// climbVirtual climbs rungs in a bubble, where times are exact.
func climbVirtual(t *testing.T, cfg config, names ...string) (all []*result) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		n := virtual()
		defer n.Close()
		var err error
		if all, err = climbAll(t.Context(), n, cfg, names...); err != nil {
			t.Fatal(err)
		}
	})
	return all
}

// TestLadder: what observing foresees comes true, p50 falls by half, and the
// answers are those of plain execution, which climb checks, as it checks that
// each view is recorded once.
func TestLadder(t *testing.T) {
	all := climbVirtual(t, config{requests: 600, rate: 120, seed: 1}, "plain", "observe", "prepared", "canary", "on",
		"off")
	plain, observed, prepared, canary, on, off := all[0], all[1], all[2], all[3], all[4], all[5]
	var table strings.Builder
	writeTable(&table, all)
	t.Log("\n" + table.String())
	for _, r := range []*result{observed, prepared, off} {
		if r.mean() != plain.mean() || r.calls != r.needed {
			t.Errorf("%s: the mean is %v with %d calls, plain it is %v with %d", r.rung.name, r.mean(), r.calls, plain.mean(),
				plain.calls)
		}
	}
	if got, most := on.quantile(0.5), plain.quantile(0.5)/2; got > most {
		t.Errorf("p50 of on is %v, want at most %v", got, most)
	}
	foreseen, realised := prepared.foreseen(), prepared.mean()-on.mean()
	if ratio := float64(realised) / float64(foreseen); ratio < 0.85 || ratio > 1.15 {
		t.Errorf("foreseen were %v per request, and %v saved", foreseen, realised)
	}
	// Without predictors some requests are forgotten, and which is chance.
	if f := observed.foreseen(); f < realised/2 || f > realised*115/100 {
		t.Errorf("without predictors %v were foreseen, and %v saved", f, realised)
	}
	if saved := plain.mean() - canary.mean(); saved < realised/10 || saved > realised*3/10 {
		t.Errorf("a canary of 20%% saved %v, and on %v", saved, realised)
	}
	for _, r := range all {
		if r.extraLoad() > 0.1 {
			t.Errorf("%s: the extra load is %.2f", r.rung.name, r.extraLoad())
		}
		if len(r.answers) != 600 || r.verdict.same+r.verdict.meanwhile != 600 || r.verdict.views < 300 ||
			r.verdict.views == 600 {
			t.Errorf("%s: %d answers: %+v", r.rung.name, len(r.answers), r.verdict)
		}
	}
}

// TestGuessesAreSometimesWrong: the ladder shows something only if data changes.
func TestGuessesAreSometimesWrong(t *testing.T) {
	on := climbVirtual(t, config{requests: 300, rate: 120, seed: 3}, "on")[0]
	methods := on.report.Requests[0].Methods
	if len(methods) != 5 {
		t.Errorf("%d methods are in the report", len(methods))
	}
	for _, m := range methods {
		if m.Effect == "none" && (m.Right == 0 || m.Right == m.Guessed) {
			t.Errorf("%s: %d of %d guesses were right", m.Name, m.Right, m.Guessed)
		}
	}
}

func TestCheckRefuses(t *testing.T) {
	good := func() (*data, []answer) {
		d := newData(1)
		at := time.Now()
		u, _ := get(d, d.users, "u0")
		price, _ := get(d, d.prices, offer{"a0", u.plan})
		pieces, _ := get(d, d.stock, "a0")
		a := answer{request: request{id: "r", user: "u0", sku: "a0"}, begun: at, end: at,
			page: Page{u.name, "a0", &Offer{price, pieces}}}
		d.views["r"] = append(d.views["r"], viewOf(a))
		return d, []answer{a}
	}
	d, answers := good()
	if v, err := d.check(answers); err != nil || v != (verdict{same: 1, views: 1}) {
		t.Fatalf("a right answer: %+v, %v", v, err)
	}
	for name, spoil := range map[string]func(d *data, a *answer){
		"another price":  func(_ *data, a *answer) { a.page.Offer.PriceCents++ },
		"another stock":  func(_ *data, a *answer) { a.page.Offer.Pieces++ },
		"another name":   func(_ *data, a *answer) { a.page.Name += "x" },
		"no offer":       func(_ *data, a *answer) { a.page.Offer = nil },
		"no view":        func(d *data, _ *answer) { delete(d.views, "r") },
		"two views":      func(d *data, a *answer) { d.views["r"] = append(d.views["r"], viewOf(*a)) },
		"a false view":   func(d *data, _ *answer) { d.views["r"][0].PriceCents++ },
		"a strange view": func(d *data, a *answer) { d.views["s"] = append(d.views["s"], viewOf(*a)) },
		"a value of later": func(d *data, a *answer) {
			put(d.stock, "a0", 7, a.end.Add(1))
			a.page.Offer.Pieces = 7
		},
		"a value of before": func(d *data, a *answer) {
			put(d.stock, "a0", 7, a.begun.Add(-1))
		},
	} {
		d, answers := good()
		spoil(d, &answers[0])
		if v, err := d.check(answers); err == nil {
			t.Errorf("%s: %+v", name, v)
		}
	}
	d, answers = good()
	answers[0].end = answers[0].end.Add(time.Second)
	put(d.stock, "a0", 7, answers[0].end)
	answers[0].page.Offer.Pieces = 7
	if v, err := d.check(answers); err != nil || v.meanwhile != 1 {
		t.Errorf("a value that changed meanwhile: %+v, %v", v, err)
	}
}

func TestFlags(t *testing.T) {
	for _, args := range []string{
		"--rung moon", "--rung on --ladder", "--requests 0", "--rate 0", "--rate NaN", "--report x", "on",
		"--rung plain --debug localhost:0",
	} {
		if err := run(t.Context(), strings.Fields(args), new(strings.Builder)); err == nil {
			t.Errorf("%s: no error", args)
		}
	}
}
