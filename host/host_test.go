package host_test

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/foresay/foresay/host"
	"github.com/foresay/foresay/protocol"
)

func TestPingBetweenHostsTakesOneRoundTrip(t *testing.T) {
	inWorld(t, func(w *world) {
		server := w.host(w.config(1))
		server.add(host.Spec[string]{ID: 1, Node: echo()})
		server.run()
		client := w.host(w.config(0), 1)
		d := newDiary()
		n := client.add(host.Spec[string]{ID: 70000, Node: relay(1), App: func(msg string) { d.at("%s", msg) }})
		client.run()
		time.Sleep(time.Second)
		d.start = time.Now()
		for _, msg := range []string{"one", "two"} {
			if err := n.Deliver(w.Context(), msg); err != nil {
				w.Fatal(err)
			}
			time.Sleep(20 * time.Millisecond)
		}
		synctest.Wait()
		if got, want := d.all(), []string{"10ms one", "30ms two"}; !slices.Equal(got, want) {
			w.Errorf("got %q, want %q", got, want)
		}
	})
}

func TestMembersTalkBothWays(t *testing.T) {
	inWorld(t, func(w *world) {
		d := newDiary()
		for id := protocol.ID(1); id <= 3; id++ {
			h := w.host(w.config(id), 1, 2, 3)
			h.add(host.Spec[string]{ID: id, Node: &node{
				start: func(env *protocol.Env[string], _ []protocol.Record[string]) { env.After(time.Second, "go") },
				expire: func(env *protocol.Env[string], _ protocol.Timer) {
					for to := protocol.ID(1); to <= 3; to++ {
						env.Send(to, "hello")
					}
				},
				receive: func(_ *protocol.Env[string], from protocol.ID, _ string) { d.at("%d to %d", from, id) },
			}})
			h.run()
		}
		time.Sleep(2 * time.Second)
		want := []string{
			"1.005s 1 to 2", "1.005s 1 to 3", "1.005s 2 to 1", "1.005s 2 to 3", "1.005s 3 to 1", "1.005s 3 to 2",
			"1s 1 to 1", "1s 2 to 2", "1s 3 to 3",
		}
		if got := slices.Sorted(slices.Values(d.all())); !slices.Equal(got, want) {
			w.Errorf("got %q, want %q", got, want)
		}
	})
}
