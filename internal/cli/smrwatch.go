package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/foresay/foresay/internal/cli/service"
	"github.com/foresay/foresay/smr/client"
	"github.com/foresay/foresay/smr/kv"
)

func (p *program) smrWatchCommand() *cobra.Command {
	var f clientFlags
	var every time.Duration
	var changes int
	c := &cobra.Command{
		Use:   "watch KEY",
		Short: "Show a key's value now, and whenever it has changed",
		Long: "Show a key's value now, and whenever it has changed, until interrupted. The state machine has no notifications:\n" +
			"the key is read time and again, by linearizable reads, and its version tells whether it changed. Of several\n" +
			"changes between two reads only the last one is seen.",
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			if every <= 0 {
				return usagef("smr watch: --every is %v; want more than 0", every)
			}
			err := p.withLastingClient(c.Context(), &f, func(ctx context.Context, client *service.Client) error {
				return p.watch(ctx, client, &f, args[0], every, changes)
			})
			if c.Context().Err() != nil && errors.Is(err, context.Canceled) {
				return nil // that is how it is ended
			}
			return err
		},
	}
	f.add(c.Flags())
	c.Flags().DurationVar(&every, "every", 200*time.Millisecond, "the time between two reads")
	c.Flags().IntVar(&changes, "changes", 0, "end after this many lines (default: never)")
	return c
}

func (p *program) watch(ctx context.Context, c *service.Client, f *clientFlags, key string, every time.Duration, changes int) error {
	tick := time.NewTicker(every)
	defer tick.Stop()
	seen, shown, failing := uint64(0), 0, false
	for first := true; ; {
		r, err := readFor(ctx, c, f.timeout, key)
		switch unknown, ok := errors.AsType[*client.UnknownError](err); {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case ok:
			if !failing { // once, until it works again
				fmt.Fprintf(p.Err, "smr watch: %v; still trying\n", outcome(unknown, c))
			}
			failing = true
		case err != nil:
			return fmt.Errorf("smr watch: %w", err)
		default:
			failing = false
			if first || r.Version != seen {
				first, seen = false, r.Version
				if err := p.writeChange(key, r, f.json); err != nil {
					return err
				}
				if shown++; shown == changes {
					return nil
				}
			}
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-tick.C:
		}
	}
}

func readFor(ctx context.Context, c *service.Client, d time.Duration, key string) (kv.Result, error) {
	ctx, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	return checked(c.KV.Read(ctx, kv.Get([]byte(key))))
}

func (p *program) writeChange(key string, r kv.Result, asJSON bool) error {
	a := kvAnswer{Key: key, Version: r.Version, Deleted: r.Status == kv.NotFound}
	if !a.Deleted {
		a = a.withValue(r.Value)
	}
	var err error
	switch {
	case asJSON:
		return p.writeJSONLine(a)
	case a.Deleted:
		_, err = fmt.Fprintf(p.Out, "%s is not there\n", key)
	default:
		_, err = fmt.Fprintf(p.Out, "%s = %s (version %d)\n", key, a.raw, a.Version)
	}
	return err
}
