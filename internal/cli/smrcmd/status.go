package smrcmd

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strconv"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/foresay/foresay/internal/cli/command"
	"github.com/foresay/foresay/smr/service"
)

func (p *program) statusCommand() *cobra.Command {
	var f clientFlags
	var wait bool
	var group int
	c := &cobra.Command{
		Use:   "status",
		Short: "Show how each replica is",
		Long: `Show how each replica is: its role, whom it takes for the leader (? for nobody, - if the protocol
has none), the term, the slots up to which it knows what was decided and has executed it, how many
slots it is behind the one that has executed most, its log and snapshot, and who belongs to the
group; with Domino how far ahead of its clock is what was promised by time; learners, which wait
to be added, too. If there are several groups, show a line for each, and the replicas of one with
--group. Exits with 1 if nobody answers. With --wait it waits until all members answer, are ready,
agree on the leader if there is one, and have executed what was committed when it began.`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return p.withClient(c.Context(), &f, func(ctx context.Context, client *service.Client) error {
				return p.status(ctx, client, wait, group, f.json)
			})
		},
	}
	f.add(c.Flags())
	c.Flags().BoolVar(&wait, "wait", false,
		"wait, for --timeout at most, until all members have executed what is committed now")
	c.Flags().IntVar(&group, "group", 0, "of several groups, show the replicas of this one")
	return c
}

func (p *program) status(ctx context.Context, c *service.Client, wait bool, group int, asJSON bool) error {
	if group < 0 || group > c.Groups() {
		return command.Usagef("smr status: --group is %d; the cluster has %d", group, c.Groups())
	}
	var statuses []service.Status
	var catchup service.Catchup
	over := false
	for {
		var err error
		if statuses, err = c.Status(ctx); err != nil {
			return fmt.Errorf("smr status: %w", err)
		}
		if over = catchup.Over(statuses); over || !wait || ctx.Err() != nil || c.Refused() != nil {
			break
		}
		select {
		case <-ctx.Done():
		case <-time.After(command.StatusPause):
		}
	}
	shown := statuses
	if group > 0 && c.Groups() > 1 {
		shown = service.ByGroup(statuses)[group-1]
	}
	var err error
	if asJSON {
		err = p.WriteJSON(shown)
	} else {
		err = writeStatus(p.Out, shown)
	}
	if err != nil {
		return err
	}
	switch {
	case !slices.ContainsFunc(statuses, func(s service.Status) bool { return s.Role != service.Unreachable }):
		return fmt.Errorf("smr status: no replica answers")
	case wait && !over:
		return fmt.Errorf("smr status: not all members came to have executed what was committed in time")
	}
	return nil
}

func writeStatus(w io.Writer, statuses []service.Status) error {
	if err := writeReplicas(w, statuses); err != nil {
		return err
	}
	for _, line := range errorsOf(statuses) {
		fmt.Fprintln(w, line)
	}
	return nil
}

// writeReplicas shows the replicas of a group, or all groups.
func writeReplicas(w io.Writer, statuses []service.Status) error {
	if len(service.ByGroup(statuses)) > 1 {
		return writeGroups(w, statuses)
	}
	t := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	clocks := slices.ContainsFunc(statuses, func(s service.Status) bool { return s.ClaimsAheadSeconds != nil })
	ahead := func(cell string) string {
		if !clocks {
			return ""
		}
		return cell + "\t"
	}
	fmt.Fprintf(t, "replica\taddress\trole\tleader\tterm\tcommitted\tapplied\tbehind\t%slog\tsnapshot\tmembers\n",
		ahead("ahead"))
	for _, s := range statuses {
		if s.Role == service.Unreachable {
			fmt.Fprintf(t, "%d\t%s\t%s\t-\t-\t-\t-\t-\t%s-\t-\t-\n", s.Replica, s.Address, s.Role, ahead("-"))
			continue
		}
		fmt.Fprintf(t, "%d\t%s\t%s\t%s\t%s\t%d\t%d\t%d\t%s%d\t%d\t%s\n", s.Replica, s.Address, s.Role, leaderName(s),
			termName(s.Term), s.Committed, s.Applied, s.Behind, ahead(aheadCell(s)), s.Log, s.Snapshot, idList(s.Members))
	}
	return t.Flush()
}

// aheadCell returns how far what was promised by time is ahead of a replica's clock, for a cell:
// less than nothing if the clock is ahead, and not followed.
func aheadCell(s service.Status) string {
	if s.ClaimsAheadSeconds == nil {
		return "-"
	}
	return fmt.Sprintf("%.1fs", *s.ClaimsAheadSeconds-s.ClockHeldSeconds)
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

// termName returns a term for a cell. Ballots of Multi-Paxos are a number and, in the lower half,
// whose it is.
func termName(term uint64) string {
	if term < 1<<32 {
		return strconv.FormatUint(term, 10)
	}
	return fmt.Sprintf("%d.%d", term>>32, uint32(term))
}
