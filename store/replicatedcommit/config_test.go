package replicatedcommit

import (
	"strings"
	"testing"
	"time"

	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/store"
)

func TestConfigErrors(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(*store.Config)
		want   string
	}{
		{"no sites", func(c *store.Config) { c.Layout.Sites = nil }, "a layout of 0 sites"},
		{"two of a name", func(c *store.Config) { c.Layout.Sites[1].Name = "a" }, `two sites are called "a"`},
		{"no coordinator", func(c *store.Config) { c.Layout.Sites[1].Coordinators = nil }, `site "b": no coordinator`},
		{"a shard is missing", func(c *store.Config) {
			c.Layout.Sites[1].Shards = []protocol.ID{21}
		}, `site "b": 1 shards (want 1 to 4096, as many as site "a" has)`},
		{"an ID twice", func(c *store.Config) { c.Layout.Sites[1].Shards[0] = 11 }, "the ID 11 is 0 or used twice"},
		{"too many fenced", func(c *store.Config) {
			c.Layout.Sites[1].Fenced, c.Layout.Sites[2].Fenced = true, true
		}, "1 of 3 sites are not fenced (want 2 at least)"},
		{"no ID", func(c *store.Config) { c.ID = 0 }, "Config.ID is 0"},
		{"a site of a later epoch", func(c *store.Config) {
			c.Epoch, c.Layout.Sites[1].Since = 1, 2
		}, `site "b" is of epoch 2, and Config.Epoch is 1`},
		{"too many new", func(c *store.Config) {
			c.Epoch, c.Layout.Sites[1].Since, c.Layout.Sites[2].Since = 2, 2, 2
		}, "1 of 3 sites are neither fenced nor new in epoch 2 (want 2 at least)"},
		{"one fenced, one new", func(c *store.Config) {
			c.Epoch, c.Layout.Sites[1].Fenced, c.Layout.Sites[2].Since = 2, true, 2
		}, "1 of 3 sites are neither"},
		{"a site without a shard", func(c *store.Config) { c.Layout.Sites[1].Shards[0] = 0 }, "a site lacks a shard"},
		{"negative time", func(c *store.Config) { c.Retain = -time.Second }, "Retain"},
		{"negative bound", func(c *store.Config) { c.MaxTxns = -1 }, "MaxTxns"},
	} {
		cfg := store.Config{ID: 11, Layout: layout(3, 2)}
		c.change(&cfg)
		if _, err := newServer(cfg); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %q", c.name, err, c.want)
		}
	}
	cfg := store.Config{ID: 10, Layout: layout(3, 2)}
	if _, err := newServer(cfg); err == nil {
		t.Error("a coordinator's ID makes a server")
	}
	if _, err := newClient(cfg); err == nil {
		t.Error("a coordinator's ID makes a client")
	}
	cfg.ID = 11
	if _, err := newCoordinator(cfg); err == nil {
		t.Error("a server's ID makes a coordinator")
	}
	if _, err := newClient(cfg); err == nil {
		t.Error("a server's ID makes a client")
	}
}
