package storecmd

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/foresay/foresay/internal/cli/command"
	"github.com/foresay/foresay/internal/heap"
	"github.com/foresay/foresay/store/machine"
	"github.com/foresay/foresay/store/storeconfig"
	"github.com/foresay/foresay/store/storeservice"
	"github.com/foresay/foresay/wal"
)

func (p *program) serveCommand() *cobra.Command {
	return p.ServeCommand(command.Server{
		Short: "Run one machine of a store",
		Long: `Run one machine of a store, as its file says; 'foresay store config machine' shows one. The log
goes to standard error.

SIGTERM or an interrupt ends it when clients' calls have ended and what it wrote is on disk; a
second one ends it at once, which loses nothing that was acknowledged. It ends with status 1 if it
must not take part: if its disk was lost, or its site is fenced.`,
		File: "the machine's `file`",
		Missing: "store serve: --config is missing; 'foresay store init' makes files, 'foresay store " +
			"config machine' shows one",
		Run: p.runMachine,
	})
}

// serveGarbage is how much garbage a machine may have that holds less.
const serveGarbage = 64 << 20

func (p *program) runMachine(ctx context.Context, file string) error {
	cfg, err := storeconfig.ReadMachine(file)
	if err != nil {
		return fmt.Errorf("store serve: %w", err)
	}
	if why := cfg.Store.Fragile(); why != "" {
		cfg.Log.New(p.Err).Warn("too few replicas", "why", why)
	}
	defer heap.AllowGarbage(serveGarbage)()
	var m *storeservice.Machine
	for { // once for each epoch
		m, err = storeservice.OpenMachine(cfg, storeservice.MachineOptions{Logger: cfg.Log.New(p.Err), Follows: m})
		if err != nil {
			return replaceDamaged(cfg, err)
		}
		err = m.Run(ctx)
		if refused, ok := errors.AsType[*machine.RefusedError](err); ok {
			if refused.Forgot {
				return fmt.Errorf("store serve: refused: %w\n%s", refused, replaceSite(cfg))
			}
			return fmt.Errorf("store serve: refused: %w", refused)
		}
		var next *storeconfig.Store
		if err == nil {
			next, err = m.Next()
		}
		if err != nil {
			return replaceDamaged(cfg, err)
		}
		if next == nil || ctx.Err() != nil {
			return nil
		}
		cfg.Store = next
	}
}

// replaceDamaged adds to an error how to go on without the disk, if that is damaged.
func replaceDamaged(cfg *storeconfig.MachineConfig, err error) error {
	if _, damaged := errors.AsType[*wal.DamageError](err); damaged {
		return fmt.Errorf("store serve: %w\n%s", err, replaceSite(cfg))
	}
	return fmt.Errorf("store serve: %w", err)
}

// replaceSite says how to go on without a machine's disk.
func replaceSite(cfg *storeconfig.MachineConfig) string {
	return fmt.Sprintf("never start this disk again; run: foresay store resolve --dir %s --site %s --replace "+
		"NEWSITE=PEERS/CLIENT", filepath.Dir(cfg.StorePath()), cfg.SiteName())
}
