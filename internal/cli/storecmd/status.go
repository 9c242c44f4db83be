package storecmd

import (
	"context"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/foresay/foresay/internal/cli/command"
	"github.com/foresay/foresay/store/storeservice"
)

func (p *program) statusCommand() *cobra.Command {
	var f clientFlags
	var wait bool
	c := &cobra.Command{
		Use:   "status",
		Short: "Show how each machine and shard is",
		Long: `Show how each machine and shard is: whether it takes part (admitted; new: it waits for the other
sites to know its disk; syncing: it copies what another site has; refused: it must not; joining and
left: 'foresay store move' moves the shard's copy to here, or has moved it from here), how many
transactions it remembers, how many of them are not decided or are blocked, how many keys are
locked, and how many votes and reads are held until keys are free. With protocols whose shards are
led also whether the machine leads the shard, and the term that it is in; with carousel up to when
it may have served reads at timestamps (the ceiling, from now on), and how far its clock is ahead of
those of other sites; with str whether it serves snapshots, up to when and since when, and what each
machine's coordinator has seen of transactions that build on each other. Below that it says why machines do not take part, which transactions are
blocked, and the command that ends that. Exits with 1 if nobody answers. With --wait it waits until
all machines answer and take part.`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return p.withClient(&f, func(client *storeservice.Client) error {
				ctx, cancel := context.WithTimeout(c.Context(), f.timeout)
				defer cancel()
				return p.status(ctx, client, filepath.Dir(f.client), wait, f.json)
			})
		},
	}
	f.add(c.Flags(), 10*time.Second)
	c.Flags().BoolVar(&wait, "wait", false, "wait, for --timeout at most, until all machines take part")
	return c
}

// statusWithin bounds one look of status: a machine that takes longer is not reached.
const statusWithin = 2 * time.Second

func (p *program) status(ctx context.Context, c *storeservice.Client, dir string, wait, asJSON bool) error {
	var statuses []storeservice.Status
	shown := copyShown{bar: command.NewProgress(p.Err)}
	defer shown.bar.Clear()
	for {
		look, cancel := context.WithTimeout(ctx, statusWithin)
		seen := c.Status(look)
		cancel()
		if statuses == nil || ctx.Err() == nil {
			statuses = seen // one that was cut short says nothing
		}
		if !wait || storeservice.Ready(statuses) || ctx.Err() != nil {
			break
		}
		shown.show(statuses, time.Now())
		select {
		case <-ctx.Done():
		case <-time.After(command.StatusPause):
		}
	}
	shown.bar.Clear()
	var err error
	if asJSON {
		err = p.WriteJSON(withRemedies(statuses, dir))
	} else {
		err = writeStatus(p.Out, statuses, dir)
	}
	if err != nil {
		return err
	}
	if wait && !storeservice.Ready(statuses) {
		return fmt.Errorf("store status: not all machines came to take part in time: %s", storeservice.Complaints(statuses))
	}
	for _, s := range statuses {
		if s.State != storeservice.Unreachable && s.State != storeservice.Fenced {
			return nil
		}
	}
	return fmt.Errorf("store status: no machine answers")
}

// copyShown shows what shards copy from other sites while somebody waits for that.
type copyShown struct {
	bar   *command.Progress
	at    time.Time // of the last line
	bytes uint64    // copied until then
}

// How often what was copied is said: on a terminal over the last line, elsewhere in a line of its
// own.
const (
	copyRedrawn = time.Second
	copyLines   = 10 * time.Second
)

func (c *copyShown) show(statuses []storeservice.Status, now time.Time) {
	text, bytes := copyingText(statuses)
	every := copyLines
	if c.bar.Terminal {
		every = copyRedrawn
	}
	if text == "" || now.Sub(c.at) < every {
		return
	}
	if !c.at.IsZero() && bytes >= c.bytes {
		text += fmt.Sprintf(", %.1f MB/s", float64(bytes-c.bytes)/1e6/now.Sub(c.at).Seconds())
	}
	c.at, c.bytes = now, bytes
	c.bar.Note(text)
}

// copyingText says what the shards that copy have copied, and how much that is; empty if none does.
func copyingText(statuses []storeservice.Status) (text string, bytes uint64) {
	var machines []string
	var values uint64
	var servers, needed uint32
	for _, s := range statuses {
		for _, sh := range s.Shards {
			if sh.State == storeservice.Syncing {
				if !slices.Contains(machines, s.Machine) {
					machines = append(machines, s.Machine)
				}
				values, bytes = values+sh.CopiedValues, bytes+sh.CopiedBytes
				servers, needed = servers+sh.CopiedServers, needed+sh.NeededServers
			}
		}
	}
	if machines == nil {
		return "", 0
	}
	return fmt.Sprintf("%s: copying, %d of %d servers done, %d values, %.1f MB", strings.Join(machines, ", "), servers,
		needed, values, float64(bytes)/1e6), bytes
}

// movingText says which partition's copy is being moved, and how to go on; empty if none is.
func movingText(statuses []storeservice.Status) string {
	m, partition := storeservice.MoveUnderWay(statuses)
	if m == nil {
		return ""
	}
	from, to := m.From, m.To
	if m.Back {
		from, to = to, from
	}
	return fmt.Sprintf("partition %d is being moved %s\n"+
		"  foresay store move --partition %d --from %s --to %s completes it", partition, moveText(*m), partition, from, to)
}

// statusWithRemedy is a machine's status, and what ends the trouble of its site.
type statusWithRemedy struct {
	storeservice.Status
	Remedy *storeservice.Remedy `json:"remedy,omitempty"`
}

func withRemedies(statuses []storeservice.Status, dir string) []statusWithRemedy {
	remedies := storeservice.Remedies(statuses, dir)
	var out []statusWithRemedy
	for _, s := range statuses {
		row := statusWithRemedy{Status: s}
		for _, r := range remedies {
			if r.Site == s.Site {
				row.Remedy = &r
			}
		}
		out = append(out, row)
	}
	return out
}

// leadColumns say who leads a shard, and in which term, with tabs before them.
func leadColumns(sh storeservice.ShardStatus) string {
	switch {
	case sh.Term == 0:
		return "\t-\t-"
	case sh.Leads:
		return fmt.Sprintf("\tyes\t%d", sh.Term)
	}
	return fmt.Sprintf("\tno\t%d", sh.Term)
}

// anyShard reports whether a shard of one of the machines is as asked for.
func anyShard(statuses []storeservice.Status, is func(storeservice.ShardStatus) bool) bool {
	return slices.ContainsFunc(statuses, func(s storeservice.Status) bool { return slices.ContainsFunc(s.Shards, is) })
}

// clockColumns are the columns of what a shard's reads at timestamps go by, with tabs before them.
func clockColumns(c *storeservice.ClockStatus) string {
	if c == nil {
		return ""
	}
	ceiling, offset := "-", "-"
	if c.ReadCeiling != nil {
		ceiling = fmt.Sprintf("%+.1f s", c.ReadCeilingAheadSeconds)
	}
	if c.Sites > 0 {
		offset = fmt.Sprintf("%+.1f ± %.1f ms", c.OffsetMS, c.WithinMS)
	}
	return fmt.Sprintf("\t%s\t%s (max %v ms)", ceiling, offset, c.MaxOffsetMS)
}

// orderColumn is what becomes of requests that are handled by arrival, with a tab before it.
func orderColumn(o *storeservice.OrderStatus) string {
	switch {
	case o == nil:
		return ""
	case o.Held+o.Late+o.Full == 0:
		return "\t-"
	}
	return fmt.Sprintf("\t%.1f ms, %.1f %% late", o.MeanMS, 100*float64(o.Late)/float64(o.Held+o.Late+o.Full))
}

// undecidedColumn is how many transactions are not decided, and for how long the oldest of them has
// been there if that is a second or more.
func undecidedColumn(sh storeservice.ShardStatus) string {
	if sh.OldestUndecidedSeconds < 1 {
		return fmt.Sprint(sh.Undecided)
	}
	return fmt.Sprintf("%d (for %.0f s)", sh.Undecided, sh.OldestUndecidedSeconds)
}

func writeStatus(w io.Writer, statuses []storeservice.Status, dir string) error {
	t := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	led := anyShard(statuses, func(sh storeservice.ShardStatus) bool { return sh.Term > 0 })
	header := "site\tmachine\taddress\tepoch\tuptime\tshard\tstate\ttransactions\tundecided\tblocked\tlocked keys\theld"
	if led {
		header += "\tleads\tterm"
	}
	if anyShard(statuses, func(sh storeservice.ShardStatus) bool { return sh.Clock != nil }) {
		header += "\tread ceiling\tclock offset"
	}
	if anyShard(statuses, func(sh storeservice.ShardStatus) bool { return sh.Snapshots != nil }) {
		header += "\tsnapshots"
	}
	if anyShard(statuses, func(sh storeservice.ShardStatus) bool { return sh.Order != nil }) {
		header += "\theld by arrival"
	}
	fmt.Fprintln(t, header)
	for _, s := range statuses {
		if s.State == storeservice.Unreachable || s.State == storeservice.Fenced {
			fmt.Fprintf(t, "%s\t%s\t%s\t-\t-\t-\t%s\t-\t-\t-\t-\t-\n", s.Site, s.Machine, s.Address, s.State)
			continue
		}
		machine := fmt.Sprintf("%s\t%s\t%s\t%d\t%v", s.Site, s.Machine, s.Address, s.Epoch,
			time.Duration(s.UptimeSeconds)*time.Second)
		if len(s.Shards) == 0 {
			fmt.Fprintf(t, "%s\t-\t%s\t-\t-\t-\t-\t-\n", machine, s.State)
		}
		for _, sh := range s.Shards {
			leads := ""
			if led {
				leads = leadColumns(sh)
			}
			fmt.Fprintf(t, "%s\t%d\t%s\t%d\t%s\t%d\t%d\t%d%s%s%s%s\n", machine, sh.Shard, sh.State, sh.Transactions,
				undecidedColumn(sh), sh.Blocked, sh.Locked, sh.Held+sh.Waiting, leads, clockColumns(sh.Clock),
				snapshotsColumn(sh.Snapshots), orderColumn(sh.Order))
			machine = "\t\t\t\t" // said once
		}
	}
	if err := t.Flush(); err != nil {
		return err
	}
	if err := writeSpeculation(w, statuses); err != nil {
		return err
	}
	if why := storeservice.Complaints(statuses); why != "" {
		fmt.Fprintln(w, why)
	}
	if text, _ := copyingText(statuses); text != "" {
		fmt.Fprintln(w, text)
	}
	if text := movingText(statuses); text != "" {
		fmt.Fprintln(w, text)
	}
	writeClocks(w, statuses)
	for _, s := range statuses {
		for _, sh := range s.Shards {
			for _, t := range sh.BlockedTransactions {
				fmt.Fprintf(w, "transaction %s is blocked at machine %s, shard %d, %v old\n", t.ID, s.Machine, sh.Shard,
					time.Duration(t.AgeSeconds)*time.Second)
			}
		}
	}
	for _, r := range storeservice.Remedies(statuses, dir) {
		fmt.Fprintf(w, "site %s: %s; %s:\n  %s\n", r.Site, r.Trouble, r.When(), r.Command)
	}
	return nil
}

// writeClocks says whose clocks are off: as measured from here, and as servers find out themselves.
func writeClocks(w io.Writer, statuses []storeservice.Status) {
	for _, line := range storeservice.ClockComplaints(statuses) {
		fmt.Fprintln(w, line)
	}
	for _, s := range statuses {
		if i := slices.IndexFunc(s.Shards, func(sh storeservice.ShardStatus) bool {
			return sh.Clock != nil && sh.Clock.Off
		}); i >= 0 {
			c := s.Shards[i].Clock
			fmt.Fprintf(w, "the clock of machine %s is %.1f ms away from those of other sites, more than max_offset, %v ms: "+
				"it serves no strict reads at timestamps\n", s.Machine, c.OffsetMS, c.MaxOffsetMS)
		}
	}
}
