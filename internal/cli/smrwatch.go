package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/foresay/foresay/smr/client"
	"github.com/foresay/foresay/smr/service"
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
	shown, failing := 0, false
	for change, err := range c.Watch(ctx, key, every, f.timeout) {
		if unknown, ok := errors.AsType[*client.UnknownError](err); ok {
			if !failing { // once, until it works again
				fmt.Fprintf(p.Err, "smr watch: %v; still trying\n", outcome(unknown, c))
			}
			failing = true
			continue
		}
		if err != nil {
			return fmt.Errorf("smr watch: %w", err)
		}
		failing = false
		if err := p.writeChange(key, change, f.json); err != nil {
			return err
		}
		if shown++; shown == changes {
			return nil
		}
	}
	return context.Cause(ctx)
}

func (p *program) writeChange(key string, change service.Change, asJSON bool) error {
	a := kvAnswer{Key: key, Version: change.Version, Deleted: change.Deleted}
	if !a.Deleted {
		a = a.withValue(change.Value)
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
