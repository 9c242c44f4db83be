package calls

import (
	"math/rand/v2"
)

// guess says how one call of a request is predicted.
type guess uint8

const (
	noGuess guess = iota
	rightGuess
	wrongGuess
)

// A request is one chain of dependent calls to be made.
type request struct {
	// seed is what the first call's argument is made of.
	seed uint64
	// guesses has one element for each call of the chain.
	guesses []guess
}

// schedule lays out n requests of the given number of calls. At each place of the
// chain exactly percent of the predictions, rounded to the nearest whole request, are right;
// which ones is shuffled, independently for each place.
func schedule(n, calls, percent int, rng *rand.Rand) []request {
	requests := make([]request, n)
	guesses := make([]guess, n*calls)
	for i := range requests {
		requests[i] = request{seed: rng.Uint64(), guesses: guesses[i*calls : (i+1)*calls]}
	}
	right := (n*percent + 50) / 100
	for place := range calls {
		for i, r := range rng.Perm(n) {
			if r < right {
				requests[i].guesses[place] = rightGuess
			} else {
				requests[i].guesses[place] = wrongGuess
			}
		}
	}
	return requests
}

// unguessed lays out n requests without predictions.
func unguessed(n, calls int, rng *rand.Rand) []request {
	requests := schedule(n, calls, 0, rng)
	for _, r := range requests {
		clear(r.guesses)
	}
	return requests
}

func (g guess) String() string {
	switch g {
	case rightGuess:
		return "right"
	case wrongGuess:
		return "wrong"
	}
	return "none"
}
