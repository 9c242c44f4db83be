package service

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/wal"
)

// TestDamagedDisk: a replica whose disk is damaged ends with an error that says so, once, whether
// the damage is met in a record, in a key or in a part of the snapshot.
func TestDamagedDisk(t *testing.T) {
	for _, kind := range []string{"sst", "blob"} {
		t.Run(kind, func(t *testing.T) {
			var dir string
			inWorld(t, "multipaxos", func(w *world) {
				w.adjust(3, func(c *Config) { c.SnapshotEvery = 8 })
				for id := range protocol.ID(2) {
					w.start(id + 1)
				}
				three := w.start(3)
				w.client(func(ctx context.Context, c *Client) {
					for i := range 20 {
						if _, err := c.Put(ctx, fmt.Sprint(i), make([]byte, 20<<10)); err != nil {
							w.Fatal(err)
						}
					}
					w.equal(ctx, c)
				})
				if err := three.end(); err != nil {
					w.Fatal(err)
				}
				if err := w.start(3).end(); err != nil { // what was in the log is in tables then
					w.Fatal(err)
				}
				dir = w.dir
			})
			damage(t, filepath.Join(dir, "replica-3", "db", "*."+kind))
			err := failing(t, filepath.Join(dir, ConfigFile(3)))
			if _, ok := errors.AsType[*wal.DamageError](err); !ok || strings.Count(err.Error(), "this disk has promised") != 1 {
				t.Errorf("got %v", err)
			}
		})
	}
}

// failing runs a replica that does not start, or ends, and reaches nobody. It is outside of a
// bubble: a store that has failed leaves goroutines behind.
func failing(t *testing.T, file string) error {
	t.Helper()
	cfg, err := ReadConfig(file)
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	alone := func(context.Context, string) (net.Conn, error) { return nil, errors.New("nobody is there") }
	r, err := OpenReplica(cfg, ReplicaOptions{Listener: l, Dial: alone})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	return r.Run(ctx)
}

// damage changes a byte in the first third of each file.
func damage(t *testing.T, pattern string) {
	t.Helper()
	names, err := filepath.Glob(pattern)
	if err != nil || len(names) == 0 {
		t.Fatalf("%s: %v, %v", pattern, names, err)
	}
	for _, name := range names {
		content, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		content[len(content)/3] ^= 64
		if err := os.WriteFile(name, content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}
