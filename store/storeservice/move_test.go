package storeservice

import (
	"context"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/foresay/foresay/store"
	"github.com/foresay/foresay/store/client"
	"github.com/foresay/foresay/store/storeconfig"
	"github.com/foresay/foresay/wal"
)

// A moveWorld is a store of four sites with two partitions at three of them each, of which the
// first is at a, b and c.
type moveWorld struct {
	*world
	stop  map[string]func() // the machines that run
	count chan int          // how far a counter in partition 0 has come when the load has ended
	key   string
}

// inMoveWorld makes one whose site d has the machines that last names.
func inMoveWorld(t *testing.T, protocol, mode, last string, test func(*moveWorld)) {
	t.Helper()
	o := storeconfig.InitOptions{Protocol: protocol, Mode: mode, Placement: [][]string{{"a", "b", "c"}, {"b", "c", "d"}}}
	inStore(t, []string{"a", "b", "c", last}, o, func(w *world) {
		m := &moveWorld{world: w, stop: map[string]func(){}, count: make(chan int, 1)}
		for n := 0; m.key == "" || store.ShardOf(store.Key(m.key), 2) != 0; n++ {
			m.key = fmt.Sprint("n", n)
		}
		for _, name := range append([]string{"a", "b", "c"}, strings.Fields(last)...) {
			m.stop[name] = w.online(name)
		}
		w.client(func(ctx context.Context, conn *Client, _ *client.Client) { w.ready(ctx, conn) })
		test(m)
		for _, stop := range m.stop {
			stop()
		}
	})
}

// load has a client count in partition 0, until the function that it returns is called.
func (m *moveWorld) load() (end func()) {
	m.Helper()
	conn := m.dial()
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		defer conn.Close()
		m.count <- m.world.count(ctx, conn, m.key, false)
	}()
	return cancel
}

// kill stops a machine.
func (m *moveWorld) kill(name string) {
	m.stop[name]()
	delete(m.stop, name)
}

// serve starts it again, with the file that it had.
func (m *moveWorld) serve(name string) { m.stop[name] = m.online(name) }

// order is an operator's command; said is called with the number of each line that it says, and
// with 0 when it waits for the group.
func (m *moveWorld) order(
	from, to string, said func(ctx context.Context, n int, cancel func()),
) (s *storeconfig.Store, before bool, err error) {
	m.Helper()
	m.client(func(ctx context.Context, conn *Client, _ *client.Client) {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		n := 0
		s, before, err = conn.MoveCopy(ctx, CopyMove{From: from, To: to, Say: func(string, ...any) {
			if n++; said != nil {
				said(ctx, n, cancel)
			}
		}, Waits: func(MoveStatus) {
			if said != nil {
				said(ctx, 0, cancel)
			}
		}})
	})
	return s, before, err
}

// holds checks who has partition 0, and that all machines are ready and of the epoch.
func (m *moveWorld) holds(epoch uint64, sites ...string) {
	m.Helper()
	m.client(func(ctx context.Context, conn *Client, _ *client.Client) {
		var at []string
		for _, s := range m.ready(ctx, conn) {
			for _, sh := range s.Shards {
				if sh.Shard == 0 {
					at = append(at, s.Site)
				}
				if sh.Move != nil {
					m.Errorf("machine %s takes shard %d for being moved", s.Machine, sh.Shard)
				}
			}
			if s.Epoch != epoch {
				m.Errorf("machine %s is of epoch %d, want %d", s.Machine, s.Epoch, epoch)
			}
		}
		if !slices.Equal(at, sites) {
			m.Errorf("partition 0 is at %v, want %v", at, sites)
		}
	})
}

// leaders returns who leads partitions.
func (m *moveWorld) leaders() (leads map[int]string) {
	m.Helper()
	m.client(func(ctx context.Context, conn *Client, _ *client.Client) {
		if _, err := conn.latest(ctx); err != nil {
			m.Error(err)
		}
		leads = conn.leaders(ctx)
	})
	return leads
}

// onDisk returns the nodes that have written to the disk of a machine, which does not run.
func (m *moveWorld) onDisk(name string) []string {
	m.Helper()
	s, err := wal.Open(filepath.Join(m.dir, "data-"+name, "log"), wal.Options{})
	if err != nil {
		m.Fatal(err)
	}
	defer s.Close()
	names, err := s.Names()
	if err != nil {
		m.Fatal(err)
	}
	return names
}

// counted ends the load, and checks what is acknowledged against what is there.
func (m *moveWorld) counted(end func()) {
	m.Helper()
	end()
	n := <-m.count
	m.client(func(ctx context.Context, _ *Client, c *client.Client) {
		if v, err := get(ctx, c, m.key); err != nil || v != strconv.Itoa(n) || n < 5 {
			m.Errorf("%d changes of a counter were acknowledged, and it is at %q (%v)", n, v, err)
		}
	})
}

// TestCopyMoves: a partition's copy moves while a client writes to it. The process that orders it
// may end after any of the things that it does, and a machine with it: the one that has the copy
// and leads, the one that gets it, or another one. It comes back with the file that it had, and
// whoever runs the command again completes the move.
func TestCopyMoves(t *testing.T) {
	for _, tc := range []struct {
		protocol, mode string
		after          int // so many things; 0: they are not killed
		victim         string
	}{{"layered", "", 0, ""}, {"carousel", "fast", 3, "d"}, {"carousel", "fast", 6, "a"}} {
		inMoveWorld(t, tc.protocol, tc.mode, "d", func(m *moveWorld) {
			end := m.load()
			before := m.leaders()
			_, _, err := m.order("a", "d", func(_ context.Context, n int, cancel func()) {
				if n == tc.after && n > 0 {
					cancel()
					m.kill(tc.victim)
				}
			})
			if tc.after > 0 {
				time.Sleep(5 * roundTrip)
				m.serve(tc.victim)
			} else if err != nil {
				t.Error(err)
			}
			s, over, err := m.order("a", "d", nil)
			if err != nil || over != (tc.after == 0) || s.Epoch != 3 || !slices.Equal(s.Placement[0], []string{"d", "b", "c"}) {
				t.Errorf("%s, killed after %d steps with machine %q, and run again: over before %t, %+v, %v", tc.protocol,
					tc.after, tc.victim, over, s, err)
			}
			m.holds(3, "b", "c", "d")
			before[0] = "d"
			if got := m.leaders(); tc.after == 0 && !maps.Equal(got, before) {
				t.Errorf("partitions are led at %v, want %v", got, before)
			}
			m.kill("b") // the new copy counts
			m.client(func(ctx context.Context, _ *Client, c *client.Client) {
				if err := put(ctx, c, m.key+"'", "v"); err != nil {
					t.Error(err)
				}
			})
			m.counted(end)
			m.kill("a")
			if names := m.onDisk("a"); slices.Contains(names, "shard-0") {
				t.Errorf("machine a still has on its disk what %v have written", names)
			}
		})
	}
}

// TestMoveIsTakenBack: a move to a machine that does not come back is taken back, and a later one
// to there begins anew. When the group has done without the old copy, it is too late for that.
func TestMoveIsTakenBack(t *testing.T) {
	inMoveWorld(t, "carousel", "fast", "d d2", func(m *moveWorld) {
		m.kill("d")
		if _, _, err := m.order("a", "d", nil); err == nil || err.Error() !=
			"machine d, which is to have the copy, cannot be reached; nothing was changed" {
			t.Errorf("while machine d is away: %v", err)
		}
		m.serve("d")
		m.holds(1, "a", "b", "c")
		end := m.load()
		begin := func(until int, agreed func()) {
			_, _, err := m.order("a", "d", func(_ context.Context, n int, cancel func()) {
				switch n {
				case 1:
					agreed()
				case until:
					cancel()
				}
			})
			if err == nil {
				t.Error("the command was not interrupted")
			}
		}
		begin(0, func() { m.kill("d") }) // so it waits
		m.client(func(ctx context.Context, conn *Client, _ *client.Client) {
			for _, tc := range []struct {
				partition  int
				from, to   string
				want, hint string
			}{
				{1, "b", "a", "partition 0 is being moved from a to d: complete that first", "--partition 0 --from a --to d"},
				{0, "b", "d", "partition 0 is being moved from a to d", ""},
			} {
				_, _, err := conn.MoveCopy(ctx,
					CopyMove{Partition: tc.partition, From: tc.from, To: tc.to, Say: func(string, ...any) {}})
				if err == nil || !strings.Contains(err.Error(), tc.want) || !strings.Contains(err.Error(), tc.hint) {
					t.Errorf("the error is %v", err)
				}
			}
		})
		if s, _, err := m.order("d", "a", nil); err != nil || s.Epoch != 4 || s.Moves[0].Done != true || !s.Moves[0].Back {
			t.Errorf("taken back: %+v, %v", s, err)
		}
		if _, before, err := m.order("d", "a", nil); err != nil || !before {
			t.Errorf("taken back again: done before %t, %v", before, err)
		}
		m.serve("d")
		m.holds(4, "a", "b", "c")

		m.kill("d")         // d2 has the next server, and does not wait for it
		begin(6, func() {}) // all machines are of the epoch, or away
		m.client(func(ctx context.Context, conn *Client, _ *client.Client) {
			for done := false; !done && ctx.Err() == nil; time.Sleep(roundTrip) { // the group has made the move
				u, _ := MoveUnderWay(conn.Status(ctx))
				done = u != nil && u.Done
			}
		})
		s, _, err := m.order("d", "a", nil) // that was to take it back
		if err != nil || s.Epoch != 9 || !slices.Equal(s.Placement[0], []string{"a", "b", "c"}) || len(s.Moves) != 3 ||
			s.Moves[1].Back || s.Moves[2].Server != 2 {
			t.Errorf("taken back too late: %+v, %v", s, err)
		}
		m.serve("d")
		m.holds(9, "a", "b", "c")
		m.counted(end)
	})
}
