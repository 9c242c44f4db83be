package bftcmd

import (
	"math/rand/v2"

	"github.com/foresay/foresay/bft"
	"github.com/foresay/foresay/internal/cli/command"
)

// A served is what the commands here know of a service that groups replicate.
type served struct {
	// verbs are its own at the prompt of dev.
	verbs func(d *dev) []command.Verb
	// write and read are calls for measurements, of one of so many keys if the service has keys.
	write, read func(l *command.ClosedLoop, random *rand.Rand) bft.Call
	// failed says what is wrong with a result that was confirmed.
	failed func(bft.Result) error
}

// services are those of package catalog by their names.
func services() map[string]served {
	return map[string]served{counterName: servedCounter(), kvName: servedKV()}
}
