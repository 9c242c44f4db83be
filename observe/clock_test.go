package observe_test

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/foresay/foresay/control"
	"github.com/foresay/foresay/observe"
)

// TestClock: what is foreseen in observe mode, and what is reported in mode on, is what a clock
// says, the time without speculation less the time with it, whatever comes after a call of 50 ms
// that is guessed right.
func TestClock(t *testing.T) {
	right := step{kind: get, took: 50, guess: "right"}
	read := step{kind: get, took: 50}
	plainRead := step{kind: get, took: 50, plain: true}
	write := step{kind: put, took: 50}
	orderedRead := step{kind: get, took: 50, via: "ordered"}
	orderedRight := orderedRead
	orderedRight.guess = "right"
	for _, test := range []struct {
		name  string
		steps []step
		true  time.Duration // ms
	}{
		{"a call", []step{right, read}, 50},
		{"a server stream", []step{right, {kind: stream, took: 50}}, 0},
		{"a server stream and a call", []step{right, {kind: stream, took: 50}, right, read}, 0},
		{"Barrier and a call", []step{right, {kind: barrier}, read}, 0},
		{"a call and Barrier", []step{right, read, {kind: barrier}, read}, 50},
		{"a Group with one held call", []step{right, {kind: group, parts: [][]step{{write}}}}, 0},
		{"a Group with a read and a held call", []step{right, {kind: group, parts: [][]step{{read}, {write}}}}, 0},
		{"a Group of plain servers", []step{right, {kind: group, parts: [][]step{{plainRead}, {plainRead}}}}, 0},
		{"goroutines of the code's own and plain servers",
			[]step{right, {kind: raw, parts: [][]step{{plainRead}, {plainRead}, {plainRead}}}}, 0},
		{"goroutines of the code's own", []step{right,
			{kind: raw, parts: [][]step{{{kind: get, took: 30}}, {{kind: get, took: 40}}}}}, 40},
		{"a plain server", []step{right, plainRead}, 0},
		{"two plain servers", []step{{kind: get, took: 50, guess: "right", plain: true}, plainRead, plainRead}, 0},
		{"a plain server that may be asked", []step{right, {kind: get, took: 50, via: "ahead"}}, 50},
		{"a plain server that may be asked, and refuses", []step{right, {kind: refused, took: 20, via: "ahead"}, read}, 0},
		{"a write that is guessed, and a call", []step{{kind: put, took: 50, guess: "right"}, read}, 0},
		{"a write that is guessed, and two calls", []step{{kind: put, took: 50, guess: "right"}, right, read}, 50},
		{"a call and a write that is guessed", []step{right, {kind: put, took: 50, guess: "right"}, read}, 0},
		{"ordered calls", []step{orderedRight, orderedRead}, 0},
		{"ordered calls and another one between", []step{orderedRight, {kind: get, took: 30}, orderedRead}, 30},
		{"Act", []step{right, {kind: act, took: 50}}, 0},
		{"OnCommit", []step{right, {kind: hook, took: 50}}, 0},
		{"OnCommit and a call", []step{right, {kind: hook, took: 50}, read}, 50},
		{"own time", []step{right, {kind: work, took: 20}}, 20},
		{"a future", []step{right, {kind: future, parts: [][]step{{read}, {write}}}}, 0},
		{"calls side by side while those of a wrong guess end", []step{{kind: get, took: 20, guess: "wrong"}, right,
			{kind: group, parts: [][]step{{read}, {read}, {read}}}}, 50},
	} {
		t.Run(test.name, func(t *testing.T) {
			plain := play(t, control.ModeObserve, test.steps, true)
			on := play(t, control.ModeOn, test.steps, true)
			want(t, "true", milliseconds(plain.took-on.took), float64(test.true), 1e-3)
			want(t, "foreseen", plain.report.Foreseen.SavedMS, float64(test.true), 1e-3)
			if test.true == 0 && len(plain.report.Stops) == 0 || plain.report.IfPlain != nil {
				t.Errorf("what stops it: %+v; with plain servers %+v", plain.report.Stops, plain.report.IfPlain)
			}
			if on.report.Realised == nil {
				t.Fatal("nothing is reported")
			}
			want(t, "reported", on.report.Realised.SavedMS, float64(test.true), 1e-3)
		})
	}
}

// TestClockOfHandlers: a handler that waits until its caller is confirmed does not wait without
// speculation. Its server says how long it did, so that what is reported of a staged call behind a
// call of 50 ms that is guessed right is what a clock says.
func TestClockOfHandlers(t *testing.T) {
	right := step{kind: get, took: 50, guess: "right"}
	own := func(ms int) step { return step{kind: work, took: ms} }
	in := func(steps ...step) step { return step{kind: served, parts: [][]step{steps}} }
	replayed := func(steps ...step) step { return step{kind: again, parts: [][]step{steps}} }
	nested, guessed, wrong := step{kind: get, took: 20}, step{kind: get, took: 20, guess: "right"},
		step{kind: get, took: 20, guess: "wrong"}
	for _, test := range []struct {
		name  string
		steps []step
		true  time.Duration // ms
	}{
		{"nothing to wait for", []step{right, in(own(20))}, 20},
		{"Barrier last", []step{right, in(own(20), step{kind: barrier})}, 20},
		{"Barrier first", []step{right, in(step{kind: barrier}, own(20))}, 0},
		{"Barrier between", []step{right, in(own(10), step{kind: barrier}, own(30))}, 10},
		{"Act", []step{right, in(own(10), step{kind: act, took: 30}, own(5))}, 10},
		{"a held call", []step{right, in(own(10), step{kind: put, took: 30}, own(5))}, 10},
		{"a plain server", []step{right, in(own(10), step{kind: get, took: 30, plain: true}, own(5))}, 10},
		{"Barrier that its caller was confirmed before", []step{right, in(own(60), step{kind: barrier}, own(5))}, 50},
		{"its own guess", []step{right, replayed(guessed, nested, step{kind: barrier}, own(5))}, 20},
		{"its own guess behind Barrier", []step{right, replayed(own(5), step{kind: barrier}, guessed, nested, own(5))}, 5},
		{"its own wrong guess", []step{right, replayed(own(5), wrong, nested, step{kind: barrier}, own(5))}, 50},
		{"two deep", []step{right, in(own(5), in(own(10), step{kind: barrier}, own(10)))}, 15},
		{"two deep, both", []step{right, in(own(5), in(own(5), step{kind: barrier}, own(10)), step{kind: barrier}, own(5))},
			10},
		{"side by side", []step{right, in(own(5), step{kind: group, parts: [][]step{
			{step{kind: barrier}, own(10)}, {own(60), step{kind: barrier}}, {in(step{kind: act, took: 20})}}})}, 43},
		{"OnCommit", []step{right, in(own(10), step{kind: hook, took: 30})}, 10},
		{"side by side with a held call, after a tentative answer", []step{{kind: get, took: 75, guess: "right"},
			replayed(step{kind: group, parts: [][]step{
				{{kind: staged, took: 43}}, {{kind: get, took: 39, plain: true}}}})}, 4},
		{"a Group after a tentative answer with OnCommit", []step{{kind: get, took: 75, guess: "right"},
			replayed(in(step{kind: hook, took: 41}),
				step{kind: group, parts: [][]step{{{kind: memo, took: 40}}}})}, 40},
		{"a call with OnCommit, for which a handler on a guess does not wait", []step{{kind: get, took: 75, guess: "right"},
			replayed(in(step{kind: hook, took: 41}, step{kind: get, took: 40}),
				step{kind: group, parts: [][]step{{{kind: memo, took: 40}}}})}, 80},
		{"a lane that another one's tentative answer holds up at Barrier", []step{{kind: get, took: 57, guess: "right"},
			replayed(step{kind: group, parts: [][]step{
				{{kind: staged, took: 8}}, {{kind: memo, took: 48}, {kind: barrier}}}})}, 46},
		{"a lane that another one's call holds up at Barrier", []step{{kind: get, took: 57, guess: "right"},
			replayed(step{kind: group, parts: [][]step{
				{{kind: staged, took: 8}}, {nested}, {{kind: memo, took: 15}, {kind: barrier}}}})}, 18},
		{"OnCommit, two deep", []step{right, in(own(10), in(own(5), step{kind: hook, took: 30}))}, 15},
	} {
		t.Run(test.name, func(t *testing.T) {
			plain := play(t, control.ModeObserve, test.steps, true)
			on := play(t, control.ModeOn, test.steps, true)
			truth := milliseconds(plain.took - on.took)
			if on.report.Realised == nil {
				t.Fatal("nothing is reported")
			}
			want(t, "reported", on.report.Realised.SavedMS, truth, 1e-3)
			want(t, "true", truth, float64(test.true), 1e-3)
		})
	}
}

// TestClockOfFailure: a staged call that fails on a guess takes until it has failed, and not until
// the caller's word is there, which adds a round trip.
func TestClockOfFailure(t *testing.T) {
	steps := []step{{kind: get, took: 50, guess: "right"}, {kind: failing, took: 13}, {kind: get, took: 50}}
	plain, on := play(t, control.ModeObserve, steps, true), play(t, control.ModeOn, steps, true)
	want(t, "true", milliseconds(plain.took-on.took), 13-playRTT, 1e-3)
	want(t, "reported", on.report.Realised.SavedMS, 13-playRTT, 1e-3)
}

// TestClockOfReplays: calls that goroutines of the code's own made side by side did not follow each
// other because a replay has the answers of both at once.
func TestClockOfReplays(t *testing.T) {
	read, wrong := step{kind: get, took: 50}, step{kind: get, took: 50, guess: "wrong", plain: true}
	for name, steps := range map[string][]step{
		"calls that are sent at once": {{kind: raw, parts: [][]step{{read}, {{kind: get, took: 40}}}}, wrong},
		"calls that are held until another one is answered": {{kind: get, took: 24, guess: "right"},
			{kind: raw, parts: [][]step{
				{{kind: get, took: 20}}, {{kind: get, took: 21, plain: true}}, {{kind: get, took: 31, plain: true}}}},
			{kind: get, took: 19, guess: "wrong"}},
	} {
		t.Run(name, func(t *testing.T) {
			plain, on := play(t, control.ModeObserve, steps, true), play(t, control.ModeOn, steps, true)
			want(t, "true", milliseconds(plain.took-on.took), 0, 1e-3)
			if on.report.Realised == nil {
				t.Fatal("nothing is reported")
			}
			want(t, "reported", on.report.Realised.SavedMS, 0, 1e-3)
		})
	}
}

// TestClockOfLeftCode: a run that was discarded may still sleep when its request has ended, and
// changes no figure.
func TestClockOfLeftCode(t *testing.T) {
	call := func(took int, guess string) step { return step{kind: get, took: took, guess: guess} }
	plain := func(took int) step { return step{kind: get, took: took, guess: "right", plain: true} }
	own := func(took int) step { return step{kind: work, took: took} }
	steps := []step{{kind: future, parts: [][]step{
		{
			{kind: group, parts: [][]step{{call(20, "right"), own(2), call(27, "right")}}},
			{kind: group, parts: [][]step{{call(38, "")}, {call(24, "right"), plain(38), {kind: put, took: 50},
				call(6, "right")}}},
			plain(43), own(4),
		},
		{{kind: act, took: 3}, call(50, "wrong"), {kind: served, parts: [][]step{{call(56, ""), own(3)}}}},
	}}}
	observed, on := play(t, control.ModeObserve, steps, true), play(t, control.ModeOn, steps, true)
	if on.report.Realised == nil {
		t.Fatal("nothing is reported")
	}
	want(t, "reported", on.report.Realised.SavedMS, milliseconds(observed.took-on.took), 1e-3)
}

// TestUnknownServers: as long as no call was tried on a guess, observe foresees both: plain
// servers, and such that take it.
func TestUnknownServers(t *testing.T) {
	steps := []step{{kind: get, took: 50, guess: "right", plain: true}, {kind: get, took: 50, plain: true}}
	q := play(t, control.ModeObserve, steps, false).report
	if q.IfPlain == nil {
		t.Fatal("nothing is foreseen for plain servers")
	}
	want(t, "with specgrpc on the servers", q.Foreseen.SavedMS, 50, 1e-3)
	want(t, "with plain servers", q.IfPlain.SavedMS, 0, 1e-3)
	var text bytes.Buffer
	if err := (&observe.Report{Requests: []observe.RequestReport{*q}}).WriteText(&text); err != nil {
		t.Fatal(err)
	}
	if says := "with specgrpc on the servers saves 50.0 ms per request; with plain servers: 0 ms"; !strings.Contains(
		text.String(), says) {
		t.Errorf("want %q in:\n%s", says, &text)
	}
}

// TestServersThatWereMet: of connections that know their servers, what is foreseen is what a clock
// says. No call is refused, and none waits until it is known how many the server takes.
func TestServersThatWereMet(t *testing.T) {
	many := step{kind: group}
	for range 40 {
		many.parts = append(many.parts, []step{{kind: get, took: 30}})
	}
	for _, test := range []struct {
		name  string
		steps []step
		saved float64
	}{
		{"a staged call that a plain server would refuse after its caller was confirmed", []step{
			{kind: get, took: 20, guess: "right", plain: true}, {kind: work, took: 19}, {kind: staged, took: 20, plain: true}},
			19},
		{"many calls at once", []step{{kind: get, took: 20, guess: "right"}, many}, 20},
	} {
		t.Run(test.name, func(t *testing.T) {
			plain, on := play(t, control.ModeObserve, test.steps, true), play(t, control.ModeOn, test.steps, true)
			want(t, "true", milliseconds(plain.took-on.took), test.saved, 1e-3)
			want(t, "foreseen", plain.report.Foreseen.SavedMS, test.saved, 1e-3)
			want(t, "reported", on.report.Realised.SavedMS, test.saved, 1e-3)
		})
	}
}

// TestStopsInWords: the report says what waits.
func TestStopsInWords(t *testing.T) {
	right := step{kind: get, took: 50, guess: "right"}
	for says, next := range map[string]step{
		"a stream waits here: " + watch: {kind: stream,
			took: 50},
		"a call with effects waits here: /foresay.testkv.v1.TestKV/Put": {kind: put,
			took: 50},
		"held: the server takes no call on a guess, it has no registrar: /foresay.testkv.v1.TestKV/Get": {kind: get, took: 50,
			plain: true},
		"OnCommit functions wait here": {kind: hook,
			took: 50}, "Act waits here": {kind: act, took: 50}, "Barrier waits here": {kind: barrier},
	} {
		r := observe.Report{Requests: []observe.RequestReport{*play(t, control.ModeObserve, []step{right, next},
			true).report}}
		var text bytes.Buffer
		if err := r.WriteText(&text); err != nil {
			t.Fatal(err)
		}
		if line := "  50.0 ms of what could run ahead: " + says + "\n"; !strings.Contains(text.String(), line) {
			t.Errorf("want %q in:\n%s", line, &text)
		}
	}
}

func milliseconds(d time.Duration) float64 { return float64(d) / 1e6 }
