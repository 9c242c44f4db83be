package smrcmd

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/foresay/foresay/internal/cli/command"
	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/smr/service"
)

func (p *program) leadCommand() *cobra.Command {
	var f clientFlags
	var to uint32
	var group int
	var spread bool
	c := &cobra.Command{
		Use:   "lead",
		Short: "Have another replica lead",
		Long: `Have another replica lead, --to or whichever is up to date, and wait until it does. The group
stands still for about two round trips; nothing is lost. A replica that leads does the same by
itself when 'foresay smr serve' is ended by SIGTERM. For raft and multipaxos: the other protocols
have no leader, or one that cannot be chosen. Of several groups --group says which one it is
about; with --spread the leaders of all groups are spread evenly over the replicas that answer.`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if c.Flags().Changed("to") && to == 0 {
				return command.Usagef("smr lead: --to: \"0\" is no replica's ID")
			}
			if spread && (c.Flags().Changed("to") || c.Flags().Changed("group")) {
				return command.Usagef("smr lead: --spread is about all groups, and chooses")
			}
			return p.withClient(c.Context(), &f, func(ctx context.Context, client *service.Client) error {
				if spread {
					return p.spreadLeaders(ctx, client, f.json)
				}
				if client.Groups() > 1 && !c.Flags().Changed("group") {
					return command.Usagef("smr lead: the cluster has %d groups; want --group or --spread", client.Groups())
				}
				from, now, err := client.HandOverGroup(ctx, group, protocol.ID(to))
				if err != nil {
					return fmt.Errorf("smr lead: %w", err)
				}
				if f.json {
					return p.WriteJSON(struct {
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
	c.Flags().IntVar(&group, "group", 1, "of several groups, which one it is about")
	c.Flags().BoolVar(&spread, "spread", false, "spread the leaders of all groups evenly")
	return c
}

func (p *program) spreadLeaders(ctx context.Context, client *service.Client, asJSON bool) error {
	moves, err := client.SpreadLeaders(ctx)
	if err != nil {
		err = fmt.Errorf("smr lead: %w", err)
	}
	if asJSON {
		return errors.Join(p.WriteJSON(moves), err)
	}
	for _, m := range moves {
		fmt.Fprintf(p.Out, "group %d: replica %d leads, %d did\n", m.Group, m.Leader, m.Before)
	}
	if err == nil && len(moves) == 0 {
		fmt.Fprintln(p.Out, "the leaders are spread evenly")
	}
	return err
}
