package smrcmd

import (
	"context"
	"fmt"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/foresay/foresay/internal/cli/command"
	"github.com/foresay/foresay/smr/kv"
	"github.com/foresay/foresay/smr/service"
)

// kvCommand is a command that makes one call and shows its result.
func (p *program) kvCommand(
	use, short, long string, args int, do func(context.Context, *service.Client, []string) (command.KVAnswer, error),
) *cobra.Command {
	var f clientFlags
	c := &cobra.Command{
		Use: use, Short: short, Long: long,
		Args: cobra.ExactArgs(args),
		RunE: func(c *cobra.Command, args []string) error {
			return p.withClient(c.Context(), &f, func(ctx context.Context, client *service.Client) error {
				a, err := do(ctx, client, args)
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

func (p *program) putCommand() *cobra.Command {
	var lease uint64
	c := p.kvCommand("put KEY VALUE", "Set a key",
		"Set a key's value, - for what is on standard input, and show the key's new version.", 2,
		func(ctx context.Context, c *service.Client, args []string) (command.KVAnswer, error) {
			value, err := p.Value(service.MaxValueBytes, args[1])
			if err != nil {
				return command.KVAnswer{}, err
			}
			version, err := c.PutLeased(ctx, args[0], value, kv.LeaseID(lease))
			return command.KVAnswer{Key: args[0], Version: version, Lease: kv.LeaseID(lease)}, err
		})
	c.Flags().Uint64Var(&lease, "lease", 0, "remove the key when the lease with this `ID` ends")
	return c
}

func (p *program) getCommand() *cobra.Command {
	return p.kvCommand("get KEY", "Show a key's value",
		"Show a key's value: what the last write of it that was done before left there. Exits with 1 if there is none.", 1,
		func(ctx context.Context, c *service.Client, args []string) (command.KVAnswer, error) {
			item, found, err := c.Get(ctx, args[0])
			if err == nil && !found {
				err = fmt.Errorf("%q is not there", args[0])
			}
			return command.KVAnswer{Key: args[0], Version: item.Version, Lease: item.Lease}.WithValue(item.Value), err
		})
}

func (p *program) deleteCommand() *cobra.Command {
	return p.kvCommand("delete KEY", "Remove a key", "Remove a key. Exits with 1 if it is not there.", 1,
		func(ctx context.Context, c *service.Client, args []string) (command.KVAnswer, error) {
			version, found, err := c.Delete(ctx, args[0])
			if err == nil && !found {
				err = fmt.Errorf("%q is not there", args[0])
			}
			return command.KVAnswer{Key: args[0], Version: version, Deleted: true}, err
		})
}

func (p *program) casCommand() *cobra.Command {
	return p.kvCommand("cas KEY VERSION VALUE", "Set a key if it still has a version",
		"Compare and set: set a key's value if the key has the version, 0 for one that is not there.\n"+
			"Exits with 1, and tells the version that is there, if it has another.", 3,
		func(ctx context.Context, c *service.Client, args []string) (command.KVAnswer, error) {
			version, err := strconv.ParseUint(args[1], 10, 64)
			if err != nil {
				return command.KVAnswer{}, command.Usagef("%q is no version", args[1])
			}
			value, err := p.Value(service.MaxValueBytes, args[2])
			if err != nil {
				return command.KVAnswer{}, err
			}
			version, err = c.CompareAndSet(ctx, args[0], version, value)
			return command.KVAnswer{Key: args[0], Version: version}, err
		})
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
				return command.Usagef("smr scan: --limit is %d; want 1 or more", limit)
			}
			args = append(args, "", "")
			return p.withClient(c.Context(), &f, func(ctx context.Context, client *service.Client) error {
				items, more, err := client.Scan(ctx, args[0], args[1], limit)
				if err != nil {
					return fmt.Errorf("smr scan: %w", err)
				}
				return p.WriteScan(items, more, f.json)
			})
		},
	}
	f.add(c.Flags())
	c.Flags().IntVar(&limit, "limit", 1000, "how many keys to show at most")
	return c
}
