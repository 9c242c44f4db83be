package storecmd

import (
	"context"
	"fmt"
	"log/slog"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/foresay/foresay/internal/cli/command"
	"github.com/foresay/foresay/store/storeconfig"
	"github.com/foresay/foresay/store/storeservice"
)

// How long a leader and a copy take to move, at most: the copy is sent at the pace that the store
// has left for it.
const (
	moveLeaderWithin = 10 * time.Second
	moveCopyWithin   = 30 * time.Minute
)

func (p *program) moveCommand() *cobra.Command {
	var f clientFlags
	var partition int
	var from, to string
	c := &cobra.Command{
		Use:   "move",
		Short: "Have another site lead a partition, or have its copy",
		Long: `Have another site lead a partition, or with --from have the copy that a site has, while the store
runs: of carousel and layered.

  foresay store move --partition 1 --to tokyo --client dir/client.json
  foresay store move --partition 1 --from seoul --to tokyo --client dir/client.json

A leader is moved among the sites with a copy. Transactions that are on their way may take some
round trips longer, and clients find the new leader by themselves. What is moved stays there until
that site fails; then the others elect a leader.

A copy is moved to a site without one. The site --from may be lost. The other site gets what the
others hold, and counts from then on in place of the old one; no transaction waits for that. Before
and after it the machines go on in another epoch, for which the store stands still for some round
trips. If the command is interrupted, or a machine is away, run it again. With the sites exchanged
it takes a move back that is not done.

'foresay store status' shows who leads, and how far a copy is.`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			switch {
			case partition < 0:
				return command.Usagef("store move: say which partition, by --partition; they are numbered from 0")
			case to == "":
				return command.Usagef("store move: say which site is to lead it, or with --from to have the copy, by --to")
			}
			within := moveLeaderWithin
			if from != "" {
				within = moveCopyWithin
			}
			if c.Flags().Changed("timeout") {
				within = f.timeout
			}
			if from != "" { // the store's file is brought up to date: there is no need to warn that it is not
				o := storeservice.ClientOptions{Logger: slog.New(slog.DiscardHandler)}
				return p.withClientBy(&f, o, func(client *storeservice.Client) error {
					ctx, cancel := context.WithTimeout(c.Context(), within)
					defer cancel()
					return p.moveCopy(ctx, client, f, partition, from, to)
				})
			}
			return p.withClient(&f, func(client *storeservice.Client) error {
				ctx, cancel := context.WithTimeout(c.Context(), within)
				defer cancel()
				return p.move(ctx, client, partition, to, f.json)
			})
		},
	}
	f.add(c.Flags(), moveLeaderWithin)
	c.Flags().Lookup("timeout").Usage = "how long it may take; a copy's move goes on when the command is run again " +
		"(default 10s, with --from " + moveCopyWithin.String() + ")"
	c.Flags().Lookup("timeout").DefValue = "0s"
	c.Flags().IntVar(&partition, "partition", -1, "the `number` of the partition, from 0")
	c.Flags().StringVar(&from, "from", "", "move the copy that this `site` has")
	c.Flags().StringVar(&to, "to", "", "the `site` that is to lead it, or to have the copy")
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
	p.writeMoved(partition, from, to)
	return nil
}

// writeMoved says which site leads a partition.
func (p *program) writeMoved(partition int, from, to string) {
	if from == to {
		fmt.Fprintf(p.Out, "partition %d was led at %s already\n", partition, to)
	} else {
		fmt.Fprintf(p.Out, "partition %d is led at %s, and was at %s\n", partition, to, from)
	}
}

// movedCopy is what --json says of a copy.
type movedCopy struct {
	moved
	Before bool   `json:"done_before"` // an earlier run did it
	Epoch  uint64 `json:"epoch"`
	File   string `json:"file"` // that is of the epoch now
}

// moveCopy moves a partition's copy, and brings the store's file up to date.
func (p *program) moveCopy(
	ctx context.Context, c *storeservice.Client, f clientFlags, partition int, from, to string,
) error {
	say := p.Out
	if f.json {
		say = p.Err
	}
	shown := moveShown{bar: command.NewProgress(p.Err)}
	defer shown.bar.Clear()
	s, before, err := c.MoveCopy(ctx, storeservice.CopyMove{
		Partition: partition, From: from, To: to, Waits: shown.show,
		Say: func(format string, a ...any) {
			shown.bar.Clear()
			fmt.Fprintf(say, format+"\n", a...)
		},
	})
	shown.bar.Clear()
	if err != nil {
		return fmt.Errorf("store move: %w", err)
	}
	file, err := storeconfig.BringUpToDate(f.client, f.site, s)
	if err != nil {
		return fmt.Errorf("store move: partition %d has moved, which its file does not say: %w", partition, err)
	}
	switch {
	case f.json:
		return p.WriteJSON(movedCopy{moved{partition, from, to}, before, s.Epoch, file})
	case before:
		fmt.Fprintf(say, "partition %d has its copy at %s, and none at %s, already\n", partition, to, from)
	default:
		fmt.Fprintf(say, "partition %d has its copy at %s, and none at %s any more\n", partition, to, from)
	}
	fmt.Fprintf(say, "%s is of epoch %d now. The machines know it, and clients that run learn of it from them.\n",
		filepath.Clean(file), s.Epoch)
	return nil
}

// moveShown shows how far a copy's move is.
type moveShown struct {
	bar *command.Progress
	at  time.Time // of the last line
}

func (m *moveShown) show(s storeservice.MoveStatus) {
	every := copyLines
	if m.bar.Terminal {
		every = copyRedrawn
	}
	if now := time.Now(); now.Sub(m.at) >= every {
		m.at = now
		m.bar.Note(moveText(s))
	}
}

// moveText says how far a copy's move is.
func moveText(s storeservice.MoveStatus) string {
	text := fmt.Sprintf("from %s to %s: %.1f MB copied", s.From, s.To, float64(s.ArrivedBytes)/1e6)
	if s.Back {
		text = fmt.Sprintf("from %s to %s, which is being taken back", s.From, s.To)
	}
	switch {
	case s.Done:
		return text + ", done but for the next epoch"
	case s.Waits != "":
		return text + "; " + s.Waits
	case !s.Leads:
		return text + "; nobody leads the partition"
	}
	return text
}
