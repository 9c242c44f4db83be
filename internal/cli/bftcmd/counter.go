package bftcmd

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/foresay/foresay/bft"
	"github.com/foresay/foresay/bft/counter"
	"github.com/foresay/foresay/bft/service"
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
					call = bft.Call{Read: true}
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

// counted returns the counter's value that a result has.
func counted(r bft.Result) (uint64, error) {
	reply, err := counter.Decode(r.Value)
	if err == nil && reply.Refused {
		err = errors.New("the counter refused what it was shown")
	}
	return reply.Value, err
}
