package smrcmd

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"text/tabwriter"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/foresay/foresay/internal/cli/command"
	"github.com/foresay/foresay/smr/kv"
	"github.com/foresay/foresay/smr/service"
)

// kvCommand is a command that makes one call and shows its result.
func (p *program) kvCommand(
	use, short, long string, args int, do func(context.Context, *service.Client, []string) (kvAnswer, error),
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
				_, err = fmt.Fprintln(p.Out, a.text())
				return err
			})
		},
	}
	f.add(c.Flags())
	return c
}

// kvAnswer is what a call came to. A value that is no text is in Base64, a key that is none in both
// ways.
type kvAnswer struct {
	Key         string     `json:"key"`
	KeyBase64   []byte     `json:"key_base64,omitempty"`
	Value       string     `json:"value,omitempty"`
	ValueBase64 []byte     `json:"value_base64,omitempty"`
	Version     uint64     `json:"version"`
	Lease       kv.LeaseID `json:"lease,omitempty"`
	Deleted     bool       `json:"deleted,omitempty"`

	raw  []byte
	show bool // the value, not the version
}

// MarshalJSON adds the key in Base64 if JSON cannot have it as text.
func (a kvAnswer) MarshalJSON() ([]byte, error) {
	if !utf8.ValidString(a.Key) {
		a.KeyBase64 = []byte(a.Key)
	}
	type plain kvAnswer
	return json.Marshal(plain(a))
}

func (a kvAnswer) text() string {
	if a.show {
		return string(a.raw)
	}
	return "version " + strconv.FormatUint(a.Version, 10)
}

// withValue adds a value, for showing it.
func (a kvAnswer) withValue(v []byte) kvAnswer {
	a.raw, a.show = v, true
	if utf8.Valid(v) {
		a.Value = string(v)
	} else {
		a.ValueBase64 = v
	}
	return a
}

// value returns the value that an argument means: itself, or what is on standard input if it is a
// dash.
func (p *program) value(arg string) ([]byte, error) {
	b := []byte(arg)
	if arg == "-" {
		var err error
		if b, err = io.ReadAll(io.LimitReader(p.In, service.MaxValueBytes+1)); err != nil {
			return nil, err
		}
	}
	if len(b) > service.MaxValueBytes {
		return nil, fmt.Errorf("the value has more than %d bytes", service.MaxValueBytes)
	}
	return b, nil
}

func (p *program) putCommand() *cobra.Command {
	var lease uint64
	c := p.kvCommand("put KEY VALUE", "Set a key",
		"Set a key's value, - for what is on standard input, and show the key's new version.", 2,
		func(ctx context.Context, c *service.Client, args []string) (kvAnswer, error) {
			value, err := p.value(args[1])
			if err != nil {
				return kvAnswer{}, err
			}
			version, err := c.PutLeased(ctx, args[0], value, kv.LeaseID(lease))
			return kvAnswer{Key: args[0], Version: version, Lease: kv.LeaseID(lease)}, err
		})
	c.Flags().Uint64Var(&lease, "lease", 0, "remove the key when the lease with this `ID` ends")
	return c
}

func (p *program) getCommand() *cobra.Command {
	return p.kvCommand("get KEY", "Show a key's value",
		"Show a key's value: what the last write of it that was done before left there. Exits with 1 if there is none.", 1,
		func(ctx context.Context, c *service.Client, args []string) (kvAnswer, error) {
			item, found, err := c.Get(ctx, args[0])
			if err == nil && !found {
				err = fmt.Errorf("%q is not there", args[0])
			}
			return kvAnswer{Key: args[0], Version: item.Version, Lease: item.Lease}.withValue(item.Value), err
		})
}

func (p *program) deleteCommand() *cobra.Command {
	return p.kvCommand("delete KEY", "Remove a key", "Remove a key. Exits with 1 if it is not there.", 1,
		func(ctx context.Context, c *service.Client, args []string) (kvAnswer, error) {
			version, found, err := c.Delete(ctx, args[0])
			if err == nil && !found {
				err = fmt.Errorf("%q is not there", args[0])
			}
			return kvAnswer{Key: args[0], Version: version, Deleted: true}, err
		})
}

func (p *program) casCommand() *cobra.Command {
	return p.kvCommand("cas KEY VERSION VALUE", "Set a key if it still has a version",
		"Compare and set: set a key's value if the key has the version, 0 for one that is not there.\n"+
			"Exits with 1, and tells the version that is there, if it has another.", 3,
		func(ctx context.Context, c *service.Client, args []string) (kvAnswer, error) {
			version, err := strconv.ParseUint(args[1], 10, 64)
			if err != nil {
				return kvAnswer{}, command.Usagef("%q is no version", args[1])
			}
			value, err := p.value(args[2])
			if err != nil {
				return kvAnswer{}, err
			}
			version, err = c.CompareAndSet(ctx, args[0], version, value)
			return kvAnswer{Key: args[0], Version: version}, err
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
				return p.writeScan(items, more, f.json)
			})
		},
	}
	f.add(c.Flags())
	c.Flags().IntVar(&limit, "limit", 1000, "how many keys to show at most")
	return c
}

func (p *program) writeScan(items []kv.Item, more, asJSON bool) error {
	answers := []kvAnswer{}
	for _, i := range items {
		answers = append(answers, kvAnswer{Key: string(i.Key), Version: i.Version, Lease: i.Lease}.withValue(i.Value))
	}
	if asJSON {
		return p.WriteJSON(struct {
			Items []kvAnswer `json:"items"`
			More  bool       `json:"more"`
		}{answers, more})
	}
	t := tabwriter.NewWriter(p.Out, 0, 8, 2, ' ', 0)
	fmt.Fprintln(t, "key\tversion\tvalue")
	for _, a := range answers {
		fmt.Fprintf(t, "%s\t%d\t%s\n", command.Printable(a.Key), a.Version, command.Printable(string(a.raw)))
	}
	if err := t.Flush(); err != nil {
		return err
	}
	if more {
		fmt.Fprintln(p.Err, "there are more; go on from the last key")
	}
	return nil
}
