package calls

import (
	"bytes"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/foresay/foresay/bench"
)

// TestEveryPatternOfGuessesCostsWhatItMust makes one request for each way in which the
// predictions of a chain can be right and wrong. Each wrong one, but the last call's,
// costs the work of one more call, and the calls behind it are made again.
func TestEveryPatternOfGuessesCostsWhatItMust(t *testing.T) {
	const calls = 6
	for _, s := range []stack{foresayDo(variant{}), foresayThen(variant{})} {
		t.Run(s.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				sys, err := openSystem(s, bench.Virtual, topology{servers: calls, repeatable: true}, 1)
				defer sys.close()
				if err != nil {
					t.Fatal(err)
				}
				l := load{callers: 1, calls: calls, perCaller: 1, ask: ask{work: chainWork}}
				play(t.Context(), sys, l, l.requests(1)) // connects
				for wrong := range 1 << calls {
					checkPattern(t, sys, l, wrong)
				}
			})
		})
	}
}

// checkPattern makes one request; the bits of wrong say which predictions are.
func checkPattern(t *testing.T, sys *system, l load, wrong int) {
	t.Helper()
	r := request{seed: uint64(wrong) << 32, guesses: make([]guess, l.calls)}
	wantTime, wantCalls := chainWork, l.calls
	for i := range l.calls {
		r.guesses[i] = rightGuess
		if wrong>>i&1 == 1 {
			r.guesses[i] = wrongGuess
			wantCalls += l.calls - 1 - i
			if i < l.calls-1 {
				wantTime += chainWork
			}
		}
	}
	before := sys.begun()
	took, err := player{sys: sys, load: l, caller: sys.callers[0]}.request(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	if err := sys.settle(t.Context()); err != nil {
		t.Fatal(err)
	}
	made := int(sys.begun() - before)
	if took = took.Round(time.Microsecond); took != wantTime || made != wantCalls {
		t.Errorf("predictions %s: took %v and %d calls, want %v and %d", pattern(r), took, made, wantTime, wantCalls)
	}
}

func pattern(r request) string { return fmt.Sprint(r.guesses) }

func TestQuestionInvertsAnswer(t *testing.T) {
	rng := bench.Random(3)
	for range 100 {
		p := firstPayload(rng.Uint64())
		if len(p) != payloadBytes {
			t.Fatalf("a payload has %d bytes, want %d", len(p), payloadBytes)
		}
		if got := question(answer(p)); !bytes.Equal(got, p) {
			t.Fatalf("question(answer(%x)) = %x", p, got)
		}
		if bytes.Equal(wrongAnswer(p), answer(p)) {
			t.Fatalf("the wrong answer to %x is right", p)
		}
	}
}
