package bftcmd

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/foresay/foresay/bft/service"
	"github.com/foresay/foresay/internal/cli/command"
)

func (p *program) statusCommand() *cobra.Command {
	var f clientFlags
	var wait bool
	c := &cobra.Command{
		Use:   "status",
		Short: "Show how each replica says that it is",
		Long: `Show how each replica says that it is, which a faulty one may lie about: its role, the epoch of
members and keys, the view and its primary, the newest stable checkpoint and up to where it goes on
from there (the water marks), up to which batch it has committed and executed, and how many it is
behind of those that an honest replica has committed. Below are those that were not reached, and
what a replica refused. Exits with 1 if nobody answers. With --wait it waits until all answer and
have committed what was committed when it began, and a quorum is in one view.`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return p.withClient(c.Context(), &f, func(ctx context.Context, client *service.Client) error {
				return p.status(ctx, client, wait, f.json)
			})
		},
	}
	f.add(c.Flags())
	c.Flags().BoolVar(&wait, "wait", false,
		"wait, for --timeout at most, until all have committed what is committed now")
	return c
}

func (p *program) status(ctx context.Context, c *service.Client, wait, asJSON bool) error {
	var statuses []service.Status
	var catchup service.Catchup
	lacks := ""
	for {
		var err error
		if statuses, err = c.Status(ctx); err != nil {
			return fmt.Errorf("bft status: %w", err)
		}
		if lacks = catchup.Missing(statuses); lacks == "" || !wait || ctx.Err() != nil || c.Refused() != nil {
			break
		}
		select {
		case <-ctx.Done():
		case <-time.After(command.StatusPause):
		}
	}
	var err error
	if asJSON {
		err = p.WriteJSON(statuses)
	} else {
		err = writeStatus(p.Out, statuses)
	}
	switch {
	case err != nil:
		return err
	case !slices.ContainsFunc(statuses, func(s service.Status) bool { return s.Role != service.Unreachable }):
		return fmt.Errorf("bft status: no replica answers")
	case wait && lacks != "":
		return fmt.Errorf("bft status: not all members came to have committed what was committed in time: %s", lacks)
	}
	return nil
}

// writeStatus shows the replicas in a table, and below it what is not in order.
func writeStatus(w io.Writer, statuses []service.Status) error {
	t := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	fmt.Fprintln(t, "replica\taddress\t"+statusColumns)
	for _, s := range statuses {
		fmt.Fprintf(t, "%d\t%s\t%s\n", s.Replica, s.Address, statusCells(s, s.Role))
	}
	if err := t.Flush(); err != nil {
		return err
	}
	for _, line := range trouble(statuses) {
		fmt.Fprintln(w, line)
	}
	return nil
}

const statusColumns = "role\tepoch\tview\tprimary\tstable\thigh\tcommitted\texecuted\tbehind"

// statusCells are the cells of those columns.
func statusCells(s service.Status, role string) string {
	if s.Role == service.Unreachable || s.Role == "" {
		return role + strings.Repeat("\t-", strings.Count(statusColumns, "\t"))
	}
	return fmt.Sprintf("%s\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%d", role, s.Epoch, s.View, s.Primary, s.Stable, s.High,
		s.Committed, s.Executed, s.Behind)
}

// trouble says which replicas are not reached, and by whom, which are slow, and what they refused.
func trouble(statuses []service.Status) []string {
	var out []string
	say := func(format string, args ...any) { out = append(out, fmt.Sprintf(format, args...)) }
	for _, s := range statuses {
		if s.Error != "" {
			say("replica %d: %s", s.Replica, s.Error)
		}
		if s.Behind > 0 {
			say("replica %d is slow: it is %s behind", s.Replica, command.Counted(int(s.Behind), "batch"))
		}
		for _, u := range s.Unreached {
			say("replica %d does not reach %d: %s", s.Replica, u.ID, u.Error)
		}
		if n := s.RefusedHandshakes; n > 0 {
			say("replica %d has refused %s of hosts without a key of the group", s.Replica, connections(n))
		}
		if n := s.RefusedStreams; n > 0 {
			say("replica %d has refused %s of hosts that spoke for others", s.Replica, connections(n))
		}
		if s.Malformed > 0 {
			say("replica %d could not read %s", s.Replica, command.Counted(int(s.Malformed), "message"))
		}
		if n := s.UncheckedSignatures; n > 0 {
			say("replica %d has left %s unchecked, as a peer has sent too many", s.Replica,
				command.Counted(int(n), "signature"))
		}
		if s.Repairs > 0 {
			say("replica %d found %s that its disk had something else than it should, and fetched that from others",
				s.Replica, command.Counted(s.Repairs, "time"))
		}
		if s.Caught > 0 {
			say("replica %d has caught primaries at lies that they had signed %s", s.Replica,
				command.Counted(s.Caught, "time"))
		}
		if s.RefusedParts > 0 {
			say("replica %d was given %s of a state that were wrong", s.Replica,
				command.Counted(s.RefusedParts, "part"))
		}
	}
	return out
}

func connections(n uint64) string { return command.Counted(int(n), "connection") }
