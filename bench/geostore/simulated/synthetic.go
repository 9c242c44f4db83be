package simulated

import (
	"context"

	"github.com/foresay/foresay/workload"
	"github.com/foresay/foresay/workload/synthetic"
)

// synthetic returns the jobs of a user: one transaction after the other.
func (u *users) synthetic(x *user, c synthetic.Config) func() job {
	client := synthetic.Client{Config: c, Own: x.number, Others: x.others}
	return func() job {
		txn := client.Next(x.random)
		return job{code: func(ctx context.Context, tx workload.Tx) error {
			return txn.Run(ctx, homed{tx, len(u.placement), homeOfSynthetic})
		}}
	}
}

func homeOfSynthetic(key string) int {
	home, _ := synthetic.Home(key)
	return home
}
