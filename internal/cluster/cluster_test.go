package cluster

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/foresay/foresay/wan"
	"github.com/foresay/foresay/wan/shape"
)

func until(ctx context.Context) error {
	<-ctx.Done()
	return nil
}

func opens(run func(context.Context) error) func() (func(context.Context) error, error) {
	return func() (func(context.Context) error, error) { return run, nil }
}

// TestStopAndStart: a node runs once at a time, is stopped once, and can be started again. One that
// fails says why, and so does the end of the cluster, unless that was expected.
func TestStopAndStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := New("machine", nil, nil)
		broken, refused := errors.New("broken"), errors.New("refused")
		expect := func(name string, want bool, wantErr error) {
			t.Helper()
			synctest.Wait()
			if running, err := c.State(name); running != want || err != wantErr {
				t.Errorf("%s runs: %v (%v)", name, running, err)
			}
		}
		start := func(name string, run func(context.Context) error) {
			t.Helper()
			if err := c.Start(name, opens(run)); err != nil {
				t.Error(err)
			}
		}
		if c.Stop("a") {
			t.Error("a node runs that was never started")
		}
		start("a", until)
		if err := c.Start("a", opens(until)); err == nil || err.Error() != "machine a runs" {
			t.Errorf("a node that runs is started: %v", err)
		}
		start("b", func(context.Context) error { return broken })
		start("c", func(context.Context) error { return refused })
		expect("a", true, nil)
		expect("b", false, broken)
		if err := c.Start("b", func() (func(context.Context) error, error) { return nil, refused }); err != refused {
			t.Errorf("a node that cannot be opened: %v", err)
		}
		expect("b", false, broken)
		if !c.Stop("a") || c.Stop("a") {
			t.Error("a node that runs is not stopped, or twice")
		}
		expect("a", false, nil)
		start("a", until)
		err := c.StopAll(func(err error) bool { return err == refused })
		if !errors.Is(err, broken) || errors.Is(err, refused) {
			t.Errorf("at the end: %v", err)
		}
		expect("a", false, nil)
	})
}

// TestLose: the disk of a node that runs stays.
func TestLose(t *testing.T) {
	c := New("machine", nil, nil)
	disk := filepath.Join(t.TempDir(), "disk")
	if err := os.Mkdir(disk, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := c.Start("a", opens(until)); err != nil {
		t.Fatal(err)
	}
	if err := c.Lose("a", disk); err == nil || !strings.Contains(err.Error(), "stop it first") {
		t.Errorf("got %v", err)
	}
	c.Stop("a")
	if err := c.Lose("a", disk); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(disk); !os.IsNotExist(err) {
		t.Errorf("the disk is still there: %v", err)
	}
}

// TestCut: nobody reaches a site that is cut off, nor does it reach others, until that ends.
func TestCut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sites := []wan.Site{"a", "b", "c"}
		net := shape.NewNetwork(wan.Uniform(time.Millisecond, sites...), 1)
		defer net.Close()
		c := New("machine", net, sites)
		for _, cut := range []bool{true, false} {
			c.Cut("b", cut)
			for _, from := range sites {
				for _, to := range sites {
					want := cut && from != to && (from == "b" || to == "b")
					if got := net.Link(from, to).Down; got != want {
						t.Errorf("cut %v: from %s to %s it is cut: %v", cut, from, to, got)
					}
				}
			}
			if c.IsCut("b") != cut || c.IsCut("a") {
				t.Errorf("cut %v: b is cut off: %v, a: %v", cut, c.IsCut("b"), c.IsCut("a"))
			}
		}
	})
}
