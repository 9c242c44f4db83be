package smrcmd

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/foresay/foresay/internal/cli/command"
	"github.com/foresay/foresay/smr/client"
	"github.com/foresay/foresay/smr/kv"
	"github.com/foresay/foresay/smr/service"
)

// watchFlags are those of smr watch.
type watchFlags struct {
	clientFlags
	service.WatchOptions
	prefix  bool
	changes int
	key     string // if it is one key that is watched
}

func (p *program) watchCommand() *cobra.Command {
	var f watchFlags
	c := &cobra.Command{
		Use:   "watch [KEY [TO]]",
		Short: "Show what is at keys, then each change",
		Long: `Show a key's value now, then each change of it, until interrupted; with TO, those of the keys from
KEY up to, but not including, TO; with --prefix, those of the keys that begin with KEY; without a
KEY, those of all keys. No change is left out, unless the command falls behind by more than 10,000
changes or 4 MiB, which it says. The members tell when something has changed; while fewer than a
majority of them do, the keys are read time and again, as --every says. --after goes on after the
change that an earlier watch saw last.`,
		Args: cobra.MaximumNArgs(2),
		RunE: func(c *cobra.Command, args []string) error {
			switch {
			case f.Every <= 0:
				return command.Usagef("smr watch: --every is %v; want more than 0", f.Every)
			case f.prefix && len(args) != 1:
				return command.Usagef("smr watch: --prefix wants one KEY")
			case len(args) == 2 && args[1] != "" && args[0] >= args[1]:
				return command.Usagef("smr watch: no key is from %q up to %q; want a TO above KEY", args[0], args[1])
			}
			f.keys(args)
			f.Within = f.timeout
			err := p.withLastingClient(c.Context(), &f.clientFlags, func(ctx context.Context, client *service.Client) error {
				return p.watch(ctx, client, &f)
			})
			if c.Context().Err() != nil && errors.Is(err, context.Canceled) {
				return nil // that is how it is ended
			}
			return err
		},
	}
	f.add(c.Flags())
	c.Flags().DurationVar(&f.Every, "every", defaultWatchEvery,
		"the time between two reads while too few members tell of changes")
	c.Flags().IntVar(&f.changes, "changes", 0, "end after this many lines (default: never)")
	c.Flags().BoolVar(&f.prefix, "prefix", false, "watch the keys that begin with KEY")
	c.Flags().Uint64Var(&f.After, "after", 0, "show the changes after this `version` only")
	return c
}

// keys takes the arguments.
func (f *watchFlags) keys(args []string) {
	after, every := f.After, f.Every
	switch {
	case f.prefix:
		f.WatchOptions = service.WatchOptions{From: args[0], To: afterPrefix(args[0])}
	case len(args) == 1:
		f.key, f.WatchOptions = args[0], service.OnlyKey(args[0])
	case len(args) == 2:
		f.WatchOptions = service.WatchOptions{From: args[0], To: args[1]}
	}
	f.After, f.Every = after, every
}

// afterPrefix returns the first key after those that begin with a prefix, "" if there is none.
func afterPrefix(prefix string) string {
	for b := []byte(prefix); len(b) > 0; b = b[:len(b)-1] {
		if b[len(b)-1] < 0xff {
			b[len(b)-1]++
			return string(b)
		}
	}
	return ""
}

// watch shows changes until ctx ends, or enough were shown. Falling behind is said, and it begins
// again with what is there.
func (p *program) watch(ctx context.Context, c *service.Client, f *watchFlags) error {
	shown, failing := 0, false
	for o := f.WatchOptions; ctx.Err() == nil; o.After = 0 {
		for items, err := range c.Watch(ctx, o) {
			if unknown, ok := errors.AsType[*client.UnknownError](err); ok {
				if !failing { // once, until it works again
					fmt.Fprintf(p.Err, "smr watch: %v; still trying\n", outcome(unknown, c))
				}
				failing = true
				continue
			}
			if compacted, ok := errors.AsType[*service.CompactedError](err); ok {
				fmt.Fprintf(p.Err, "smr watch: changes were missed: %v; this is what is there\n", compacted)
				break
			}
			if err != nil {
				return fmt.Errorf("smr watch: %w", err)
			}
			failing = false
			if len(items) == 0 && f.key != "" {
				items = []kv.Item{{Key: []byte(f.key), Deleted: true}}
			}
			for _, i := range items {
				if err := p.WriteChange(i, f.json); err != nil {
					return err
				}
				if shown++; shown == f.changes {
					return nil
				}
			}
		}
	}
	return context.Cause(ctx)
}
