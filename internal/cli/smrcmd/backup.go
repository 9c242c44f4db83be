package smrcmd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/foresay/foresay/bench"
	"github.com/foresay/foresay/internal/cli/command"
	"github.com/foresay/foresay/smr/service"
)

// backupAnswer is what smr backup and smr restore say with --json.
type backupAnswer struct {
	File    string `json:"file"`
	Version uint64 `json:"version,omitempty"` // of one group
	Groups  int    `json:"groups"`
	Keys    int    `json:"keys"`
	Leases  int    `json:"leases"`
	Skipped uint64 `json:"skipped_versions,omitempty"` // of each group, by smr restore
}

func (p *program) writeBackupAnswer(f *clientFlags, file string, b *service.Backup, did string, skipped uint64) error {
	keys, leases := b.Size()
	a := backupAnswer{File: file, Version: b.Version, Groups: len(b.Others) + 1, Keys: keys, Leases: leases,
		Skipped: skipped}
	of := fmt.Sprintf("of version %d", b.Version)
	if a.Groups > 1 {
		a.Version, of = 0, fmt.Sprintf("of %d groups", a.Groups) // each has a version of its own
	}
	if f.json {
		return p.WriteJSON(a)
	}
	if skipped > 0 {
		of += fmt.Sprintf("; %d versions were skipped", skipped)
	}
	_, err := fmt.Fprintf(p.Out, "%s %s and %s %s\n", did, command.Counted(a.Keys, "key"),
		command.Counted(a.Leases, "lease"), of)
	return err
}

func (p *program) backupCommand() *cobra.Command {
	var f clientFlags
	c := &cobra.Command{
		Use:   "backup FILE",
		Short: "Write what the service has to a file",
		Long: `Write all keys and leases to a new file, as lines of JSON, while the service is used. The file is
one moment's (of several groups each has its own), and ends with a checksum. A FILE of - is
standard output. 'foresay smr restore' loads it into a new group, of any protocol. The quota is not
in it.

It reads the contents by pages of 1 MiB, and behind each page the changes since. If changes come
faster than they can be read, more than 10,000, or 4 MiB, in two round trips, it begins again, and
fails after the third time: back up in a quieter moment, or from nearer to the service.`,
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			return p.withLastingClient(c.Context(), &f, func(ctx context.Context, client *service.Client) error {
				if err := p.backup(ctx, client, &f, args[0]); err != nil {
					return fmt.Errorf("smr backup: %w", err)
				}
				return nil
			})
		},
	}
	f.add(c.Flags())
	return c
}

func (p *program) backup(ctx context.Context, client *service.Client, f *clientFlags, file string) error {
	if _, err := os.Lstat(file); err == nil {
		return fmt.Errorf("%s is there already", file)
	} else if file != "-" && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := reach(ctx, client, f); err != nil {
		return err
	}
	bar := command.NewProgress(p.Err)
	b, err := client.Backup(ctx, func(keys int) {
		if bar.Terminal {
			fmt.Fprintf(p.Err, "\rsmr backup: %s%s", command.Counted(keys, "key"), command.ClearedToEnd)
		}
	})
	bar.Clear()
	if err != nil {
		return err
	}
	if file == "-" {
		_, err := b.WriteTo(p.Out)
		return err
	}
	if err := writeDurably(file, b); err != nil {
		return err
	}
	return p.writeBackupAnswer(f, file, b, "wrote", 0)
}

// writeDurably writes a file that is there as a whole or not at all.
func writeDurably(file string, b io.WriterTo) (err error) {
	t, err := os.CreateTemp(filepath.Dir(file), filepath.Base(file)+".*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(t.Name()))
		}
	}()
	_, err = b.WriteTo(t)
	if err = errors.Join(err, t.Sync(), t.Close()); err != nil {
		return err
	}
	return os.Rename(t.Name(), file)
}

// addSkipVersions adds the flag of smr restore and smr recover.
func addSkipVersions(flags *pflag.FlagSet, n *uint64) {
	flags.Uint64Var(n, "skip-versions", service.DefaultSkipVersions,
		"go on this `number` of versions later: more than can have been given since, and are lost")
}

func (p *program) restoreCommand() *cobra.Command {
	var f clientFlags
	var skipVersions uint64
	c := &cobra.Command{
		Use:   "restore FILE",
		Short: "Load a backup into a new group",
		Long: `Load what 'foresay smr backup' wrote into a new group, in which nothing was written yet. Keys keep
their versions; the time of leases begins anew. Until it is done the group refuses other changes.
If it was interrupted, run it again: it goes on. A FILE of - is standard input.

What is written then has versions, lease IDs and tokens of locks more than --skip-versions above
those of the backup, so that none which the old group has given since is given a second time: 'cas'
with a version of then fails, and 'watch --after' says that the changes are not kept. With 0 they go
on as the old group would: only if nothing was written to it since the backup.`,
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			b, err := p.readBackup(args[0])
			if err != nil {
				return fmt.Errorf("smr restore: %w", err)
			}
			return p.withLastingClient(c.Context(), &f, func(ctx context.Context, client *service.Client) error {
				if err := p.restore(ctx, client, &f, args[0], b, skipVersions); err != nil {
					return fmt.Errorf("smr restore: %w", err)
				}
				return nil
			})
		},
	}
	f.add(c.Flags())
	addSkipVersions(c.Flags(), &skipVersions)
	return c
}

// reach waits until the service answers, for --timeout: what comes then may take longer.
func reach(ctx context.Context, client *service.Client, f *clientFlags) error {
	ctx, cancel := context.WithTimeout(ctx, f.timeout)
	defer cancel()
	_, _, err := client.Scan(ctx, "", "", 1)
	return err
}

func (p *program) readBackup(file string) (*service.Backup, error) {
	if file == "-" {
		return service.ReadBackup(p.In)
	}
	r, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	b, err := service.ReadBackup(r)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return b, nil
}

func (p *program) restore(
	ctx context.Context, client *service.Client, f *clientFlags, file string, b *service.Backup, skipVersions uint64,
) error {
	if err := reach(ctx, client, f); err != nil {
		return err
	}
	bar := command.NewProgress(p.Err)
	total, _ := b.Size()
	err := client.Restore(ctx, b, skipVersions, func(keys int) {
		bar.Report(bench.Progress{Experiment: "smr restore", Done: keys, Total: total, Doing: "loading keys"})
	})
	bar.Clear()
	if err != nil {
		return err
	}
	return p.writeBackupAnswer(f, file, b, "restored", skipVersions)
}
