package storecmd

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/foresay/foresay/store/storeservice"
)

// snapshotsColumn is which snapshots a shard's server serves, with a tab before it.
func snapshotsColumn(s *storeservice.SnapshotStatus) string {
	switch {
	case s == nil:
		return ""
	case !s.Serves:
		return "\tserves none"
	case s.Ceiling == nil:
		return "\tnone was read"
	}
	text := fmt.Sprintf("\tup to %+.1f s", s.CeilingAheadSeconds)
	if s.Horizon != nil {
		text += fmt.Sprintf(", from %+.0f s", -s.HorizonAgeSeconds)
	}
	if len(s.Silent) > 0 {
		text += ", not at " + strings.Join(s.Silent, ", ")
	}
	return text
}

// writeSpeculation writes what coordinators have seen of transactions that build on each other, if
// the protocol has such, and who is blocked.
func writeSpeculation(w io.Writer, statuses []storeservice.Status) error {
	t := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	header := "\ncoordinator at\tdegree\tlocal commits\tmisspeculated\tbuilt on others\tchain mean, max\tnot final\t" +
		"blocked\taborts"
	for _, s := range statuses {
		c := s.Speculation
		if c == nil {
			continue
		}
		if header != "" {
			fmt.Fprintln(t, header)
			header = ""
		}
		fmt.Fprintf(t, "%s\t%s\t%d\t%s\t%d\t%.2f, %d\t%d\t%s\t%s\n", s.Machine, c.Degree, c.LocalCommits,
			share(c.Misspeculated, c.LocalCommits), c.Builders, c.MeanChain, c.LongestChain, c.Unfinal, blockedText(c),
			abortsText(c.Aborted))
	}
	if err := t.Flush(); err != nil {
		return err
	}
	for _, s := range statuses {
		if c := s.Speculation; c != nil && c.Tuning != nil {
			if err := writeTuning(w, s.Machine, c.Tuning); err != nil {
				return err
			}
		}
	}
	return nil
}

// shownWindows is how many of the latest windows are shown.
const shownWindows = 5

// writeTuning writes how the degree is chosen, at a machine.
func writeTuning(w io.Writer, machine string, c *storeservice.TuningStatus) error {
	state := "searching"
	if c.Settled {
		state = "settled"
	}
	t := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	fmt.Fprintf(t, "\nthe degree is chosen at %s: %s, %d windows so far\n", machine, state, c.Windows)
	if len(c.Last) > 0 {
		fmt.Fprintln(t, "degree\twindow\tcommits\taborted\tfinal, p99")
	}
	for _, x := range c.Last[max(0, len(c.Last)-shownWindows):] {
		fmt.Fprintf(t, "%s\t%.1f s\t%.1f/s\t%.1f %%\t%.0f ms\n", x.Degree, x.Seconds, x.CommitsPerSecond, x.AbortPercent,
			x.P99MS)
	}
	return t.Flush()
}

// share is a number, and what share of another one it is.
func share(n, of uint64) string {
	if n == 0 {
		return "0"
	}
	return fmt.Sprintf("%d (%.1f %%)", n, 100*float64(n)/float64(of))
}

func blockedText(c *storeservice.SpeculationStatus) string {
	if c.Blocked == 0 {
		return "0"
	}
	return fmt.Sprintf("%d (%s for %.1f s)", c.Blocked, c.OldestBlocked, c.OldestBlockedSeconds)
}

// abortsText says how many transactions were aborted for which causes.
func abortsText(all []storeservice.CauseCount) string {
	var out []string
	for _, c := range all {
		if c.Transactions > 0 {
			out = append(out, fmt.Sprintf("%d %s", c.Transactions, c.Cause))
		}
	}
	if out == nil {
		return "-"
	}
	return strings.Join(out, ", ")
}
