package storecmd

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/foresay/foresay/internal/cli/command"
	"github.com/foresay/foresay/store/storeservice"
)

func (p *program) moveCommand() *cobra.Command {
	var f storeFlags
	var partition int
	var to string
	c := &cobra.Command{
		Use:   "move",
		Short: "Have another site lead a partition",
		Long: `Have another site, which has a copy, lead a partition, while the store runs: of carousel and layered.
Transactions that are on their way may take some round trips longer. Clients find the new leader by
themselves. What is moved stays there until that site fails; then the others elect a leader.

  foresay store move --partition 1 --to tokyo --client dir/client.json

'foresay store status' shows who leads.`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			switch {
			case partition < 0:
				return command.Usagef("store move: say which partition, by --partition; they are numbered from 0")
			case to == "":
				return command.Usagef("store move: say which site is to lead it, by --to")
			}
			return p.withStore(&f, func(client *storeservice.Client) error {
				ctx, cancel := context.WithTimeout(c.Context(), f.timeout)
				defer cancel()
				return p.move(ctx, client, partition, to, f.json)
			})
		},
	}
	f.add(c.Flags(), 10*time.Second)
	c.Flags().IntVar(&partition, "partition", -1, "the `number` of the partition, from 0")
	c.Flags().StringVar(&to, "to", "", "the `site` that is to lead it")
	return c
}

// moved is what --json says.
type moved struct {
	Partition int    `json:"partition"`
	From      string `json:"from"`
	To        string `json:"to"`
}

func (p *program) move(ctx context.Context, c *storeservice.Client, partition int, to string, asJSON bool) error {
	from, err := c.HandOver(ctx, partition, to)
	if err != nil {
		return fmt.Errorf("store move: %w", err)
	}
	if asJSON {
		return p.WriteJSON(moved{partition, from, to})
	}
	if from == to {
		fmt.Fprintf(p.Out, "partition %d was led at %s already\n", partition, to)
	} else {
		fmt.Fprintf(p.Out, "partition %d is led at %s, and was at %s\n", partition, to, from)
	}
	return nil
}
