package cli

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/smr"
	"github.com/foresay/foresay/smr/service"
)

func (p *program) smrStatusCommand() *cobra.Command {
	var f clientFlags
	var wait bool
	c := &cobra.Command{
		Use:   "status",
		Short: "Show how each replica is",
		Long: "Show how each replica is: its role, whom it takes for the leader (? for nobody, - if the protocol has none), the term,\n" +
			"the slots up to which it knows what was decided and has executed it, its log and snapshot, and who belongs to the\n" +
			"group. Exits with 1 if nobody answers. With --wait it waits until all members answer, are ready, agree on the leader\n" +
			"if there is one, and have executed what was committed when it began.",
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return p.withClient(c.Context(), &f, func(ctx context.Context, client *service.Client) error {
				return p.status(ctx, client, wait, f.json)
			})
		},
	}
	f.add(c.Flags())
	c.Flags().BoolVar(&wait, "wait", false, "wait, for --timeout at most, until all members have executed what is committed now")
	return c
}

// statusPause is the time between two looks of status --wait.
const statusPause = 100 * time.Millisecond

func (p *program) status(ctx context.Context, c *service.Client, wait, asJSON bool) error {
	var statuses []service.Status
	var catchup service.Catchup
	over := false
	for {
		var err error
		if statuses, err = c.Status(ctx); err != nil {
			return fmt.Errorf("smr status: %w", err)
		}
		if over = catchup.Over(statuses); over || !wait || ctx.Err() != nil {
			break
		}
		select {
		case <-ctx.Done():
		case <-time.After(statusPause):
		}
	}
	var err error
	if asJSON {
		err = p.writeJSON(statuses)
	} else {
		err = writeStatus(p.Out, statuses)
	}
	if err != nil {
		return err
	}
	if wait && !over {
		return fmt.Errorf("smr status: not all members came to have executed what was committed in time")
	}
	for _, s := range statuses {
		if s.Role != service.Unreachable {
			return nil
		}
	}
	return fmt.Errorf("smr status: no replica answers")
}

func writeStatus(w io.Writer, statuses []service.Status) error {
	t := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	fmt.Fprintln(t, "replica\taddress\trole\tleader\tterm\tcommitted\tapplied\tlog\tsnapshot\tmembers")
	for _, s := range statuses {
		if s.Role == service.Unreachable {
			fmt.Fprintf(t, "%d\t%s\t%s\t-\t-\t-\t-\t-\t-\t-\n", s.Replica, s.Address, s.Role)
			continue
		}
		var members []string
		for _, m := range s.Members {
			members = append(members, fmt.Sprint(m.ID))
		}
		fmt.Fprintf(t, "%d\t%s\t%s\t%s\t%s\t%d\t%d\t%d\t%d\t%s\n", s.Replica, s.Address, s.Role, leaderName(s), termName(s.Term), s.Committed,
			s.Applied, s.Log, s.Snapshot, strings.Join(members, ","))
	}
	if err := t.Flush(); err != nil {
		return err
	}
	for _, s := range statuses {
		if s.Error != "" {
			fmt.Fprintf(w, "replica %d: %s\n", s.Replica, s.Error)
		}
	}
	return nil
}

// leaderName returns whom a replica takes for the leader, for a cell.
func leaderName(s service.Status) string {
	switch {
	case s.Leaderless:
		return "-"
	case s.Leader == 0:
		return "?"
	}
	return strconv.FormatUint(uint64(s.Leader), 10)
}

// termName returns a term for a cell. Ballots of Multi-Paxos are a number and, in the lower half, whose it is.
func termName(term uint64) string {
	if term < 1<<32 {
		return strconv.FormatUint(term, 10)
	}
	return fmt.Sprintf("%d.%d", term>>32, uint32(term))
}

func (p *program) smrAddCommand() *cobra.Command {
	return p.memberCommand("add ID HOST:PORT", "Add a replica to the group",
		"Add a replica to the group. It must run already, with an empty disk, an ID that none has had, and \"join\": true in its file;\n"+
			"'foresay smr init --dir DIR --join ID' writes that. One replica is added or removed at a time.", 2,
		func(args []string) (smr.Change, error) {
			m, err := parseMember(args[0] + "=" + args[1])
			return smr.Change{Add: smr.Member{ID: m.ID, Address: m.Address}}, err
		})
}

func (p *program) smrRemoveCommand() *cobra.Command {
	return p.memberCommand("remove ID", "Remove a replica from the group",
		"Remove a replica from the group. It need not be there any more. It does not come back under its ID.", 1,
		func(args []string) (smr.Change, error) {
			id, err := parseID(args[0])
			return smr.Change{Remove: id}, err
		})
}

func (p *program) memberCommand(use, short, long string, args int, parse func([]string) (smr.Change, error)) *cobra.Command {
	var f clientFlags
	c := &cobra.Command{
		Use: use, Short: short, Long: long,
		Args: cobra.ExactArgs(args),
		RunE: func(c *cobra.Command, args []string) error {
			change, err := parse(args)
			if err != nil {
				return usagef("smr: %w", err)
			}
			return p.withClient(c.Context(), &f, func(ctx context.Context, client *service.Client) error {
				if err := client.Change(ctx, change); err != nil {
					return fmt.Errorf("smr: %v: %w", change, err)
				}
				if f.json {
					return p.writeJSON(struct {
						Added   protocol.ID `json:"added,omitempty"`
						Removed protocol.ID `json:"removed,omitempty"`
					}{change.Add.ID, change.Remove})
				}
				_, err := fmt.Fprintf(p.Out, "done: %v\n", change)
				return err
			})
		},
	}
	f.add(c.Flags())
	return c
}
