package geostore

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/foresay/foresay/store"
	"github.com/foresay/foresay/store/client"
	"github.com/foresay/foresay/store/layered"
	storemachine "github.com/foresay/foresay/store/machine"
	"github.com/foresay/foresay/store/replicatedcommit"
	"github.com/foresay/foresay/wan"
	"github.com/foresay/foresay/workload"
)

// TestLoadedKeys: each shard's disk has its keys and no others, as a disk in memory would show
// them.
func TestLoadedKeys(t *testing.T) {
	const keys, shards = 15_000, 3
	last := uint64(0)
	s := &Store{cfg: Config{
		Protocol: replicatedcommit.Protocol(), Matrix: wan.Uniform(0, "a", "b"), Shards: shards, Keys: keys,
		ValueBytes: 5, Dir: t.TempDir(),
		Loading: func(done, all uint64) {
			if done < last || all != 2*keys {
				t.Errorf("loaded %d of %d keys, after %d", done, all, last)
			}
			last = done
		},
	}}
	if err := s.load(t.Context()); err != nil {
		t.Fatal(err)
	}
	if last != 2*keys {
		t.Errorf("told of %d keys, want %d", last, 2*keys)
	}
	disks, open, err := openWAL(filepath.Join(s.cfg.Dir, "b"))
	if err != nil {
		t.Fatal(err)
	}
	base := s.keyspace()
	n := 0
	for i := range shards {
		disk, err := open(storemachine.ShardName(i))
		if err != nil {
			t.Fatal(err)
		}
		for key, value := range disk.Keys().Scan(nil, nil) {
			if n++; !base.has(key) || store.ShardOf(store.Key(key[1:]), shards) != i || !cmp.Equal(value, base.value) {
				t.Fatalf("shard %d has %s=%x", i, key, value)
			}
		}
	}
	if n != keys {
		t.Errorf("all shards have %d keys, want %d", n, keys)
	}
	if err := disks.Close(); err != nil {
		t.Error(err)
	}
}

// TestStoreOnDisks: the machines find the loaded keys where they look for them.
func TestStoreOnDisks(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		s, err := Open(t.Context(), Config{Matrix: wan.SpecRPC(), Shards: 3, Keys: 50, ValueBytes: 8, Dir: dir, Seed: 1})
		if err != nil {
			t.Fatal(err)
		}
		clients, err := s.Connect(client.GRPC, 1)
		if err != nil {
			t.Fatal(err)
		}
		w := workload.YCSBT{Keys: workload.Hotspot{N: 50, Hot: 10, Chance: 0.2}, Ops: 5, ReadPercent: 80}
		played, err := clients.Play(t.Context(), Load{Workload: w, Seed: 1, Txns: 60})
		if err != nil || len(played.Txns) != 60 {
			t.Errorf("%d transactions committed, %v", len(played.Txns), err)
		}
		clients.Close()
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
}

// TestNoPreload: a store whose disks nobody else can write says so.
func TestNoPreload(t *testing.T) {
	_, err := Open(t.Context(), Config{
		Protocol: layered.Protocol(), Matrix: wan.Uniform(time.Millisecond, "a", "b", "c"), Shards: 1, Keys: 1,
	})
	if err == nil || !strings.Contains(err.Error(), "layered") {
		t.Errorf("got %v", err)
	}
}

func TestLoadThatIsInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	enough := errors.New("enough")
	_, err := Open(ctx, Config{
		Matrix: wan.Uniform(time.Millisecond, "a", "b", "c"), Shards: 1, Keys: 1 << 40, Dir: t.TempDir(),
		Loading: func(uint64, uint64) { cancel(enough) },
	})
	if !errors.Is(err, enough) {
		t.Errorf("got %v", err)
	}
}
