package storecmd

import (
	"github.com/spf13/pflag"

	"github.com/foresay/foresay/internal/catalog"
	"github.com/foresay/foresay/internal/cli/command"
	"github.com/foresay/foresay/store"
)

// addShards adds the flag for the number of shards, which has two names.
func addShards(flags *pflag.FlagSet, to *int, more string) {
	flags.SetNormalizeFunc(func(_ *pflag.FlagSet, name string) pflag.NormalizedName {
		if name == "partitions" {
			name = "shards"
		}
		return pflag.NormalizedName(name)
	})
	flags.IntVar(to, "shards", 3, "or --partitions: how many parts the keys are dealt to"+more)
}

// placement is at which sites the shards are, as flags say it.
type placement struct {
	replicas int
	leaders  []string
}

func (p *placement) add(flags *pflag.FlagSet) {
	flags.IntVar(&p.replicas, "replicas", 0, "how many sites have each shard: its first leader's and those that follow\n"+
		"in the order of the sites (default: all have all)")
	flags.StringSliceVar(&p.leaders, "leaders", nil, "the `sites` that lead the shards first, dealt to them in turn\n"+
		"(default: all of them)")
}

// of returns the placement of shards at sites; nil: all sites have all.
func (p *placement) of(verb, protocol string, sites []string, shards int) ([][]string, error) {
	if p.replicas == 0 && len(p.leaders) == 0 {
		return nil, nil
	}
	proto, err := catalog.Store(protocol)
	if err != nil {
		return nil, command.Usagef("%s: --protocol: %w", verb, err)
	}
	if !proto.Partial {
		return nil, command.Usagef("%s: --replicas and --leaders: with %s all sites have all shards, and none leads them",
			verb, proto.Name)
	}
	replicas := p.replicas
	if replicas == 0 {
		replicas = len(sites)
	}
	out, err := store.Ring(sites, shards, replicas, p.leaders)
	if err != nil {
		return nil, command.Usagef("%s: --replicas, --leaders: %w", verb, err)
	}
	return out, nil
}
