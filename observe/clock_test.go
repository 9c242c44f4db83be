package observe_test

import (
	"testing"
	"time"

	"github.com/foresay/foresay"
)

// TestClock: what is reported in mode on is what a clock says, the time without speculation less the time with it,
// whatever comes after a call of 50 ms that is guessed right.
func TestClock(t *testing.T) {
	right := step{kind: get, took: 50, guess: "right"}
	read := step{kind: get, took: 50}
	plainRead := step{kind: get, took: 50, plain: true}
	write := step{kind: put, took: 50}
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
		{"a plain server", []step{right, plainRead}, 0},
		{"two plain servers", []step{{kind: get, took: 50, guess: "right", plain: true}, plainRead, plainRead}, 0},
		{"Act", []step{right, {kind: act, took: 50}}, 0},
		{"OnCommit", []step{right, {kind: hook, took: 50}}, 0},
		{"OnCommit and a call", []step{right, {kind: hook, took: 50}, read}, 50},
		{"own time", []step{right, {kind: work, took: 20}}, 20},
		{"a future", []step{right, {kind: future, parts: [][]step{{read}, {write}}}}, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			plain := play(t, foresay.ModeObserve, test.steps)
			on := play(t, foresay.ModeOn, test.steps)
			want(t, "true", milliseconds(plain.took-on.took), float64(test.true), 1e-3)
			if on.report.Realised == nil {
				t.Fatal("nothing is reported")
			}
			want(t, "reported", on.report.Realised.SavedMS, float64(test.true), 1e-3)
		})
	}
}

func milliseconds(d time.Duration) float64 { return float64(d) / 1e6 }
