// Package domino holds the experiments of the thesis that Domino is from: how long writes take in a
// simulated wide-area network, with Domino and with the protocols that the thesis compares it with.
package domino

import "github.com/foresay/foresay/bench"

// Experiments returns the experiments, in the order in which they are best read.
func Experiments() []bench.Experiment {
	return []bench.Experiment{commit(), percentile(), execution(), adapt()}
}
