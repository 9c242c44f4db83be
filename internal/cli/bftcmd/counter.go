package bftcmd

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/foresay/foresay/bft"
	"github.com/foresay/foresay/bft/counter"
	"github.com/foresay/foresay/bft/service"
	"github.com/foresay/foresay/internal/cli/command"
)

// counterName is the counter in the table of services.
const counterName = "counter"

func (p *program) countCommand() *cobra.Command {
	var f clientFlags
	var read bool
	c := &cobra.Command{
		Use:   "count",
		Short: "Increment the counter, and show it",
		Long:  "Increment the counter of a group whose service is one, and show what it is then.",
		Args:  cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return p.withClient(c.Context(), &f, func(ctx context.Context, client *service.Client) error {
				call := bft.Call{Command: counter.Increment(counter.Reply{})}
				if read {
					call = bft.Call{Command: counter.Query(), Read: true}
				}
				if s := client.Service(); s != counterName {
					return fmt.Errorf("bft count: the group's service is %s", s)
				}
				r, err := client.Do(ctx, call, nil)
				if err != nil {
					return fmt.Errorf("bft count: %w", err)
				}
				value, err := counted(r)
				if err != nil {
					return fmt.Errorf("bft count: %w", err)
				}
				if f.json {
					return p.WriteJSON(struct {
						Value uint64 `json:"value"`
					}{value})
				}
				_, err = fmt.Fprintln(p.Out, value)
				return err
			})
		},
	}
	f.add(c.Flags())
	c.Flags().BoolVar(&read, "read", false, "only show it")
	return c
}

func servedCounter() served {
	increment := bft.Call{Command: counter.Increment(counter.Reply{})}
	query := bft.Call{Command: counter.Query(), Read: true}
	show := func(r bft.Result) (string, error) {
		n, err := counted(r)
		return fmt.Sprint(n), err
	}
	return served{
		verbs: func(d *dev) []command.Verb {
			return []command.Verb{
				{Name: "add", Args: "[TIMES]", Help: "increment the counter", Do: func(ctx context.Context, args []string) error {
					times, err := strconv.Atoi(append(args, "1")[0])
					if err != nil || times < 1 || times > 1000 {
						return fmt.Errorf("%q is no number from 1 to 1000", args[0])
					}
					for range times {
						if err := d.call(ctx, increment, show); err != nil {
							return err
						}
					}
					return nil
				}},
				{Name: "get", Help: "show the counter, by a read that goes around the order if it can",
					Do: func(ctx context.Context, _ []string) error { return d.call(ctx, query, show) }},
			}
		},
		write: func(*command.ClosedLoop, *rand.Rand) bft.Call { return increment },
		read:  func(*command.ClosedLoop, *rand.Rand) bft.Call { return query },
		failed: func(r bft.Result) error {
			_, err := counted(r)
			return err
		},
	}
}

// counted returns the counter's value that a result has.
func counted(r bft.Result) (uint64, error) {
	reply, err := counter.Decode(r.Value)
	if err == nil && reply.Refused {
		err = errors.New("the counter refused what it was shown")
	}
	return reply.Value, err
}
