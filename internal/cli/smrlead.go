package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/smr/service"
)

func (p *program) smrLeadCommand() *cobra.Command {
	var f clientFlags
	var to uint32
	c := &cobra.Command{
		Use:   "lead",
		Short: "Have another replica lead",
		Long: "Have another replica lead, --to or whichever is up to date, and wait until it does. The group stands still for about two round\n" +
			"trips; nothing is lost. A replica that leads does the same by itself when 'foresay smr serve' is ended by SIGTERM. For raft and\n" +
			"multipaxos: the other protocols have no leader, or one that cannot be chosen.",
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if c.Flags().Changed("to") && to == 0 {
				return usagef("smr lead: --to: \"0\" is no replica's ID")
			}
			return p.withClient(c.Context(), &f, func(ctx context.Context, client *service.Client) error {
				from, now, err := client.HandOver(ctx, protocol.ID(to))
				if err != nil {
					return fmt.Errorf("smr lead: %w", err)
				}
				if f.json {
					return p.writeJSON(struct {
						Leader protocol.ID `json:"leader"`
						Before protocol.ID `json:"before"`
					}{now, from})
				}
				if from == now {
					_, err = fmt.Fprintf(p.Out, "replica %d leads already\n", now)
				} else {
					_, err = fmt.Fprintf(p.Out, "replica %d leads, %d did\n", now, from)
				}
				return err
			})
		},
	}
	f.add(c.Flags())
	c.Flags().Uint32Var(&to, "to", 0, "the `ID` of the replica that is to lead (default: whichever is up to date)")
	return c
}
