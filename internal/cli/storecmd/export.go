package storecmd

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/foresay/foresay/bench"
	"github.com/foresay/foresay/clock"
	"github.com/foresay/foresay/internal/catalog"
	"github.com/foresay/foresay/internal/cli/command"
	"github.com/foresay/foresay/store"
	"github.com/foresay/foresay/store/front"
	"github.com/foresay/foresay/store/mvcc"
	"github.com/foresay/foresay/store/storeservice"
	"github.com/foresay/foresay/store/storeservice/dump"
)

type exportFlags struct {
	clientFlags
	at  string
	out string
}

func (p *program) exportCommand() *cobra.Command {
	var f exportFlags
	c := &cobra.Command{
		Use:   "export",
		Short: "Write a consistent snapshot of a store to a file, while the store runs",
		Long: `Write all that a store held at one time to a file, as lines of JSON, while transactions go on.
'foresay store import' loads it into a store of any protocol. The store's own protocol has to keep
versions: carousel and str do, for retain, and longer while the snapshot is being copied.

If it is interrupted, the same command goes on with the same snapshot, for up to ten times retain.`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			at, err := f.check()
			if err != nil {
				return err
			}
			return p.withClient(&f.clientFlags, func(conn *storeservice.Client) error {
				return p.export(c.Context(), &f, at, conn)
			})
		},
	}
	f.add(c.Flags(), 30*time.Second)
	c.Flags().StringVar(&f.at, "at", "now", "the `time` of the snapshot: now, or such as 2006-01-02T15:04:05Z")
	c.Flags().StringVar(&f.out, "out", "", "the `file` to write, or to go on with")
	return c
}

// check returns the timestamp that is asked for, 0 for the present.
func (f *exportFlags) check() (clock.Stamp, error) {
	if f.out == "" {
		return 0, command.Usagef("store export: --out is missing: the file to write")
	}
	if f.at == "now" {
		return 0, nil
	}
	t, err := time.Parse(time.RFC3339Nano, f.at)
	if err != nil || t.UnixNano() <= 0 {
		return 0, command.Usagef("store export: --at: %q is neither now nor a time such as 2006-01-02T15:04:05Z", f.at)
	}
	return clock.Stamp(t.UnixNano()), nil
}

func (p *program) export(ctx context.Context, f *exportFlags, at clock.Stamp, conn *storeservice.Client) error {
	s := conn.Store()
	proto := s.StoreProtocol()
	if !proto.Snapshots {
		return fmt.Errorf("store export: a store of the protocol %s keeps no versions, so it has no snapshot to write; "+
			"stores of these protocols do: %s", proto.Name, command.Joined(snapshotProtocols()))
	}
	file, err := os.OpenFile(f.out, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return fmt.Errorf("store export: %w", err)
	}
	defer file.Close()
	bar := command.NewProgress(p.Err)
	began := time.Now()
	resumed := 0
	keys, of, err := dump.Write(ctx, file, patient{conn, f.timeout},
		dump.Header{Store: s.Cluster, StoreID: s.Identity(), Protocol: proto.Name, Shards: s.Shards}, at,
		func(d dump.Progress) {
			if d.Resumed {
				resumed = d.Keys
				fmt.Fprintf(p.Err, "foresay store export: an earlier run has written %d keys to %s; going on behind them\n",
					resumed, f.out)
				return
			}
			if bar.Terminal {
				bar.Report(bench.Progress{Experiment: "store export", Done: d.Shard, Total: d.Shards,
					Doing: fmt.Sprintf("%d keys", d.Keys)})
			}
		})
	bar.Clear()
	if err == nil {
		err = file.Close()
	}
	if err != nil {
		return fmt.Errorf("store export: %w", p.exportError(f, err, keys))
	}
	if f.json {
		return p.WriteJSON(struct {
			Keys    int     `json:"keys"`
			Resumed int     `json:"resumed"` // that were there from before
			At      string  `json:"at"`
			Seconds float64 `json:"seconds"`
		}{keys, resumed, dump.FormatTime(of), time.Since(began).Seconds()})
	}
	_, err = fmt.Fprintf(p.Out, "%d keys, as of %s, in %s\n", keys, dump.FormatTime(of), f.out)
	return err
}

// exportError says what a failed export means, for people.
func (p *program) exportError(f *exportFlags, err error, keys int) error {
	if old, ok := errors.AsType[*mvcc.HorizonError](err); ok {
		return fmt.Errorf("the store keeps no snapshot of %s any more: the earliest is of %s", dump.FormatTime(old.At),
			dump.FormatTime(old.Horizon))
	}
	if ahead, ok := errors.AsType[*front.AheadError](err); ok {
		return fmt.Errorf("%s has not come yet, by the clock of the store", dump.FormatTime(ahead.At))
	}
	switch {
	case errors.Is(err, context.Canceled):
		return fmt.Errorf("interrupted, with %d keys; the same command goes on with %s", keys, f.out)
	case keys > 0:
		return fmt.Errorf("%w; there are %d keys, and the same command goes on with %s", err, keys, f.out)
	}
	return err
}

// snapshotProtocols returns the names of those that keep versions.
func snapshotProtocols() (names []string) {
	for _, p := range catalog.Stores() {
		if p.Snapshots {
			names = append(names, p.Name)
		}
	}
	return names
}

// patient waits for each page for so long.
type patient struct {
	*storeservice.Client
	timeout time.Duration
}

// Page implements dump.Source.
func (s patient) Page(ctx context.Context, shard int, at clock.Stamp, from mvcc.Cursor) (store.PageReply, error) {
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	return s.Client.Page(ctx, shard, at, from)
}
