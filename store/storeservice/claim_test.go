package storeservice

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/foresay/foresay/store/storeconfig"
)

// TestDirectoryOfAnotherProtocol: a machine refuses a directory of another protocol or mode before
// it reads what is in it, and takes it again when the file is right. One that was made before the
// protocol was noted is taken as it is.
func TestDirectoryOfAnotherProtocol(t *testing.T) {
	for _, tc := range []struct {
		change   func(*storeconfig.Store)
		want     string
		unrecord bool
	}{
		{change: func(s *storeconfig.Store) { s.Mode = "basic" }, want: "carousel in mode basic"},
		{change: func(s *storeconfig.Store) { s.Protocol, s.Mode = "layered", "" }, want: "layered"},
		{change: func(*storeconfig.Store) {}},
		{change: func(s *storeconfig.Store) { s.Mode = "basic" }, unrecord: true},
	} {
		inStore(t, []string{"a", "b", "c"}, storeconfig.InitOptions{Protocol: "carousel", Mode: "fast"}, func(w *world) {
			w.start("a")
			w.stop("a")
			if tc.unrecord {
				w.unrecord("a")
			}
			w.alter = func(cfg *storeconfig.MachineConfig) { reread(t, cfg.Store, func() { tc.change(cfg.Store) }) }
			r, err := w.open("a")
			if tc.want != "" {
				want := " is of a store that runs carousel in mode fast, and the file store.json says " + tc.want + ": protocol"
				if err == nil || !strings.Contains(err.Error(), want) {
					t.Errorf("the error is %v, want %q", err, want)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if err := r.store.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestDirectoryOfAnotherStore: a machine refuses the directory of its namesake in another store of
// the same name, unless that is of a time when IDs were not noted.
func TestDirectoryOfAnotherStore(t *testing.T) {
	for _, noted := range []bool{true, false} {
		inStore(t, []string{"a", "b", "c"}, storeconfig.InitOptions{}, func(w *world) {
			w.start("a")
			w.stop("a")
			want := ""
			w.alter = func(cfg *storeconfig.MachineConfig) {
				id := cfg.Store.ID
				reread(t, cfg.Store, func() { cfg.Store.ID += "x" })
				if noted {
					want = " of another store that is named test too: its ID is " + id + ", and store.json says " + id + "x"
					return
				}
				was := tenant{Cluster: cfg.Store.Cluster, Machine: "a", Epoch: cfg.Store.Epoch}
				if err := was.write(filepath.Join(cfg.Data, "machine.json")); err != nil {
					t.Fatal(err)
				}
			}
			switch r, err := w.open("a"); {
			case err == nil && noted:
				t.Error("the directory is taken")
				fallthrough
			case err == nil:
				if err := r.store.Close(); err != nil {
					t.Error(err)
				}
			case !noted || !strings.Contains(err.Error(), want):
				t.Errorf("the ID was noted: %v; the error is %v, want %q", noted, err, want)
			}
		})
	}
}

// unrecord takes the protocol out of a machine's directory.
func (w *world) unrecord(machine string) {
	w.Helper()
	name := filepath.Join(w.dir, "data-"+machine, "machine.json")
	b, err := os.ReadFile(name)
	if err != nil {
		w.Fatal(err)
	}
	without := regexp.MustCompile(`,"protocol":"[^"]*"`).ReplaceAll(b, nil)
	if len(without) == len(b) {
		w.Fatalf("%s has no protocol: %s", name, b)
	}
	if err := os.WriteFile(name, without, 0o600); err != nil {
		w.Fatal(err)
	}
}
