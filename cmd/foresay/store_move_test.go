package main

import (
	"bytes"
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/foresay/foresay/store/storeconfig"
	"github.com/foresay/foresay/store/storeservice"
	"github.com/foresay/foresay/wal"
)

// TestStoreMoves moves a partition's copy to another site, of machines that are processes of their
// own, while clients make transactions. The command is killed when the move is under way, then the
// machine that is to have the copy, and the one that has it: both come back with the files that
// they had. The command is run again, and completes the move while the machine that has led is
// away. In the end the new copy counts, as one more machine is away, nothing of the old one is
// left, and all that was committed is at the level that the protocol promises.
func TestStoreMoves(t *testing.T) {
	w := newStoreKillWorld(t, storeKillSetting{protocol: "carousel", mode: "direct", sites: 4, replicas: 3})
	stop := w.drive()
	w.commits(storeKillCommits)

	move := w.startMove("0", "a", "d")
	w.awaitEpoch(2)
	if err := move.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = move.Wait() // that it was killed is its error
	w.kill("d")
	w.commits(storeKillAway)
	w.serve("d") // with its file of epoch 1
	w.awaitEpoch(2)
	w.kill("a")
	move = w.startMove("0", "a", "d")
	w.commits(storeKillAway)
	if err := move.Wait(); err != nil {
		t.Fatalf("the second store move: %v\n%s\n%s", err, move.Stderr, w.status())
	}
	w.serve("a")
	w.reread()
	w.ready()
	w.kill("b")
	w.commits(storeKillAway)
	w.serve("b")
	w.ready()
	w.judge(stop())
	w.judgeMove()
	w.halt(w.machines...)
	if names := w.onDisk("a"); slices.Contains(names, "shard-0") || !slices.Contains(names, "shard-2") {
		t.Errorf("machine a has on its disk what %v have written", names)
	}
	if names := w.onDisk("d"); !slices.ContainsFunc(names, func(n string) bool {
		return len(n) > len("shard-0-server-") &&
			n[:len("shard-0-server-")] == "shard-0-server-"
	}) {
		t.Errorf("machine d has on its disk what %v have written", names)
	}
}

// startMove starts the command.
func (w *storeKillWorld) startMove(partition, from, to string) *exec.Cmd {
	w.Helper()
	c := exec.Command("foresay", "store", "move", "--partition", partition, "--from", from, "--to", to,
		"--timeout", killPatience.String(), "--client", storeconfig.ClientFile)
	c.Dir, c.Stderr = w.dir, new(bytes.Buffer)
	if err := c.Start(); err != nil {
		w.Fatal(err)
	}
	w.Cleanup(func() { _ = c.Process.Kill() }) // it has ended
	return c
}

// awaitEpoch waits until all machines are of an epoch.
func (w *storeKillWorld) awaitEpoch(epoch uint64) {
	w.Helper()
	w.await(fmt.Sprintf("in epoch %d", epoch), func(all []storeservice.Status) bool {
		return !slices.ContainsFunc(all, func(s storeservice.Status) bool { return s.Epoch != epoch })
	})
}

// reread has the world go on with the store's file as it is now.
func (w *storeKillWorld) reread() {
	w.Helper()
	var err error
	if w.cfg, err = storeconfig.ReadClient(filepath.Join(w.dir, storeconfig.ClientFile), ""); err != nil {
		w.Fatal(err)
	}
}

// judgeMove looks whether all machines agree on where partition 0 is, and nothing is left open.
func (w *storeKillWorld) judgeMove() {
	w.Helper()
	if got := w.cfg.Store.Placement[0]; w.cfg.Store.Epoch != 3 || !slices.Equal(got, []string{"d", "b", "c"}) {
		w.Errorf("the file is of epoch %d, and has partition 0 at %v", w.cfg.Store.Epoch, got)
	}
	c := w.dial()
	defer c.Close()
	ctx, cancel := context.WithTimeout(w.Context(), killPatience)
	defer cancel()
	for tick := time.NewTicker(50 * time.Millisecond); ; <-tick.C {
		var at []string
		open := 0
		for _, s := range c.Status(ctx) {
			for _, sh := range s.Shards {
				if sh.Shard == 0 {
					at = append(at, s.Site)
				}
				if open += int(sh.Undecided + sh.Locked); sh.Move != nil {
					w.Errorf("machine %s takes shard %d for being moved", s.Machine, sh.Shard)
				}
			}
		}
		if open == 0 && slices.Equal(at, []string{"b", "c", "d"}) {
			return
		}
		if ctx.Err() != nil {
			w.Fatalf("partition 0 is at %v, and %d keys and transactions are open\n%s", at, open, w.status())
		}
	}
}

// onDisk returns the nodes that have written to the disk of a machine, which does not run.
func (w *storeKillWorld) onDisk(machine string) []string {
	w.Helper()
	cfg, err := storeconfig.ReadMachine(filepath.Join(w.dir, storeconfig.MachineFile(machine)))
	if err != nil {
		w.Fatal(err)
	}
	s, err := wal.Open(filepath.Join(cfg.Data, "log"), wal.Options{})
	if err != nil {
		w.Fatal(err)
	}
	defer s.Close()
	names, err := s.Names()
	if err != nil {
		w.Fatal(err)
	}
	return names
}
