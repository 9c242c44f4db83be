package bftcmd

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/foresay/foresay/bft"
	"github.com/foresay/foresay/bft/service"
	"github.com/foresay/foresay/internal/cli/command"
	"github.com/foresay/foresay/smr/kv"
)

// kvName is the key-value service in the table of services.
const kvName = "kv"

func servedKV() served {
	key := func(l *command.ClosedLoop, random *rand.Rand) []byte {
		return fmt.Appendf(nil, "bench/%d", random.IntN(l.Keys))
	}
	return served{
		verbs: kvVerbs,
		write: func(l *command.ClosedLoop, random *rand.Rand) bft.Call {
			return bft.Call{Command: kv.Put(key(l, random), command.BenchValue(random, l.ValueBytes))}
		},
		read: func(l *command.ClosedLoop, random *rand.Rand) bft.Call {
			return bft.Call{Command: kv.Get(key(l, random)), Read: true}
		},
		failed: func(r bft.Result) error {
			_, err := kvResult(r)
			return err
		},
	}
}

// kvVerbs are those of the prompt.
func kvVerbs(d *dev) []command.Verb {
	do := func(
		name, args string, call func([]string) bft.Call, show func(args []string, r kv.Result) string,
	) command.Verb {
		return command.Verb{Name: name, Args: args, Do: func(ctx context.Context, args []string) error {
			return d.call(ctx, call(args), func(r bft.Result) (string, error) {
				k, err := kvResult(r)
				if err == nil && k.Status == kv.NotFound {
					return args[0] + " is not there", nil
				}
				return show(args, k), err
			})
		}}
	}
	version := func(_ []string, r kv.Result) string { return fmt.Sprintf("version %d", r.Version) }
	verbs := []command.Verb{
		do("put", "KEY VALUE", func(args []string) bft.Call {
			return bft.Call{Command: kv.Put([]byte(args[0]), []byte(args[1]))}
		}, version),
		do("get", "KEY", func(args []string) bft.Call {
			return bft.Call{Command: kv.Get([]byte(args[0])), Read: true}
		}, func(_ []string, r kv.Result) string {
			return fmt.Sprintf("%s, version %d", command.Printable(string(r.Value)), r.Version)
		}),
		do("delete", "KEY", func(args []string) bft.Call { return bft.Call{Command: kv.Delete([]byte(args[0]))} }, version),
	}
	verbs[2].Help = "calls of one client"
	return verbs
}

// kvResult returns what a store's result says, and an error if it says that the call made no sense.
func kvResult(r bft.Result) (kv.Result, error) {
	k, err := kv.DecodeResult(r.Value)
	if err == nil {
		err = k.Err()
	}
	return k, err
}

// kvCall makes one call of a command to a key-value service.
func kvCall(ctx context.Context, c *service.Client, call bft.Call) (kv.Result, error) {
	if s := c.Service(); s != kvName {
		return kv.Result{}, fmt.Errorf("the group's service is %s, and has no keys", s)
	}
	r, err := c.Do(ctx, call, nil)
	if err != nil {
		return kv.Result{}, err
	}
	return kvResult(r)
}

// kvCommand is a command that makes one call and shows its result.
func (p *program) kvCommand(
	use, short, long string, args int, call func([]string) (bft.Call, error),
	answer func([]string, kv.Result) (command.KVAnswer, error),
) *cobra.Command {
	var f clientFlags
	c := &cobra.Command{
		Use: use, Short: short, Long: long,
		Args: cobra.ExactArgs(args),
		RunE: func(c *cobra.Command, args []string) error {
			asked, err := call(args)
			if err != nil {
				return err
			}
			return p.withClient(c.Context(), &f, func(ctx context.Context, client *service.Client) error {
				r, err := kvCall(ctx, client, asked)
				if err == nil && r.Status == kv.NotFound {
					err = fmt.Errorf("%q is not there", args[0])
				}
				a := command.KVAnswer{}
				if err == nil {
					a, err = answer(args, r)
				}
				if err != nil {
					return fmt.Errorf("%s: %w", c.CommandPath()[len("foresay "):], err)
				}
				if f.json {
					return p.WriteJSON(a)
				}
				_, err = fmt.Fprintln(p.Out, a.Text())
				return err
			})
		},
	}
	f.add(c.Flags())
	return c
}

// maxValueBytes leaves room for a key beside a value in a command.
func maxValueBytes() int { return bft.DefaultLimits().Command / 2 }

func changed(args []string, r kv.Result) (command.KVAnswer, error) {
	return command.KVAnswer{Key: args[0], Version: r.Version}, nil
}

// keyCommands are the commands of a key-value service.
func (p *program) keyCommands() []*cobra.Command {
	return []*cobra.Command{
		p.kvCommand("put KEY VALUE", "Set a key",
			"Set a key's value, - for what is on standard input, and show the key's new version.", 2,
			func(args []string) (bft.Call, error) {
				value, err := p.Value(maxValueBytes(), args[1])
				return bft.Call{Command: kv.Put([]byte(args[0]), value)}, err
			}, changed),
		p.kvCommand("get KEY", "Show a key's value",
			"Show a key's value: what the last write of it that was done before left there. Exits with 1 if there is none.",
			1, func(args []string) (bft.Call, error) {
				return bft.Call{Command: kv.Get([]byte(args[0])), Read: true}, nil
			}, func(args []string, r kv.Result) (command.KVAnswer, error) {
				return command.KVAnswer{Key: args[0], Version: r.Version, Lease: r.Lease}.WithValue(r.Value), nil
			}),
		p.kvCommand("delete KEY", "Remove a key", "Remove a key. Exits with 1 if it is not there.", 1,
			func(args []string) (bft.Call, error) { return bft.Call{Command: kv.Delete([]byte(args[0]))}, nil },
			func(args []string, r kv.Result) (command.KVAnswer, error) {
				return command.KVAnswer{Key: args[0], Version: r.Version, Deleted: true}, nil
			}),
		p.kvCommand("cas KEY VERSION VALUE", "Set a key if it still has a version",
			"Compare and set: set a key's value if the key has the version, 0 for one that is not there.\n"+
				"Exits with 1, and tells the version that is there, if it has another.", 3,
			func(args []string) (bft.Call, error) {
				version, err := strconv.ParseUint(args[1], 10, 64)
				if err != nil {
					return bft.Call{}, command.Usagef("bft cas: %q is no version", args[1])
				}
				value, err := p.Value(maxValueBytes(), args[2])
				return bft.Call{Command: kv.CompareAndSet([]byte(args[0]), version, value)}, err
			}, func(args []string, r kv.Result) (command.KVAnswer, error) {
				if r.Status == kv.Conflict {
					return command.KVAnswer{}, fmt.Errorf("%q has version %d, not %s", args[0], r.Version, args[1])
				}
				return changed(args, r)
			}),
		p.scanCommand(), p.watchCommand(),
	}
}

func (p *program) scanCommand() *cobra.Command {
	var f clientFlags
	var limit int
	c := &cobra.Command{
		Use:   "scan [FROM [TO]]",
		Short: "Show the keys of a range",
		Long: "Show the keys from FROM up to, but not including, TO, with their versions and values. Left out, an end is " +
			"open.",
		Args: cobra.MaximumNArgs(2),
		RunE: func(c *cobra.Command, args []string) error {
			if limit < 1 {
				return command.Usagef("bft scan: --limit is %d; want 1 or more", limit)
			}
			args = append(args, "", "")
			return p.withClient(c.Context(), &f, func(ctx context.Context, client *service.Client) error {
				r, err := kvCall(ctx, client, bft.Call{Command: kv.Scan([]byte(args[0]), []byte(args[1]), limit), Read: true})
				if err != nil {
					return fmt.Errorf("bft scan: %w", err)
				}
				return p.WriteScan(r.Items, r.More, f.json)
			})
		},
	}
	f.add(c.Flags())
	c.Flags().IntVar(&limit, "limit", 1000, "how many keys to show at most")
	return c
}

// watchLimit is how many changes a watch asks for at once.
const watchLimit = 1000

func (p *program) watchCommand() *cobra.Command {
	var f clientFlags
	var every time.Duration
	var changes int
	c := &cobra.Command{
		Use:   "watch KEY",
		Short: "Show what is at a key, then each change",
		Long: `Show a key's value now, then each change of it, until interrupted. The group is asked time and again,
and remembers the last changes, so that none is left out unless the command falls far behind, which
it says.`,
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			if every <= 0 {
				return command.Usagef("bft watch: --every is %v; want more than 0", every)
			}
			err := p.withLastingClient(c.Context(), &f, func(ctx context.Context, client *service.Client) error {
				w := &watch{program: p, client: client, flags: &f, key: []byte(args[0]), most: changes}
				return w.run(ctx, every)
			})
			if c.Context().Err() != nil && errors.Is(err, context.Canceled) {
				return nil // that is how it is ended
			}
			return err
		},
	}
	f.add(c.Flags())
	c.Flags().DurationVar(&every, "every", 200*time.Millisecond, "the time between two questions")
	c.Flags().IntVar(&changes, "changes", 0, "end after this many lines (default: never)")
	return c
}

// A watch shows what is at a key.
type watch struct {
	*program
	client *service.Client
	flags  *clientFlags
	key    []byte
	shown  int
	most   int // lines, 0 for no bound
}

func (w *watch) run(ctx context.Context, every time.Duration) error {
	tick := time.NewTicker(every)
	defer tick.Stop()
	begun, after := false, uint64(0)
	end := append(append([]byte{}, w.key...), 0) // the next key
	for {
		query := kv.Changes(w.key, end, after, watchLimit)
		if !begun {
			query = kv.Scan(w.key, end, 1)
		}
		within, cancel := context.WithTimeout(ctx, w.flags.timeout)
		r, err := kvCall(within, w.client, bft.Call{Command: query, Read: true})
		cancel()
		if err != nil {
			return fmt.Errorf("bft watch: %w", err)
		}
		if r.Status == kv.Compacted {
			fmt.Fprintln(w.Err, "bft watch: changes were missed; this is what is there")
			begun = false
			continue
		}
		items := r.Items
		if !begun && len(items) == 0 {
			items = []kv.Item{{Key: w.key, Deleted: true}}
		}
		begun, after = true, r.Version
		for _, i := range items {
			if err := w.WriteChange(i, w.flags.json); err != nil {
				return err
			}
			if w.shown++; w.shown == w.most {
				return nil
			}
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-tick.C:
		}
	}
}
