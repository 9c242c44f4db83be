package transport_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/transport"
)

func TestMessagesGoThereAndBack(t *testing.T) {
	inWorld(t, func(w *world) {
		a, b := w.peer(1, transport.Config{}, 1, 2), w.peer(2, transport.Config{}, 1, 2)
		c := w.peer(70000, transport.Config{}, 1, 2)
		time.Sleep(time.Second)
		a.send(2, "one", "two")
		time.Sleep(time.Millisecond)
		c.send(1, "three")
		c.send(2, "four")
		time.Sleep(time.Second)
		a.wants("70000: three")
		b.wants("1: one, 1: two, 70000: four")
		a.send(70000, "five")
		time.Sleep(time.Millisecond)
		b.send(1, "six")
		b.send(70000, "seven")
		a.send(1, "to itself")
		time.Sleep(time.Second)
		a.wants("1: to itself, 2: six")
		c.wants("1: five, 2: seven")
	})
}

// What is sent within a host is handed over at the flush, all messages for a node at once and in
// their order, and not to a node that was closed meanwhile.
func TestHandOverWithinAHost(t *testing.T) {
	inWorld(t, func(w *world) {
		a := w.peer(1, transport.Config{})
		to := map[protocol.ID]*localSink{5: {}, 6: {}, 7: {}}
		ports := map[protocol.ID]*transport.Port{}
		for id, sink := range to {
			var err error
			if ports[id], err = a.Open(transport.Addr{ID: id}, sink); err != nil {
				w.Fatal(err)
			}
		}
		for round, want := range []string{"[one two six]", "[one two six] [one two six]"} {
			payload := []byte("one")
			a.port.Send(5, payload)
			a.port.Send(6, []byte("three"))
			copy(payload, "???") // it is the caller's again
			a.port.Send(5, []byte("two"))
			a.port.Send(7, []byte("four"))
			a.port.Send(5, []byte("six"))
			if round == 0 && to[5].notes != nil {
				w.Errorf("before the flush %q was handed over", to[5].notes)
			}
			ports[7].Close()
			a.port.Flush()
			if got := strings.Join(to[5].notes, " "); got != want {
				w.Errorf("5 got %s, want %s", got, want)
			}
		}
		if got := strings.Join(to[6].notes, " "); got != "[three] [three]" || to[7].notes != nil {
			w.Errorf("6 got %s and 7, which was closed, %q", got, to[7].notes)
		}
	})
}

// localSink notes what is handed over at once.
type localSink struct{ notes []string }

func (s *localSink) Receive(msgs []transport.Inbound) {
	var all []string
	for _, m := range msgs {
		all = append(all, string(m.Payload))
	}
	s.notes = append(s.notes, fmt.Sprint(all))
}

func (s *localSink) Broken(protocol.ID) {}

// A connection that breaks while nothing is on its way loses nothing, and nobody is told.
func TestResetOfAnIdleConnection(t *testing.T) {
	inWorld(t, func(w *world) {
		a, b := w.peer(1, transport.Config{}, 2), w.peer(2, transport.Config{}, 1)
		a.send(2, "one")
		time.Sleep(time.Second)
		w.net.Reset("a", "b")
		time.Sleep(time.Second)
		a.send(2, "two")
		time.Sleep(time.Second)
		b.wants("1: one, 1: two")
		if got := a.Stats().Peers[0].Connects; got != 2 {
			w.Errorf("connected %d times, want 2", got)
		}
	})
}

func TestResetWithMessagesOnTheirWay(t *testing.T) {
	inWorld(t, func(w *world) {
		a, b := w.peer(1, transport.Config{}, 2), w.peer(2, transport.Config{})
		c := w.peer(70000, transport.Config{}, 2)
		a.send(2, "one")
		c.send(2, "uno")
		time.Sleep(time.Second)
		b.send(70000, "first")
		time.Sleep(time.Second)
		a.send(2, "two")
		c.send(2, "due")
		b.send(70000, "second")
		time.Sleep(time.Millisecond)
		w.net.Reset("a", "b")
		w.net.Reset("client", "b")
		time.Sleep(time.Second)
		a.send(2, "three")
		c.send(2, "tre")
		time.Sleep(time.Second)
		b.send(70000, "third")
		time.Sleep(time.Second)
		// What of two senders comes at one moment has no order.
		notes := strings.Split(b.got(), ", ")
		for from, want := range map[string]string{"1": "1: one, 1 broken, 1: three",
			"70000": "70000: uno, 70000 broken, 70000: tre"} {
			of := slices.DeleteFunc(slices.Clone(notes), func(note string) bool {
				return !strings.HasPrefix(note, from+":") && !strings.HasPrefix(note, from+" ")
			})
			if got := strings.Join(of, ", "); got != want {
				w.Errorf("b got %q, want %q", got, want)
			}
		}
		c.wants("2: first, 2 broken, 2: third")
	})
}

// The sender is a new process: what its predecessor sent last may be lost.
func TestNewSenderUnderAnOldID(t *testing.T) {
	inWorld(t, func(w *world) {
		a, b := w.peer(1, transport.Config{}, 2), w.peer(2, transport.Config{})
		a.send(2, "one")
		time.Sleep(time.Second)
		if err := a.end(); err != nil {
			w.Fatal(err)
		}
		a = w.peer(1, transport.Config{}, 2)
		a.send(2, "two")
		time.Sleep(time.Second)
		b.wants("1: one, 1 broken, 1: two")
	})
}

// What is sent to a client that is gone is lost, and its successor is told.
func TestClientThatComesBack(t *testing.T) {
	inWorld(t, func(w *world) {
		b := w.peer(2, transport.Config{})
		c := w.peer(70000, transport.Config{}, 2)
		c.send(2, "one")
		time.Sleep(time.Second)
		if err := c.end(); err != nil {
			w.Fatal(err)
		}
		time.Sleep(time.Second)
		b.send(70000, "lost")
		c = w.peer(70000, transport.Config{}, 2)
		c.send(2, "two")
		time.Sleep(time.Second)
		b.wants("70000: one, 70000 broken, 70000: two")
		b.send(70000, "three")
		time.Sleep(time.Second)
		c.wants("2 broken, 2: three")
		if got := b.Stats().Unroutable; got != 1 {
			w.Errorf("%d messages unroutable, want 1", got)
		}
	})
}

// A second process has the same ID while the first is still there: what it sent last never comes
// after the second's.
func TestTwoSendersUnderOneID(t *testing.T) {
	for _, id := range []protocol.ID{1, 70000} {
		inWorld(t, func(w *world) {
			b := w.peer(2, transport.Config{})
			first := w.peer(id, transport.Config{}, 2)
			first.send(2, "one")
			time.Sleep(time.Second)
			second := w.peer(id, transport.Config{}, 2)
			second.send(2, "two")
			time.Sleep(time.Second)
			b.wants(fmt.Sprintf("%d: one, %[1]d broken, %[1]d: two", id))
			if got := first.Stats().Peers[0].Connects; got != 2 {
				w.Errorf("the first sender was connected %d times, want 2: its first stream had to end", got)
			}
			if id == 70000 {
				b.send(id, "hello")
				time.Sleep(time.Second)
				first.wants("")
				second.wants("2: hello")
			}
		})
	}
}

// Receivers that did not exist, or were not reachable when messages were sent, are told that these
// were lost.
func TestLossBeforeTheFirstMessage(t *testing.T) {
	inWorld(t, func(w *world) {
		a := w.peer(1, transport.Config{MaxAge: 10 * time.Millisecond}, 2)
		a.send(2, "one")
		a.send(3, "nowhere")
		time.Sleep(5 * time.Second)
		b, c := w.peer(2, transport.Config{}), w.peer(3, transport.Config{})
		if err := a.SetPeer(3, place(3)); err != nil {
			w.Fatal(err)
		}
		time.Sleep(5 * time.Second)
		a.send(2, "two")
		a.send(3, "three")
		time.Sleep(time.Second)
		b.wants("1 broken, 1: two")
		c.wants("1 broken, 1: three")
		s := a.Stats()
		if s.Peers[0].Dropped != 1 || s.Unroutable != 1 {
			w.Errorf("%d messages dropped and %d unroutable, want 1 and 1", s.Peers[0].Dropped, s.Unroutable)
		}
	})
}

// TestMemberThatComesBack: a member that was away is sent to as soon as it is heard, however long
// the pause that was left, and gets nothing that is older than may be.
func TestMemberThatComesBack(t *testing.T) {
	for away := 20 * time.Second; away < 23*time.Second; away += 290 * time.Millisecond {
		inWorld(t, func(w *world) {
			const age = 300 * time.Millisecond
			a := w.peer(1, transport.Config{MaxAge: age}, 2)
			began := time.Now()
			for time.Since(began) < away {
				a.send(2, time.Since(began).String())
				time.Sleep(age / 3)
			}
			b := w.peer(2, transport.Config{}, 1)
			b.send(1, "I am back")
			back := time.Since(began)
			for len(a.got()) == 0 {
				time.Sleep(time.Millisecond)
			}
			a.send(2, "welcome")
			time.Sleep(100 * time.Millisecond)
			got := strings.Split(b.got(), ", ")
			if got[len(got)-1] != "1: welcome" {
				t.Fatalf("away for %v: 100 ms after it was heard, and answered, the member has got %q", away, got)
			}
			for _, m := range got[:len(got)-1] {
				text, is := strings.CutPrefix(m, "1: ")
				if !is {
					continue // that some were lost
				}
				sent, err := time.ParseDuration(text)
				// The handshake has taken some round trips, and messages that travel together are
				// as old as the first.
				if err != nil || sent < back-age {
					t.Errorf("away for %v: the member was back at %v, and gets what was sent at %s (%v)", away, back, text, err)
				}
			}
		})
	}
}

func TestFullQueueLosesTheNewest(t *testing.T) {
	inWorld(t, func(w *world) {
		a, b := w.peer(1, transport.Config{QueueMessages: 3}, 2), w.peer(2, transport.Config{})
		time.Sleep(time.Second)
		for i := range 5 {
			a.port.Send(2, fmt.Append(nil, i))
		}
		a.port.Flush()
		time.Sleep(time.Second)
		a.send(2, "later")
		time.Sleep(time.Second)
		b.wants("1: 0, 1: 1, 1: 2, 1 broken, 1: later")
		if got := a.Stats().Peers[0].Dropped; got != 2 {
			w.Errorf("%d messages dropped, want 2", got)
		}
	})
}

func TestQueueOfBytes(t *testing.T) {
	inWorld(t, func(w *world) {
		a, b := w.peer(1, transport.Config{QueueBytes: 1000, MaxMessageBytes: 5000}, 2),
			w.peer(2, transport.Config{MaxMessageBytes: 5000})
		time.Sleep(time.Second)
		a.send(2, strings.Repeat("x", 5000)) // alone
		time.Sleep(time.Second)
		if got := len(b.got()); got != len("1: ")+5000 {
			w.Errorf("got %d bytes", got)
		}
		a.send(2, strings.Repeat("x", 900), strings.Repeat("y", 900), "z")
		time.Sleep(time.Second)
		b.wants("1: " + strings.Repeat("x", 900) + ", 1 broken, 1: z")
		a.send(2, strings.Repeat("x", 5001), "small")
		time.Sleep(time.Second)
		b.wants("1 broken, 1: small")
		if s := a.Stats(); s.Oversized != 1 || s.Peers[0].Dropped != 2 {
			w.Errorf("%d too large, %d dropped, want 1 and 2", s.Oversized, s.Peers[0].Dropped)
		}
	})
}

// One member does not answer. What is sent to it is lost beyond its queue, and the others get
// everything.
func TestSlowPeer(t *testing.T) {
	inWorld(t, func(w *world) {
		a := w.peer(1, transport.Config{QueueMessages: 50}, 2, 3)
		b, c := w.peer(2, transport.Config{}), w.peer(3, transport.Config{})
		time.Sleep(time.Second)
		w.net.SetDown("a", "b", true)
		block := strings.Repeat("x", 100<<10)
		for i := range 200 {
			a.send(2, fmt.Sprint(i, " ", block))
			a.send(3, fmt.Sprint(i))
			time.Sleep(time.Millisecond)
		}
		time.Sleep(time.Second)
		if got := strings.Count(c.got(), ": "); got != 200 {
			w.Errorf("the other member got %d of 200 messages", got)
		}
		s := a.Stats().Peers[0]
		if s.QueuedMessages > 50 || s.Dropped == 0 || s.Dropped+s.SentMessages+uint64(s.QueuedMessages) < 199 {
			w.Errorf("queued %d, dropped %d, sent %d", s.QueuedMessages, s.Dropped, s.SentMessages)
		}
		w.net.SetDown("a", "b", false)
		time.Sleep(5 * time.Second)
		a.send(2, "last")
		time.Sleep(time.Second)
		next, broken := 0, false
		for note := range strings.SplitSeq(b.got(), ", ") {
			switch {
			case note == "1 broken":
				broken = true
			case note == "1: last":
				next = -1
			default:
				var n int
				if _, err := fmt.Sscanf(note, "1: %d ", &n); err != nil || n < next || n > next && !broken {
					w.Fatalf("%.20q after message %d, broken %v, %v", note, next-1, broken, err)
				}
				next, broken = n+1, false
			}
		}
		if next != -1 {
			w.Error("the last message did not arrive")
		}
	})
}

// A silent connection is given up, and messages flow again after the link is back.
func TestBlackHole(t *testing.T) {
	inWorld(t, func(w *world) {
		a, b := w.peer(1, transport.Config{}, 2), w.peer(2, transport.Config{})
		time.Sleep(time.Second)
		w.net.SetDown("a", "b", true)
		a.send(2, "lost")
		time.Sleep(30 * time.Second)
		s := a.Stats().Peers[0]
		if s.State == transport.Up || s.Err == nil {
			w.Errorf("the state is %s, %v", s.State, s.Err)
		}
		w.net.SetDown("a", "b", false)
		time.Sleep(10 * time.Second)
		a.send(2, "here")
		time.Sleep(time.Second)
		if got := b.got(); !strings.HasSuffix(got, "1: here") || strings.Contains(got, "lost") != strings.HasPrefix(got,
			"1: lost") {
			w.Errorf("got %q", got)
		}
	})
}

// Connections are reset again and again while messages flow in both directions: none arrives twice
// or out of order, and whoever misses one was told.
func TestRandomResets(t *testing.T) {
	var lost, told int
	for seed := range uint64(20) {
		inWorld(t, func(w *world) {
			rnd := rand.New(rand.NewPCG(seed, 0))
			a, b := w.peer(1, transport.Config{QueueMessages: 40}, 2), w.peer(2, transport.Config{QueueMessages: 40}, 1)
			c := w.peer(70000, transport.Config{QueueMessages: 40}, 2)
			for i := range 400 {
				a.port.Send(2, fmt.Append(nil, i))
				b.port.Send(1, fmt.Append(nil, i))
				c.port.Send(2, fmt.Append(nil, i))
				b.port.Send(70000, fmt.Append(nil, i))
				if rnd.IntN(4) == 0 {
					a.port.Flush()
					b.port.Flush()
					c.port.Flush()
					time.Sleep(time.Duration(rnd.IntN(5000)) * time.Microsecond)
				}
				switch rnd.IntN(60) {
				case 0:
					w.net.Reset("a", "b")
				case 1:
					w.net.Reset("client", "b")
				case 2:
					time.Sleep(time.Second)
				}
			}
			time.Sleep(10 * time.Second)
			for _, p := range []*peer{a, b, c} {
				synctest.Wait()
				p.send(map[*peer]protocol.ID{a: 2, b: 1, c: 2}[p], "400")
			}
			time.Sleep(time.Second)
			b.send(70000, "400")
			time.Sleep(time.Second)
			for _, r := range []struct {
				at   *peer
				from protocol.ID
			}{{a, 2}, {b, 1}, {b, 70000}, {c, 2}} {
				r.at.mu.Lock()
				l, n, err := judge(r.at.notes, r.from, 400)
				r.at.mu.Unlock()
				if err != nil {
					w.Errorf("seed %d: from %d: %v", seed, r.from, err)
				}
				lost, told = lost+l, told+n
			}
		})
	}
	t.Logf("%d messages lost, told %d times", lost, told)
	if lost == 0 || told == 0 {
		t.Errorf("%d messages lost, told %d times: the test shows nothing", lost, told)
	}
}

// judge looks at what a node got from another, which sent the numbers up to last.
func judge(notes []string, from protocol.ID, last int) (lost, told int, err error) {
	next, broken := 0, false
	for _, note := range notes {
		if note == fmt.Sprint(from, " broken") {
			broken = true
			told++
			continue
		}
		text, ok := strings.CutPrefix(note, fmt.Sprint(from, ": "))
		if !ok {
			continue
		}
		var n int
		if _, err := fmt.Sscan(text, &n); err != nil {
			return lost, told, err
		}
		if n < next {
			return lost, told, fmt.Errorf("message %d after %d", n, next-1)
		}
		if n > next && !broken {
			return lost, told, fmt.Errorf("message %d after %d, and nobody said that others are lost", n, next-1)
		}
		lost += n - next
		next, broken = n+1, false
	}
	if next != last+1 {
		return lost, told, fmt.Errorf("the last message that came is %d of %d", next-1, last)
	}
	return lost, told, nil
}
