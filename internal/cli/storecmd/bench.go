package storecmd

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/foresay/foresay/internal/cli/command"
	"github.com/foresay/foresay/store"
	"github.com/foresay/foresay/store/client"
	"github.com/foresay/foresay/store/storeservice"
)

type benchFlags struct {
	clientFlags
	loop   command.ClosedLoop
	mode   string
	level  string
	access int // keys of a transaction
	puts   int // percent
}

// Kinds of transactions.
const (
	benchChange = iota
	benchRead
	benchPut
)

func (p *program) benchCommand() *cobra.Command {
	f := benchFlags{loop: command.ClosedLoop{Name: "store bench", Kinds: []string{"change", "read", "put"},
		ValueBytes: 100, Keys: 100_000}}
	c := &cobra.Command{
		Use:   "bench",
		Short: "Measure a store: throughput and latency of a closed loop",
		Long: `Measure a store: each client makes one transaction after the other. A change reads --access random
keys and writes them; with --reads or --puts, so many percent of the transactions only read or
only write. All clients share a connection to each machine. Keys begin with "bench/" and stay
there. A transaction that is refused, for another one's sake, is tried again, and counts once.

With --every 1s it shows each second, for a look at what a site's absence or return costs.`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			mode, err := client.ParseMode(f.mode)
			if err != nil {
				return command.Usagef("store bench: --read-mode: %w", err)
			}
			opts, err := levelOption("store bench", f.level)
			if err != nil {
				return err
			}
			if err := f.validate(); err != nil {
				return err
			}
			return p.withClient(&f.clientFlags, func(conn *storeservice.Client) error {
				txns, err := conn.Transactions(mode, 0)
				if err != nil {
					return err
				}
				return p.bench(c.Context(), txns, &f, opts)
			})
		},
	}
	flags := c.Flags()
	f.add(flags, 30*time.Second)
	f.loop.Add(flags, "how many percent of the transactions only read")
	flags.StringVar(&f.mode, "read-mode", client.Spec.String(), "how reads are waited for, as in 'store txn'")
	addLevel(flags, &f.level)
	flags.IntVar(&f.access, "access", 1, "how many keys a transaction is about")
	flags.IntVar(&f.puts, "puts", 0, "how many percent of the transactions only write")
	return c
}

// addLevel adds the flag that asks for a level.
func addLevel(flags *pflag.FlagSet, level *string) {
	flags.StringVar(level, "level", "",
		"strict: in the order of real time; serializable: if it only reads, it may see an earlier state of the store;\n"+
			"snapshot: it reads what was committed before it began, and of two that write the same key one commits;\n"+
			"stale(5s): it may be so old, and the nearest site answers alone, of carousel\n"+
			"(default: what the store's protocol promises)")
}

// levelOption returns the option that a command's flag asks for, if it does.
func levelOption(name, level string) ([]client.Option, error) {
	if level == "" {
		return nil, nil
	}
	l, err := client.ParseLevel(level)
	if err != nil {
		return nil, command.Usagef("%s: --level: %w", name, err)
	}
	return []client.Option{l}, nil
}

func (f *benchFlags) validate() error {
	if err := f.loop.Validate(); err != nil {
		return err
	}
	left := 100 - f.loop.Reads
	switch most := min(store.MaxAccesses/2, f.loop.Keys); {
	case f.access < 1 || f.access > most:
		return command.Usagef("store bench: --access is %d; want 1 to %d", f.access, most)
	case f.puts < 0 || f.puts > left:
		return command.Usagef("store bench: --puts is %d; want 0 to %d, which --reads leaves", f.puts, left)
	}
	return f.loop.ValidateValues(store.MaxTxnBytes / 2 / f.access)
}

func (p *program) bench(ctx context.Context, txns *client.Client, f *benchFlags, opts []client.Option) error {
	f.loop.Timeout = f.timeout
	// The first transaction tells early if the store is not there, or does not have the level.
	first, cancel := context.WithTimeout(ctx, f.timeout)
	err := txns.Txn(first, func(_ context.Context, tx *client.Tx) error { return tx.Put("bench/0", nil) }, opts...)
	cancel()
	if err != nil {
		return fmt.Errorf("store bench: %w", err)
	}
	f.loop.Call = func(ctx context.Context, _ int, random *rand.Rand) (kind int, began time.Time, err error) {
		keys := f.some(random)
		var value []byte
		switch percent := random.IntN(100); {
		case percent < f.loop.Reads:
			kind = benchRead
		case percent < f.loop.Reads+f.puts:
			kind = benchPut
		}
		if kind != benchRead {
			value = command.BenchValue(random, f.loop.ValueBytes)
		}
		began = time.Now()
		err = txns.Txn(ctx, func(ctx context.Context, tx *client.Tx) error {
			for _, key := range keys {
				if kind == benchPut {
					break
				}
				if _, _, err := tx.Get(ctx, key); err != nil {
					return err
				}
			}
			for _, key := range keys {
				if kind == benchRead {
					break
				}
				if err := tx.Put(key, value); err != nil {
					return err
				}
			}
			return nil
		}, opts...)
		return kind, began, outcomeError(err)
	}
	return p.LoadTest(ctx, &f.loop, f.json)
}

// outcomeError returns what a transaction came to if it is not committed, without its name: what is
// alike is counted together.
func outcomeError(err error) error {
	if err == nil {
		return nil
	}
	out := newOutcome(nil, err)
	switch {
	case out.Reason != "":
		return fmt.Errorf("%s: %s", out.Outcome, out.Reason)
	case len(out.Sites) == 0 && out.Transaction != "":
		return errors.New(out.Outcome)
	case len(out.Sites) == 0:
		return errors.New(out.Error)
	}
	sites := strings.Join(out.Sites, ", ")
	if _, blocked := errors.AsType[*client.BlockedError](err); blocked {
		return fmt.Errorf("%s until %s is back", out.Outcome, sites)
	}
	return fmt.Errorf("%s: no answer from %s", out.Outcome, sites)
}

// some returns the keys of a transaction, each once.
func (f *benchFlags) some(random *rand.Rand) []string {
	taken := make(map[int]bool, f.access)
	keys := make([]string, 0, f.access)
	for len(keys) < f.access {
		if k := random.IntN(f.loop.Keys); !taken[k] {
			taken[k] = true
			keys = append(keys, fmt.Sprintf("bench/%d", k))
		}
	}
	return keys
}
