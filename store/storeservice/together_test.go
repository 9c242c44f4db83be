package storeservice

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/foresay/foresay/store/client"
	"github.com/foresay/foresay/store/storeconfig"
)

// TestMachinesOfASiteMoveTogether has a site leave while a machine of another one, which has two,
// is away: the one that is there takes no part in the next epoch before the other one is of that
// epoch too. A machine that has done so once waits for nobody when it starts again.
func TestMachinesOfASiteMoveTogether(t *testing.T) {
	inWorldOf(t, []string{"a a2", "b b2", "c", "d", "e"}, func(w *world) {
		stop := map[string]func(){}
		for _, name := range []string{"a", "a2", "b", "b2", "c", "d", "e"} {
			stop[name] = w.online(name)
		}
		defer func() {
			for _, end := range stop {
				end()
			}
		}()
		w.client(func(ctx context.Context, conn *Client, c *client.Client) {
			w.ready(ctx, conn)
			var counts [2]int
			load, end := context.WithCancel(ctx)
			time.AfterFunc(6*time.Second, end)
			done := make(chan struct{})
			for i := range counts {
				go func() {
					counts[i] = w.count(load, conn, "n"+strconv.Itoa(i), true)
					done <- struct{}{}
				}()
			}
			time.Sleep(time.Second)
			stop["b2"]()
			next, err := conn.newest().store.Fenced("c")
			if err != nil {
				t.Fatal(err)
			}
			var said strings.Builder
			if _, err := conn.Change(ctx, next, "", func(format string, a ...any) {
				said.WriteString(format + "\n")
			}); err != nil {
				t.Fatalf("%v, after %s", err, &said)
			}
			if _, err := storeconfig.Advance(w.dir, next); err != nil {
				t.Fatal(err)
			}
			want := map[string]string{"a": Admitted, "a2": Admitted, "b": New, "b2": Unreachable, "c": Fenced, "d": Admitted,
				"e": Admitted}
			if s := conn.Status(ctx); s[0].State == OtherEpoch { // the client learns that now
				time.Sleep(time.Second)
			}
			for _, s := range conn.Status(ctx) {
				if s.State != want[s.Machine] || s.Machine == "b" &&
					!strings.Contains(s.Error, "when b2 (shape: dial b2:2 from b: connection refused)") {
					t.Errorf("machine %s is %s (%s), want %s", s.Machine, s.State, s.Error, want[s.Machine])
				}
			}
			stop["b2"] = w.online("b2")
			w.ready(ctx, conn)
			for range counts {
				<-done
			}
			for i, n := range counts {
				if v, err := get(ctx, c, "n"+strconv.Itoa(i)); err != nil || v != strconv.Itoa(n) || n < 10 {
					t.Errorf("%d changes of a counter were acknowledged, and it is at %q (%v)", n, v, err)
				}
			}
			for _, name := range []string{"b", "b2"} {
				stop[name]()
			}
			stop["b"] = w.online("b")
			stop["b2"] = func() {}
			time.Sleep(3 * time.Second)
			if s := conn.Status(ctx)[2]; s.State != Admitted {
				t.Errorf("a machine whose site has moved is %s (%s) when it starts without the other one", s.State, s.Error)
			}
		})
	})
}

// TestSiteWithALostMachineLeaves: a machine waits for another one of its site whose disk is gone.
// The site leaves as one that is lost; the machine ends first, and says before how.
func TestSiteWithALostMachineLeaves(t *testing.T) {
	inWorldOf(t, []string{"a", "b b2", "c", "d", "e"}, func(w *world) {
		stop := map[string]func(){}
		for _, name := range []string{"a", "b", "b2", "c", "d", "e"} {
			stop[name] = w.online(name)
		}
		w.client(func(ctx context.Context, conn *Client, c *client.Client) {
			w.ready(ctx, conn)
			if err := put(ctx, c, "k", "v"); err != nil {
				t.Fatal(err)
			}
			stop["b2"]()
			change := func(site, lost string) (said string, err error) {
				next, err := conn.newest().store.Fenced(site)
				if err != nil {
					t.Fatal(err)
				}
				_, err = conn.Change(ctx, next, lost, func(format string, a ...any) { said += fmt.Sprintf(format+"\n", a...) })
				return said, err
			}
			if said, err := change("c", ""); err != nil {
				t.Fatalf("%v, after %s", err, said)
			}
			time.Sleep(time.Second)
			conn.Status(ctx) // which tells the client of the epoch
			time.Sleep(time.Second)
			if s := conn.Status(ctx)[1]; s.State != New ||
				!strings.Contains(s.Error, "the site has to leave: foresay store resolve --dir "+w.dir+" --site b --lost") {
				t.Errorf("machine b is %s (%s)", s.State, s.Error)
			}
			said, err := change("b", "b")
			if err != nil || !strings.Contains(said, "machine b has ended: ") ||
				!strings.Contains(said, "machine b2 does not answer: ") {
				t.Errorf("it says %s and fails with %v", said, err)
			}
			if v, err := get(ctx, c, "k"); err != nil || v != "v" {
				t.Errorf("k is %q (%v)", v, err)
			}
			want := map[string]string{"a": Admitted, "b": Fenced, "b2": Fenced, "c": Fenced, "d": Admitted, "e": Admitted}
			for _, s := range conn.Status(ctx) {
				if s.State != want[s.Machine] {
					t.Errorf("machine %s is %s (%s), want %s", s.Machine, s.State, s.Error, want[s.Machine])
				}
			}
		})
		delete(stop, "b2")
		for _, end := range stop {
			end()
		}
	})
}
