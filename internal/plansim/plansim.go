// Package plansim has a protocol of package smr's family run in a simulated network, and measures
// what package plan's model computes: how long calls take.
package plansim

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/foresay/foresay/smr"
	"github.com/foresay/foresay/smr/plan"
)

// Config is what is measured.
type Config struct {
	Protocol smr.Protocol
	// Setting has the network, the replicas and the clients. Its Slack is the protocol's affair. If
	// it is Busy, all clients call at once, 900 times a second in all; otherwise each call is
	// alone.
	Setting plan.Setting
	// Calls is how many calls of each kind are measured at each client. 0 is 3, or 20 if the
	// setting is Busy.
	Calls int
	Seed  uint64
}

// Result is what one client got.
type Result struct {
	Client plan.Client
	Ack    smr.Ack // AckDurable or AckExecuted
	// Took has what each call took, in order. What it took before the first one is not among them:
	// it finds the others' slots unused for long.
	Took []time.Duration
}

// Median returns the median of what the calls took.
func (r Result) Median() time.Duration {
	took := slices.Sorted(slices.Values(r.Took))
	return (took[(len(took)-1)/2] + took[len(took)/2]) / 2
}

// Measure returns two results for each client, durable and executed, in the order of the setting's
// clients.
func Measure(c Config) ([]Result, error) {
	if err := c.Setting.Validate(); err != nil {
		return nil, err
	}
	w, err := newWorld(c)
	if err != nil {
		return nil, fmt.Errorf("plansim: %s: %w", c.Protocol.Name, err)
	}
	out := results(c.Setting.Clients)
	if c.Setting.Busy {
		err = w.together(cmp.Or(c.Calls, 20), out)
	} else {
		err = w.alone(cmp.Or(c.Calls, 3), out)
	}
	if err != nil {
		return nil, fmt.Errorf("plansim: %s: %w", c.Protocol.Name, err)
	}
	return out, nil
}

// results returns empty results.
func results(clients []plan.Client) []Result {
	var out []Result
	for _, client := range clients {
		for _, ack := range acks() {
			out = append(out, Result{Client: client, Ack: ack})
		}
	}
	return out
}

func acks() []smr.Ack { return []smr.Ack{smr.AckDurable, smr.AckExecuted} }
