package host_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/foresay/foresay/host"
	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/transport"
)

// gate is a node that waits inside of a call until it is told to go on. No proper node does.
func gate(d *diary) (n *node, open chan struct{}) {
	open = make(chan struct{})
	return &node{
		receive: func(_ *protocol.Env[string], from protocol.ID, msg string) {
			d.note("%d says %s", from, msg)
			if msg == "wait" {
				<-open
			}
		},
		broken: func(_ *protocol.Env[string], from protocol.ID) { d.note("%d broken", from) },
	}, open
}

func TestDeliveriesWait(t *testing.T) {
	inWorld(t, func(w *world) {
		d := newDiary()
		h := w.host(w.config(1))
		g, open := gate(d)
		n := h.add(host.Spec[string]{ID: 1, Node: g, QueueDeliveries: 2})
		h.run()
		if err := n.Deliver(w.Context(), "wait"); err != nil {
			w.Fatal(err)
		}
		synctest.Wait()
		for i := range 2 {
			if err := n.TryDeliver(fmt.Sprint(i)); err != nil {
				w.Fatal(err)
			}
		}
		if err := n.TryDeliver("too much"); !errors.Is(err, host.ErrOverload) {
			w.Errorf("got %v", err)
		}
		ctx, cancel := context.WithTimeout(w.Context(), time.Second)
		defer cancel()
		if err := n.Deliver(ctx, "too much"); !errors.Is(err, host.ErrOverload) || !errors.Is(err, context.DeadlineExceeded) {
			w.Errorf("got %v", err)
		}
		if err := n.Deliver(ctx, "late"); errors.Is(err, host.ErrOverload) || !errors.Is(err, context.DeadlineExceeded) {
			w.Errorf("got %v", err)
		}
		if got := n.Stats().Queued; got != 2 {
			w.Errorf("%d messages are queued, want 2", got)
		}
		delivered := make(chan error, 1)
		go func() { delivered <- n.Deliver(w.Context(), "patient") }()
		synctest.Wait()
		close(open)
		if err := <-delivered; err != nil {
			w.Error(err)
		}
		synctest.Wait()
		if got, want := d.all(), []string{"0 says wait", "0 says 0", "0 says 1", "0 says patient"}; !slices.Equal(got, want) {
			w.Errorf("got %q, want %q", got, want)
		}
	})
}

// Who waits for room when the node stops gets an error.
func TestDeliveryWhileTheNodeStops(t *testing.T) {
	inWorld(t, func(w *world) {
		h := w.host(w.config(1))
		g, open := gate(newDiary())
		n := h.add(host.Spec[string]{ID: 1, Node: g, QueueDeliveries: 1})
		h.run()
		for _, msg := range []string{"wait", "queued"} {
			if err := n.Deliver(w.Context(), msg); err != nil {
				w.Fatal(err)
			}
			synctest.Wait()
		}
		results := make(chan error, 3)
		for range 3 {
			go func() { results <- n.Deliver(w.Context(), "late") }()
		}
		synctest.Wait()
		h.stop()
		synctest.Wait()
		close(open)
		for range 3 {
			if err := <-results; err != nil && !errors.Is(err, host.ErrStopped) {
				w.Errorf("got %v", err)
			}
		}
	})
}

// What the network brings too much of is lost, and the node is told where.
func TestFullInbox(t *testing.T) {
	for _, c := range []struct {
		name string
		spec host.Spec[string]
		want string
	}{
		{"messages", host.Spec[string]{QueueMessages: 2}, "2 says wait, 2 says 0, 2 says 1, 2 broken, 2 says later"},
		{"bytes", host.Spec[string]{QueueBytes: 3}, "2 says wait, 2 says 0, 2 says 1, 2 broken, 2 says later"},
	} {
		t.Run(c.name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				d := newDiary()
				a := w.host(w.config(1))
				g, open := gate(d)
				c.spec.ID, c.spec.Node = 1, g
				n := a.add(c.spec)
				a.run()
				b := w.host(w.config(2), 1)
				from := b.add(host.Spec[string]{ID: 2, Node: relay(1)})
				b.run()
				time.Sleep(time.Second)
				for _, msg := range []string{"wait", "0", "1", "too long", "2", "3"} {
					if err := from.Deliver(w.Context(), msg); err != nil {
						w.Fatal(err)
					}
					time.Sleep(100 * time.Millisecond)
				}
				if s := n.Stats(); s.Dropped == 0 || s.Queued < 2 {
					w.Errorf("%d dropped, %d queued", s.Dropped, s.Queued)
				}
				close(open)
				time.Sleep(100 * time.Millisecond)
				if err := from.Deliver(w.Context(), "later"); err != nil {
					w.Fatal(err)
				}
				time.Sleep(100 * time.Millisecond)
				if got := strings.Join(d.all(), ", "); got != c.want {
					w.Errorf("got %q, want %q", got, c.want)
				}
			})
		})
	}
}

// While the disk hangs, the network still moves, up to a bound; then the node gets no more input.
func TestHeldMessagesAreBounded(t *testing.T) {
	inWorld(t, func(w *world) {
		disk := &handDisk{Memory: host.NewMemory()}
		calls := 0
		d := newDiary()
		n := &node{receive: func(env *protocol.Env[string], _ protocol.ID, msg string) {
			calls++
			env.Append(msg)
			env.Send(protocol.App, msg)
		}}
		h := w.host(w.config(1))
		handle := h.add(host.Spec[string]{ID: 1, Node: n, Disk: disk, QueueHeld: 10, App: func(msg string) {
			d.note("%s", msg)
		}})
		h.run()
		var want []string
		for i := range 100 {
			want = append(want, fmt.Sprint(i))
			if err := handle.Deliver(w.Context(), fmt.Sprint(i)); err != nil {
				w.Fatal(err)
			}
			synctest.Wait()
		}
		if calls != 10 || handle.Stats().Held != 10 || handle.Stats().Queued != 90 {
			w.Errorf("%d calls, %d held, %d queued, want 10, 10 and 90", calls, handle.Stats().Held, handle.Stats().Queued)
		}
		for disk.sync(-1, nil) > 0 {
			synctest.Wait()
		}
		if got := d.all(); !slices.Equal(got, want) {
			w.Errorf("got %q", got)
		}
	})
}

func TestUnreadableMessages(t *testing.T) {
	inWorld(t, func(w *world) {
		d := newDiary()
		a := w.host(w.config(1))
		n := a.add(host.Spec[string]{ID: 1, Node: puppet(d)})
		a.run()
		b := w.host(w.config(2), 1)
		from := b.add(host.Spec[string]{ID: 2, Node: relay(1)})
		b.run()
		time.Sleep(time.Second)
		for _, msg := range []string{"one", "unreadable", "two", "panic", "three"} {
			if err := from.Deliver(w.Context(), msg); err != nil {
				w.Fatal(err)
			}
		}
		time.Sleep(time.Second)
		if got, want := d.all()[1:], []string{"2 says one", "2 broken", "2 says two", "2 broken",
			"2 says three"}; !slices.Equal(got, want) {
			w.Errorf("got %q, want %q", got, want)
		}
		if got := n.Stats().Malformed; got != 2 {
			w.Errorf("%d malformed, want 2", got)
		}
	})
}

// Many groups share a stream, and a node is added while the host runs.
func TestManyNodesOnAHost(t *testing.T) {
	inWorld(t, func(w *world) {
		const groups = 50
		a, b := w.host(w.config(1), 2), w.host(w.config(2), 1)
		d := newDiary()
		a.run()
		b.run()
		var from []*host.Node[string]
		for g := range transport.Group(groups) {
			from = append(from, a.add(host.Spec[string]{Group: g, ID: 1, Node: relay(2), App: func(msg string) {
				d.note("%d %s", g, msg)
			}}))
			b.add(host.Spec[string]{Group: g, ID: 2, Node: echo()})
		}
		var want []string
		for g, n := range from {
			for i := range 3 {
				want = append(want, fmt.Sprint(g, " ", i))
				if err := n.Deliver(w.Context(), fmt.Sprint(i)); err != nil {
					w.Fatal(err)
				}
			}
		}
		time.Sleep(time.Second)
		got := d.all()
		slices.Sort(want)
		slices.Sort(got)
		if !slices.Equal(got, want) {
			w.Errorf("got %q, want %q", got, want)
		}
		s := a.Stats()
		if len(s.Nodes) != groups || s.Nodes[7].Addr != (transport.Addr{Group: 7, ID: 1}) || s.Nodes[7].Steps != 7 {
			w.Errorf("the stats are %+v", s.Nodes[7])
		}
		if p := s.Network.Peers; len(p) != 1 || p[0].SentMessages != 3*groups || p[0].State != transport.Up {
			w.Errorf("the stats of the peer are %+v", p)
		}
	})
}
