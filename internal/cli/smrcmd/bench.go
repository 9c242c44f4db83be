package smrcmd

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/spf13/cobra"

	"github.com/foresay/foresay/internal/cli/command"
	"github.com/foresay/foresay/smr"
	"github.com/foresay/foresay/smr/kv"
	"github.com/foresay/foresay/smr/service"
)

type benchFlags struct {
	clientFlags
	loop command.ClosedLoop
	ack  AckFlag
}

func (p *program) benchCommand() *cobra.Command {
	f := benchFlags{loop: command.ClosedLoop{Name: "smr bench", ValueBytes: 16, Keys: 1000}, ack: AckFlag(smr.AckExecuted)}
	c := &cobra.Command{
		Use:   "bench",
		Short: "Measure a service: throughput and latency of a closed loop",
		Long: `Measure a service: each client makes one call after the other, writes of random keys and, with
--reads, linearizable reads. All clients share a connection to each replica. Keys begin with
"bench/" and stay there.`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := f.validate(); err != nil {
				return err
			}
			return p.withLastingClient(c.Context(), &f.clientFlags, func(ctx context.Context, client *service.Client) error {
				return p.bench(ctx, client, &f)
			})
		},
	}
	flags := c.Flags()
	f.add(flags)
	f.loop.Add(flags, "how many percent of the calls are reads")
	flags.Var(&f.ack, "ack", "when a write is done: durable, its position is fixed; ordered, also before all later "+
		"calls; executed")
	return c
}

func (f *benchFlags) validate() error {
	if err := f.loop.ValidateValues(service.MaxValueBytes); err != nil {
		return err
	}
	return f.loop.Validate()
}

// AckFlag is a kind of acknowledgement as a flag.
type AckFlag smr.Ack

func (a *AckFlag) String() string { return smr.Ack(*a).String() }
func (a *AckFlag) Type() string   { return "kind" }

func (a *AckFlag) Set(s string) error {
	for _, k := range []smr.Ack{smr.AckDurable, smr.AckOrdered, smr.AckExecuted} {
		if s == k.String() {
			*a = AckFlag(k)
			return nil
		}
	}
	return errors.New("durable, ordered or executed")
}

func (p *program) bench(ctx context.Context, c *service.Client, f *benchFlags) error {
	// The first call finds the leader, and tells early if there is none.
	first, cancel := context.WithTimeout(ctx, f.timeout)
	_, err := c.Put(first, "bench/0", nil)
	cancel()
	if err != nil {
		return fmt.Errorf("smr bench: %w", err)
	}
	f.loop.Timeout = f.timeout
	f.loop.Kinds = []string{"write, " + f.ack.String(), "read"}
	f.loop.Call = func(ctx context.Context, _ int, random *rand.Rand) (int, time.Time, error) {
		key := fmt.Appendf(nil, "bench/%d", random.IntN(f.loop.Keys))
		if random.IntN(100) < f.loop.Reads {
			began := time.Now()
			_, err := c.Read(ctx, kv.Get(key))
			return 1, began, err
		}
		call := smr.Call{Kind: smr.Propose, Ack: smr.Ack(f.ack),
			Command: kv.Put(key, command.BenchValue(random, f.loop.ValueBytes))}
		if call.Ack == smr.AckExecuted {
			call.Kind = smr.Execute
		}
		began := time.Now()
		_, err := c.Do(ctx, call)
		return 0, began, err
	}
	return p.LoadTest(ctx, &f.loop, f.json)
}
