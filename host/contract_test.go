package host_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/foresay/foresay/host"
	"github.com/foresay/foresay/protocol"
)

// handDisk is a Memory whose commits are durable when the test says so.
type handDisk struct {
	*host.Memory
	mu   sync.Mutex
	wait []func(error)
}

func (d *handDisk) Commit(ops []host.Op, done func(error)) {
	d.Memory.Commit(ops, func(error) {})
	d.mu.Lock()
	defer d.mu.Unlock()
	d.wait = append(d.wait, done)
}

// sync makes the first n commits durable, all that wait if n is -1.
func (d *handDisk) sync(n int, err error) int {
	d.mu.Lock()
	if n < 0 {
		n = len(d.wait)
	}
	first := d.wait[:n]
	d.wait = d.wait[n:]
	d.mu.Unlock()
	for _, done := range first {
		done(err)
	}
	return n
}

// puppet does what its application says: one effect per word.
func puppet(d *diary) *node {
	return &node{
		start: func(env *protocol.Env[string], log []protocol.Record[string]) {
			for _, r := range log {
				d.note("record %d %s", r.Index, r.Msg)
			}
			for k, v := range env.Scan(nil, nil) {
				d.note("key %s=%s", k, v)
			}
			d.note("started, next is %d", env.NextIndex())
		},
		receive: func(env *protocol.Env[string], from protocol.ID, msg string) {
			if from != protocol.App {
				d.note("%d says %s", from, msg)
				return
			}
			for _, word := range strings.Fields(msg) {
				op, arg, _ := strings.Cut(word, ":")
				switch op {
				case "append":
					env.Append(arg)
				case "put":
					env.Put([]byte(arg), []byte("of "+arg))
				case "get":
					v, ok := env.Get([]byte(arg))
					env.SendAhead(protocol.App, fmt.Sprintf("%s=%s,%v", arg, v, ok))
				case "delete":
					env.Delete([]byte(arg))
				case "truncate":
					env.Truncate(env.NextIndex())
				case "send":
					env.Send(protocol.App, arg)
				case "unhurried":
					env.SendUnhurried(protocol.App, arg)
				case "ahead":
					env.SendAhead(protocol.App, arg)
				case "self":
					env.Send(1, arg)
				case "panic":
					panic(arg)
				}
			}
		},
		broken: func(_ *protocol.Env[string], from protocol.ID) { d.note("%d broken", from) },
	}
}

// puppeteer runs a puppet, and returns a function that tells it what to do, and compares what is
// noted meanwhile.
func (w *world) puppeteer(disk host.Disk, d *diary) func(what string, want ...string) {
	h := w.host(w.config(1))
	n := h.add(host.Spec[string]{ID: 1, Node: puppet(d), Disk: disk, App: func(msg string) { d.note("%s", msg) }})
	h.run()
	return func(what string, want ...string) {
		w.Helper()
		if what != "" {
			if err := n.Deliver(w.Context(), what); err != nil {
				w.Fatal(err)
			}
		}
		synctest.Wait()
		if got := d.all(); !slices.Equal(got, want) {
			w.Errorf("%s: got %q, want %q", what, got, want)
		}
		d.notes = nil
	}
}

func TestSendsWaitForTheDisk(t *testing.T) {
	inWorld(t, func(w *world) {
		disk := &handDisk{Memory: host.NewMemory()}
		do := w.puppeteer(disk, newDiary())
		do("", "started, next is 1")
		do("send:a ahead:b self:c", "a", "b", "1 says c")
		do("send:d append:x ahead:e", "e") // d waits, though it was sent before the record was written
		do("send:f self:g ahead:h", "h")   // as all that comes later does
		do("put:k get:k send:i ahead:j", "k=of k,true", "j")
		do("get:k get:l", "k=of k,true", "l=,false") // not durable, but read
		disk.sync(1, nil)
		do("", "d", "f", "1 says g")
		do("send:m")
		disk.sync(1, nil)
		do("", "i", "m")
		do("send:n", "n")
		do("append:y append:z delete:k get:k send:o", "k=,false")
		disk.sync(-1, nil)
		do("", "o")
		if got := disk.NextIndex(); got != 4 {
			w.Errorf("the next record is %d, want 4", got)
		}
	})
}

// patientDisk is a handDisk that notes how it is given commits.
type patientDisk struct {
	*handDisk
	d *diary
}

func (d patientDisk) Commit(ops []host.Op, done func(error)) {
	d.d.note("commit")
	d.handDisk.Commit(ops, done)
}

func (d patientDisk) CommitUnhurried(ops []host.Op, done func(error)) {
	d.d.note("commit unhurried")
	d.handDisk.Commit(ops, done)
}

func (d patientDisk) Hurry() { d.d.note("hurry") }

// A commit may be put off until somebody waits for it, and no longer. What is sent waits for the
// disk either way, in order.
func TestUnhurriedSends(t *testing.T) {
	inWorld(t, func(w *world) {
		d := newDiary()
		disk := patientDisk{&handDisk{Memory: host.NewMemory()}, d}
		do := w.puppeteer(disk, d)
		do("", "started, next is 1")
		do("unhurried:a", "a") // nothing was written
		do("put:k unhurried:b", "commit unhurried")
		do("unhurried:c") // waits with it, and does not hurry
		do("send:d", "hurry")
		do("send:e") // that was said before
		disk.sync(-1, nil)
		do("", "b", "c", "d", "e")
		do("put:k unhurried:f", "commit unhurried")
		do("put:l", "commit") // nothing was said of it
		do("send:g")          // and it takes the one before along
		disk.sync(1, nil)
		do("", "f")
		disk.sync(1, nil)
		do("", "g")
		do("put:k unhurried:h send:i", "commit")
		do("unhurried:j ahead:l", "l")
		disk.sync(-1, nil)
		do("", "h", "i", "j")
		do("put:k unhurried:m", "commit unhurried")
		disk.sync(-1, nil)
		do("send:n", "m", "n") // it is durable: nothing to hurry
	})
}

// Calls of one round are like others: each sees what those before it wrote, and what became durable
// meanwhile leaves in order.
func TestCallsOfOneRound(t *testing.T) {
	inWorld(t, func(w *world) {
		disk := &handDisk{Memory: host.NewMemory()}
		d := newDiary()
		p := puppet(newDiary())
		inner := p.receive
		p.receive = func(env *protocol.Env[string], from protocol.ID, msg string) {
			if msg == "sync" {
				disk.sync(-1, nil)
				env.Send(protocol.App, "after the sync")
				return
			}
			inner(env, from, msg)
		}
		h := w.host(w.config(1))
		n := h.add(host.Spec[string]{ID: 1, Node: p, Disk: disk, App: func(msg string) { d.note("%s", msg) }})
		for _, msg := range []string{"put:k send:written", "get:k", "delete:k", "get:k", "sync"} {
			if err := n.Deliver(w.Context(), msg); err != nil {
				w.Fatal(err)
			}
		}
		h.run()
		synctest.Wait()
		if got, want := d.all(), []string{"k=of k,true", "k=,false", "written", "after the sync"}; !slices.Equal(got, want) {
			w.Errorf("got %q, want %q", got, want)
		}
	})
}

func TestRestartWithTheDisk(t *testing.T) {
	inWorld(t, func(w *world) {
		disk := host.NewMemory()
		d := newDiary()
		for _, c := range []struct {
			do   []string
			want []string
		}{
			{[]string{"append:first", "append:b append:third put:k", "append:fourth put:l"}, []string{"started, next is 1"}},
			{[]string{"truncate", "append:fifth delete:k"}, []string{"record 1 first", "record 2 b", "record 3 third",
				"record 4 fourth", "key k=of k", "key l=of l", "started, next is 5"}},
			{[]string{"truncate"}, []string{"record 5 fifth", "key l=of l", "started, next is 6"}},
			{nil, []string{"key l=of l", "started, next is 6"}},
		} {
			cfg := w.config(1)
			h := w.host(cfg)
			n := h.add(host.Spec[string]{ID: 1, Node: puppet(d), Disk: disk})
			if n.Disk() != disk.Identity() {
				w.Errorf("the node's disk is %s, want %s", n.Disk(), disk.Identity())
			}
			h.run()
			for _, what := range c.do {
				if err := n.Deliver(w.Context(), what); err != nil {
					w.Fatal(err)
				}
			}
			synctest.Wait()
			if err := h.end(); err != nil {
				w.Fatal(err)
			}
			if got := d.all(); !slices.Equal(got, c.want) {
				w.Errorf("got %q, want %q", got, c.want)
			}
			d.notes = nil
		}
	})
}

func TestFailures(t *testing.T) {
	for name, c := range map[string]struct {
		do   string
		fail func(d *handDisk)
		want string // how Run's error begins
	}{
		"panic": {do: "append:x send:no panic:ouch", want: "host: node 1 of group 0: panic: ouch\n"},
		"disk": {do: "append:x send:no", fail: func(d *handDisk) {
			d.sync(1, errors.New("fire"))
		}, want: "host: node 1 of group 0: disk: fire"},
		"record of no type": {do: "append:no_message send:no",
			want: "host: node 1 of group 0: record 1: this is no message"},
		"message of no type": {do: "to", want: "host: node 1 of group 0: message to 2: this is no message"},
		"truncate": {do: "beyond", want: "host: node 1 of group 0: panic: protocol: truncate before 9, beyond " +
			"the log's end at 1\n"},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				disk := &handDisk{Memory: host.NewMemory()}
				d := newDiary()
				cfg := w.config(1)
				h := w.host(cfg, 1, 2)
				p := puppet(newDiary())
				inner := p.receive
				p.receive = func(env *protocol.Env[string], from protocol.ID, msg string) {
					switch msg {
					case "append:no_message send:no":
						env.Append("no message")
						env.Send(protocol.App, "no")
					case "to":
						env.Send(2, "no message")
					case "beyond":
						env.Truncate(9)
					default:
						inner(env, from, msg)
					}
				}
				n := h.add(host.Spec[string]{ID: 1, Node: p, Disk: disk, App: func(msg string) { d.note("%s", msg) }})
				other := h.add(host.Spec[string]{ID: 1, Group: 7, Node: puppet(newDiary()), App: func(msg string) {
					d.note("%s", msg)
				}})
				ended := make(chan error, 1)
				go func() { ended <- h.Run(w.Context()) }()
				if err := n.Deliver(w.Context(), c.do); err != nil {
					w.Fatal(err)
				}
				synctest.Wait()
				if c.fail != nil {
					c.fail(disk)
				}
				if err := <-ended; err == nil || !strings.HasPrefix(err.Error(), c.want) {
					w.Errorf("got %v, want %q", err, c.want)
				}
				if got := d.all(); len(got) > 0 {
					w.Errorf("%q left after the failure", got)
				}
				if err := n.Deliver(w.Context(), "send:late"); !errors.Is(err, host.ErrStopped) {
					w.Errorf("a later message got %v", err)
				}
				if err := other.TryDeliver("send:late"); !errors.Is(err, host.ErrStopped) {
					w.Errorf("a later message to another node got %v", err)
				}
			})
		})
	}
}

// A host that stops waits for the disk, and sends what waited for it.
func TestGracefulStop(t *testing.T) {
	inWorld(t, func(w *world) {
		disk := &handDisk{Memory: host.NewMemory()}
		d, far := newDiary(), newDiary()
		b := w.host(w.config(2), 1)
		b.add(host.Spec[string]{ID: 2, Node: puppet(far)})
		b.run()
		a := w.host(w.config(1), 2)
		p := puppet(d)
		p.receive = func(env *protocol.Env[string], _ protocol.ID, msg string) {
			env.Append(msg)
			env.Send(protocol.App, msg)
			env.Send(2, msg)
		}
		n := a.add(host.Spec[string]{ID: 1, Node: p, Disk: disk, App: func(msg string) { d.note("%s", msg) }})
		a.run()
		time.Sleep(time.Second)
		for _, msg := range []string{"one", "two"} {
			if err := n.Deliver(w.Context(), msg); err != nil {
				w.Fatal(err)
			}
			synctest.Wait()
		}
		go func() {
			time.Sleep(2 * time.Second)
			disk.sync(-1, nil)
		}()
		start := time.Now()
		if err := a.end(); err != nil {
			w.Error(err)
		}
		if took := time.Since(start); took < 2*time.Second || took > 2100*time.Millisecond {
			w.Errorf("the stop took %v", took)
		}
		time.Sleep(time.Second)
		if got, want := d.all(), []string{"started, next is 1", "one", "two"}; !slices.Equal(got, want) {
			w.Errorf("got %q, want %q", got, want)
		}
		if got, want := far.all(), []string{"started, next is 1", "1 says one", "1 says two"}; !slices.Equal(got, want) {
			w.Errorf("got %q, want %q", got, want)
		}
	})
}

func TestStopWithADeadDisk(t *testing.T) {
	inWorld(t, func(w *world) {
		cfg := w.config(1)
		cfg.StopTimeout = time.Minute
		h := w.host(cfg)
		n := h.add(host.Spec[string]{ID: 1, Node: puppet(newDiary()), Disk: &handDisk{Memory: host.NewMemory()}})
		h.run()
		if err := n.Deliver(w.Context(), "append:x"); err != nil {
			w.Fatal(err)
		}
		synctest.Wait()
		start := time.Now()
		err := h.end()
		const want = "host: node 1 of group 0: stop: what it wrote was not durable within 1m0s"
		if took := time.Since(start); took != time.Minute || err == nil || err.Error() != want {
			w.Errorf("got %v after %v, want %s", err, took, want)
		}
	})
}

// oddity is a node whose invariant breaks with the third message.
type oddity struct {
	*node
	n int
}

func (o *oddity) Receive(*protocol.Env[string], protocol.ID, string) { o.n++ }

func (o *oddity) Check() error {
	if o.n > 2 {
		return fmt.Errorf("n is %d", o.n)
	}
	return nil
}

func TestCheck(t *testing.T) {
	for _, check := range []bool{false, true} {
		inWorld(t, func(w *world) {
			cfg := w.config(1)
			cfg.Check = check
			h := w.host(cfg)
			n := h.add(host.Spec[string]{ID: 1, Node: &oddity{node: echo()}})
			h.run()
			for range 3 {
				if err := n.Deliver(w.Context(), "x"); err != nil {
					w.Fatal(err)
				}
				synctest.Wait()
			}
			err := h.end()
			if got, want := fmt.Sprint(err), "host: node 1 of group 0: an invariant is broken: n is 3"; check != (got == want) ||
				!check && err != nil {
				w.Errorf("check %v: got %v", check, err)
			}
		})
	}
}

func TestAddRefuses(t *testing.T) {
	inWorld(t, func(w *world) {
		h := w.host(w.config(1))
		bad := host.NewMemory()
		bad.Commit([]host.Op{{Kind: protocol.KindAppend, Index: 1, Value: []byte("unreadable")}}, func(error) {})
		h.add(host.Spec[string]{ID: 1, Node: echo()})
		for _, c := range []struct {
			spec host.Spec[string]
			want string
		}{
			{host.Spec[string]{Node: echo(), Codec: texts{}}, "host: add node 0 of group 0: the ID 0 is no node's"},
			{host.Spec[string]{ID: 2, Codec: texts{}}, "host: add node 2 of group 0: no Spec.Node"},
			{host.Spec[string]{ID: 2, Node: echo()}, "host: add node 2 of group 0: no Spec.Codec"},
			{host.Spec[string]{ID: 2, Node: echo(), Codec: texts{}, QueueHeld: -1},
				"host: add node 2 of group 0: the field QueueHeld is -1, less than 0"},
			{host.Spec[string]{ID: 1, Node: echo(), Codec: texts{}},
				"host: add node 1 of group 0: transport: open: node 1 of group 0 is open already"},
			{host.Spec[string]{ID: 3, Node: echo(), Codec: texts{}, Disk: bad},
				"host: add node 3 of group 0: record 1: this cannot be read"},
		} {
			if _, err := host.Add(h.Host, c.spec); err == nil || err.Error() != c.want {
				w.Errorf("got %v, want %s", err, c.want)
			}
		}
		h.run()
		if err := h.end(); err != nil {
			w.Error(err)
		}
		if _, err := host.Add(h.Host, host.Spec[string]{ID: 9, Node: echo(), Codec: texts{}}); !errors.Is(err,
			host.ErrStopped) {
			w.Errorf("a stopped host took a node: %v", err)
		}
	})
}
