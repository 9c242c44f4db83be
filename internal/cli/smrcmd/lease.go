package smrcmd

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"syscall"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/foresay/foresay/internal/cli/command"
	"github.com/foresay/foresay/smr/kv"
	"github.com/foresay/foresay/smr/service"
)

const (
	defaultWatchEvery = 200 * time.Millisecond
	defaultLockTTL    = 10 * time.Second
	// lockGrace is how long a command that lost its lock may take to end after SIGTERM.
	lockGrace = 5 * time.Second
)

func (p *program) leaseCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "lease",
		Short: "Grant, renew, end and list leases",
		Long: `A lease ends when it is not renewed for its time, and the keys that were put with it go then. It
ends by itself, whether or not its owner still lives, so that the key of a service that died does
not stay.`,
	}
	command.Group(c)
	c.AddCommand(p.leaseGrantCommand(), p.leaseKeepCommand(), p.leaseRevokeCommand(), p.leaseListCommand())
	return c
}

// leaseAnswer is a lease that was granted or ended.
type leaseAnswer struct {
	Lease kv.LeaseID `json:"lease"`
	TTL   string     `json:"ttl,omitempty"`
	Ended bool       `json:"ended,omitempty"`
}

func (p *program) leaseGrantCommand() *cobra.Command {
	var f clientFlags
	var key string
	c := &cobra.Command{
		Use: "grant TIME", Short: "Make a lease of a time such as 30s, and show its ID", Args: cobra.ExactArgs(1),
		Long: "Make a lease of a time such as 30s, and show its ID. If the service has several groups, a lease is for " +
			"keys of one: say with --for for which key it is.",
		RunE: func(c *cobra.Command, args []string) error {
			ttl, err := leaseTime(args[0])
			if err != nil {
				return command.Usagef("smr lease grant: %w", err)
			}
			return p.withClient(c.Context(), &f, func(ctx context.Context, client *service.Client) error {
				grant := client.Grant
				if c.Flags().Changed("for") {
					grant = func(ctx context.Context, ttl time.Duration) (kv.LeaseID, error) {
						return client.GrantFor(ctx, key, ttl)
					}
				}
				id, err := grant(ctx, ttl)
				if err != nil {
					return fmt.Errorf("smr lease grant: %w", err)
				}
				return p.writeLease(&f, leaseAnswer{Lease: id, TTL: ttl.String()}, strconv.FormatUint(uint64(id), 10))
			})
		},
	}
	f.add(c.Flags())
	c.Flags().StringVar(&key, "for", "", "of several groups, make it in the one that has this `KEY`")
	return c
}

func leaseTime(text string) (time.Duration, error) {
	ttl, err := time.ParseDuration(text)
	if err != nil || ttl < kv.MinTTL || ttl > kv.MaxTTL {
		return 0, fmt.Errorf("%q is no time such as 30s, from %v to %v", text, kv.MinTTL, kv.MaxTTL)
	}
	return ttl, nil
}

func leaseID(text string) (kv.LeaseID, error) {
	id, err := strconv.ParseUint(text, 10, 64)
	if err != nil || id == 0 {
		return 0, fmt.Errorf("%q is no lease's ID", text)
	}
	return kv.LeaseID(id), nil
}

func (p *program) writeLease(f *clientFlags, a leaseAnswer, text string) error {
	if f.json {
		return p.WriteJSON(a)
	}
	_, err := fmt.Fprintln(p.Out, text)
	return err
}

func (p *program) leaseKeepCommand() *cobra.Command {
	var f clientFlags
	c := &cobra.Command{
		Use:   "keep ID",
		Short: "Renew a lease until interrupted",
		Long: "Renew a lease until interrupted. Exits with 1 when the lease has ended, with 3 when it may have because " +
			"it could not be renewed.",
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			id, err := leaseID(args[0])
			if err != nil {
				return command.Usagef("smr lease keep: %w", err)
			}
			return p.withLastingClient(c.Context(), &f, func(ctx context.Context, client *service.Client) error {
				if err := keepLease(ctx, client, id, f.timeout); err != nil {
					return fmt.Errorf("smr lease keep: %w", err)
				}
				return nil
			})
		},
	}
	f.connect(c.Flags())
	return c
}

// keepLease renews a lease whose TTL the service knows.
func keepLease(ctx context.Context, client *service.Client, id kv.LeaseID, timeout time.Duration) error {
	asked, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	leases, err := client.Leases(asked)
	if err != nil {
		return err
	}
	for _, l := range leases {
		if l.ID == id {
			return client.Keep(ctx, id, l.TTL)
		}
	}
	return &service.LeaseEndedError{Lease: id}
}

func (p *program) leaseRevokeCommand() *cobra.Command {
	var f clientFlags
	c := &cobra.Command{
		Use: "revoke ID", Short: "End a lease and remove its keys",
		Long: "End a lease and remove its keys. Exits with 1 if it has ended before.",
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			id, err := leaseID(args[0])
			if err != nil {
				return command.Usagef("smr lease revoke: %w", err)
			}
			return p.withClient(c.Context(), &f, func(ctx context.Context, client *service.Client) error {
				if err := client.Revoke(ctx, id); err != nil {
					return fmt.Errorf("smr lease revoke: %w", err)
				}
				return p.writeLease(&f, leaseAnswer{Lease: id, Ended: true}, fmt.Sprintf("lease %d ended", id))
			})
		},
	}
	f.add(c.Flags())
	return c
}

func (p *program) leaseListCommand() *cobra.Command {
	var f clientFlags
	c := &cobra.Command{
		Use: "list", Short: "Show the leases", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return p.withClient(c.Context(), &f, func(ctx context.Context, client *service.Client) error {
				leases, err := client.Leases(ctx)
				if err != nil {
					return fmt.Errorf("smr lease list: %w", err)
				}
				return p.writeLeases(leases, f.json)
			})
		},
	}
	f.add(c.Flags())
	return c
}

// listedLease is a lease in the list of all.
type listedLease struct {
	Lease    kv.LeaseID `json:"lease"`
	TTL      string     `json:"ttl"`
	Renewals uint64     `json:"renewals"`
	Keys     int        `json:"keys"`
}

func (p *program) writeLeases(leases []kv.Lease, asJSON bool) error {
	answers := []listedLease{}
	for _, l := range leases {
		answers = append(answers, listedLease{l.ID, l.TTL.String(), l.Renewals, l.Keys})
	}
	if asJSON {
		return p.WriteJSON(answers)
	}
	t := tabwriter.NewWriter(p.Out, 0, 8, 2, ' ', 0)
	fmt.Fprintln(t, "lease\tttl\trenewals\tkeys")
	for _, a := range answers {
		fmt.Fprintf(t, "%d\t%s\t%d\t%d\n", a.Lease, a.TTL, a.Renewals, a.Keys)
	}
	return t.Flush()
}

func (p *program) lockCommand() *cobra.Command {
	var f clientFlags
	var ttl time.Duration
	c := &cobra.Command{
		Use:   "lock KEY -- COMMAND [ARG]...",
		Short: "Run a command while holding a lock",
		Long: `Wait until no one else holds the lock, which is a key with a lease, then run a command, and
release the lock when it ends. If the lock may be lost, because the service cannot be reached for
--ttl, the command gets SIGTERM, and SIGKILL 5 s later. FORESAY_LOCK_TOKEN in its environment is a
number that rises from holder to holder: what it changes elsewhere should refuse a lower one than
the highest seen. Exits with the command's status.`,
		Args: cobra.MinimumNArgs(2),
		RunE: func(c *cobra.Command, args []string) error {
			if ttl < kv.MinTTL || ttl > kv.MaxTTL {
				return command.Usagef("smr lock: --ttl is %v; want %v to %v", ttl, kv.MinTTL, kv.MaxTTL)
			}
			err := p.withLastingClient(c.Context(), &f, func(ctx context.Context, client *service.Client) error {
				if err := reach(ctx, client, &f); err != nil {
					return err
				}
				return client.WithLock(ctx, args[0], ttl, func(held context.Context, token uint64) error {
					return p.runLocked(held, token, args[1:])
				})
			})
			if exit, ok := errors.AsType[*exec.ExitError](err); ok && exit.ExitCode() > 0 {
				return command.ExitError{Code: exit.ExitCode(), Err: fmt.Errorf("smr lock: %s: %w", args[1], exit)}
			}
			if err != nil {
				return fmt.Errorf("smr lock: %w", err)
			}
			return nil
		},
	}
	f.connect(c.Flags()) // what is written is the command's
	c.Flags().DurationVar(&ttl, "ttl", defaultLockTTL, "how long the lock stays when this command cannot renew it")
	return c
}

// runLocked runs a command until it ends; if held does before, it is told to end.
func (p *program) runLocked(held context.Context, token uint64, args []string) error {
	command := exec.CommandContext(held, args[0], args[1:]...)
	command.Stdin, command.Stdout, command.Stderr = p.In, p.Out, p.Err
	command.Env = append(os.Environ(), "FORESAY_LOCK_TOKEN="+strconv.FormatUint(token, 10))
	command.Cancel = func() error { return command.Process.Signal(syscall.SIGTERM) }
	command.WaitDelay = lockGrace
	return command.Run()
}
