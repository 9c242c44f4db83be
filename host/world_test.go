package host_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/foresay/foresay/host"
	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/transport"
	"github.com/foresay/foresay/wan"
	"github.com/foresay/foresay/wan/shape"
)

// texts is the codec of nodes whose messages are strings.
type texts struct{}

func (texts) Append(buf []byte, msg string) ([]byte, error) {
	if msg == "no message" {
		return buf, errors.New("this is no message")
	}
	return append(buf, msg...), nil
}

// AppendShared leaves all but a text's first and last byte where it is.
func (c texts) AppendShared(buf []byte, refs []protocol.Ref, msg string) ([]byte, []protocol.Ref, error) {
	if _, err := c.Append(nil, msg); err != nil || len(msg) < 3 {
		buf, err = c.Append(buf, msg)
		return buf, refs, err
	}
	last := len(msg) - 1
	buf = append(buf, msg[0])
	refs = append(refs, protocol.Ref{At: len(buf), Data: []byte(msg[1:last])})
	return append(buf, msg[last]), refs, nil
}

func (texts) Decode(b []byte) (string, error) {
	switch string(b) {
	case "unreadable":
		return "", errors.New("this cannot be read")
	case "panic":
		panic("a codec must not")
	}
	return string(b), nil
}

// node is a protocol.Linked whose methods are functions; nil ones do nothing.
type node struct {
	start   func(env *protocol.Env[string], log []protocol.Record[string])
	receive func(env *protocol.Env[string], from protocol.ID, msg string)
	expire  func(env *protocol.Env[string], t protocol.Timer)
	broken  func(env *protocol.Env[string], from protocol.ID)
}

func (n *node) Start(env *protocol.Env[string], log []protocol.Record[string]) {
	if n.start != nil {
		n.start(env, log)
	}
}

func (n *node) Receive(env *protocol.Env[string], from protocol.ID, msg string) {
	if n.receive != nil {
		n.receive(env, from, msg)
	}
}

func (n *node) Expire(env *protocol.Env[string], t protocol.Timer) {
	if n.expire != nil {
		n.expire(env, t)
	}
}

func (n *node) Broken(env *protocol.Env[string], from protocol.ID) {
	if n.broken != nil {
		n.broken(env, from)
	}
}

// diary collects what nodes say, with the time since it was made.
type diary struct {
	start time.Time
	mu    sync.Mutex
	notes []string
}

func newDiary() *diary { return &diary{start: time.Now()} }

func (d *diary) note(format string, args ...any) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.notes = append(d.notes, fmt.Sprintf(format, args...))
}

// at is note, with the time before it.
func (d *diary) at(format string, args ...any) {
	d.note("%v %s", time.Since(d.start), fmt.Sprintf(format, args...))
}

func (d *diary) all() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return append([]string(nil), d.notes...)
}

// world is hosts at the sites of a network in memory. Member 1 is at a, 2 at b, 3 at c.
type world struct {
	*testing.T
	net *shape.Network
}

var sites = []wan.Site{"a", "b", "c", "client"}

// inWorld runs a test in a bubble, with 10 ms between any two sites.
func inWorld(t *testing.T, test func(w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := &world{t, shape.NewNetwork(wan.Uniform(10*time.Millisecond, sites...), 1)}
		test(w)
	})
}

// running is a host that runs.
type running struct {
	*host.Host
	w    *world
	stop context.CancelFunc
	done chan error
}

// config is that of a member, which listens at its site, or of a client host, if id is 0.
func (w *world) config(id protocol.ID) host.Config {
	w.Helper()
	site := sites[3]
	cfg := host.Config{Seed: 1}
	cfg.Network = transport.Config{Cluster: "test", Insecure: true}
	if id != 0 {
		site = sites[id-1]
		l, err := w.net.Listen(site)
		if err != nil {
			w.Fatal(err)
		}
		cfg.Listener = l
		cfg.Network.IDs = []protocol.ID{id}
	}
	cfg.Network.Dial = w.net.DialContext(site)
	return cfg
}

func (w *world) host(cfg host.Config, members ...protocol.ID) *running {
	w.Helper()
	h, err := host.New(cfg)
	if err != nil {
		w.Fatal(err)
	}
	for _, id := range members {
		if err := h.SetPeer(id, string(sites[id-1])+":1"); err != nil {
			w.Fatal(err)
		}
	}
	return &running{Host: h, w: w, done: make(chan error, 1)}
}

// run starts the host. It is stopped with the test, if not before, and must then end without an
// error.
func (r *running) run() {
	ctx, stop := context.WithCancel(context.Background())
	r.stop = stop
	go func() { r.done <- r.Run(ctx) }()
	r.w.Cleanup(func() {
		if err := r.end(); err != nil {
			r.w.Error(err)
		}
	})
}

// end stops the host, if it was not, and returns what Run did.
func (r *running) end() error {
	r.stop()
	err := <-r.done
	r.done <- nil
	return err
}

func (r *running) add(spec host.Spec[string]) *host.Node[string] {
	r.w.Helper()
	spec.Codec = texts{}
	n, err := host.Add(r.Host, spec)
	if err != nil {
		r.w.Fatal(err)
	}
	return n
}

// echo answers with what it gets.
func echo() *node {
	return &node{receive: func(env *protocol.Env[string], from protocol.ID, msg string) { env.Send(from, msg) }}
}

// relay hands what its application says to a member, and what comes back to the application.
func relay(to protocol.ID) *node {
	return &node{receive: func(env *protocol.Env[string], from protocol.ID, msg string) {
		if from == protocol.App {
			env.Send(to, msg)
		} else {
			env.Send(protocol.App, msg)
		}
	}}
}
