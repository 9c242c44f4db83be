package talk

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/foresay/foresay/internal/msgtext"
	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/sim"
	"github.com/foresay/foresay/sim/deploy"
	"github.com/foresay/foresay/sim/transcript"
	"github.com/foresay/foresay/store"
	"github.com/foresay/foresay/store/storedeploy"
	"github.com/foresay/foresay/store/storetest"
	"github.com/foresay/foresay/wan"
)

// An Own writes values of a protocol's own as text, ok is false for all others. all writes what is
// within them. nil: there are none.
type Own func(all msgtext.Format, v any) (text string, ok bool)

// Play plays a protocol's scenarios, those of testdata/scenarios.
func Play(t *testing.T, p store.Protocol, format Own) {
	transcript.Play(t, "testdata/scenarios", func() transcript.Family[store.Message] { return New(p, format) })
}

// New returns a protocol's stores, for a scenario.
func New(p store.Protocol, format Own) transcript.Family[store.Message] {
	return &talk{
		protocol: p, own: format, held: map[protocol.ID]map[store.Key]store.Value{}, buffers: map[protocol.ID]*store.Buffer{},
		begun: map[protocol.ID]uint64{}, names: map[store.Version]string{},
	}
}

// talk is a store in a scenario.
type talk struct {
	protocol store.Protocol
	own      Own
	script   *transcript.Script[store.Message]
	*storedeploy.Store
	layout  store.Layout
	held    map[protocol.ID]map[store.Key]store.Value // by servers, as they have applied it
	buffers map[protocol.ID]*store.Buffer             // of clients' next transactions
	begun   map[protocol.ID]uint64                    // by clients, the Refs of Declares
	names   map[store.Version]string                  // of transactions
}

// Begin is part of transcript.Family, as are Do, Expect, Format and Name.
func (t *talk) Begin(
	script *transcript.Script[store.Message], args []string,
) (*deploy.Deployment[store.Message], error) {
	n := map[string]int{"sites": 3, "shards": 1, "clients": 1}
	trip := 20 * time.Millisecond
	for _, arg := range args {
		name, value, _ := strings.Cut(arg, "=")
		var err error
		switch _, counts := n[name]; {
		case counts:
			n[name], err = strconv.Atoi(value)
		case name == "rtt":
			trip, err = time.ParseDuration(value)
		default:
			err = fmt.Errorf("begin knows no %s", name)
		}
		if err != nil {
			return nil, err
		}
	}
	t.script, t.layout = script, storetest.Coordinated(storedeploy.Layout(n["sites"], n["shards"]), t.protocol)
	script.Hide("Hello", "Welcome", "TimeRequest", "TimeReply")
	var sites []wan.Site
	for _, s := range t.layout.Sites {
		sites = append(sites, wan.Site(s.Name))
	}
	of := storedeploy.Config{Protocol: t.protocol, Layout: t.layout, Wrap: script.Wrap,
		Sim: sim.Config[store.Message]{Seed: 1, WAN: wan.Uniform(trip, sites...)},
		Node: func(c *store.Config) {
			id := c.ID
			c.RoundTrip, c.Applied = 5*trip, func(k store.Key, v store.Value) { t.applied(id, k, v) }
		}}
	for i := range n["clients"] {
		of.Clients = append(of.Clients, sites[i%len(sites)])
	}
	var err error
	if t.Store, err = storedeploy.New(of); err != nil {
		return nil, err
	}
	for _, id := range t.Clients {
		t.buffers[id] = &store.Buffer{}
	}
	return t.Deployment, t.Pass(2 * time.Second)
}

func (t *talk) applied(id protocol.ID, k store.Key, v store.Value) {
	if t.held[id] == nil {
		t.held[id] = map[store.Key]store.Value{}
	}
	t.held[id][k] = v
}

// Do carries out a command.
func (t *talk) Do(command string, args []string) (string, error) {
	if command == "state" {
		return t.state()
	}
	if len(args) < 2 && (command != "commit" || len(args) == 0) {
		return "", fmt.Errorf("want a client and keys, or there is no such command")
	}
	id, err := t.script.ID(args[0])
	if err != nil {
		return "", err
	}
	if t.buffers[id] == nil {
		return "", fmt.Errorf("%s is no client", args[0])
	}
	switch command {
	case "read":
		for _, key := range args[1:] {
			t.read(id, store.Key(key))
		}
		return "", nil
	case "declare":
		t.declare(id, args[1:])
		return "", nil
	case "commit":
		t.commit(id, args[1:])
		return "", nil
	}
	return "", fmt.Errorf("there is no such command")
}

func (t *talk) read(client protocol.ID, key store.Key) {
	t.Call(client, func(n uint64) store.Message {
		return store.Get{Ref: n, Key: key}
	}, func(a deploy.Answer[store.Message]) {
		got := a.Msg.(store.Got)
		if !got.OK {
			t.script.Note(client, fmt.Sprintf("%s cannot be read", key))
			return
		}
		t.buffers[client].Saw(key, got.Value)
		t.script.Note(client, fmt.Sprintf("%s is read: %s", key, t.value(got.Value)))
	})
}

// declare begins a transaction: keys with an = behind them are to be written, others read.
func (t *talk) declare(client protocol.ID, keys []string) {
	var m store.Declare
	for _, key := range slices.Sorted(slices.Values(keys)) {
		if written, ok := strings.CutSuffix(key, "="); ok {
			m.Writes = append(m.Writes, store.Key(written))
		} else {
			m.Reads = append(m.Reads, store.Key(key))
		}
	}
	t.Call(client, func(n uint64) store.Message {
		m.Ref = n
		return m
	}, func(a deploy.Answer[store.Message]) {
		d := a.Msg.(store.Declared)
		if !d.OK {
			t.script.Note(client, "nothing has begun")
			return
		}
		t.begun[client] = d.Ref
		for i, key := range m.Reads {
			t.buffers[client].Saw(key, d.Values[i].Value)
			t.script.Note(client, fmt.Sprintf("%s is read: %s", key, t.value(d.Values[i].Value)))
		}
	})
}

func (t *talk) commit(client protocol.ID, writes []string) {
	b, begun := t.buffers[client], t.begun[client]
	t.buffers[client] = &store.Buffer{}
	delete(t.begun, client)
	for _, w := range writes {
		key, value, _ := strings.Cut(w, "=")
		b.Put(store.Key(key), []byte(value))
	}
	reads, accesses := b.Accesses()
	t.Call(client, func(n uint64) store.Message {
		return store.Submit{Ref: n, Reads: reads, Writes: accesses, Begun: begun}
	}, func(a deploy.Answer[store.Message]) {
		d := a.Msg.(store.Done)
		text := fmt.Sprintf("%s (%s) is %v", t.name(d.Txn.ID), strings.Join(writes, " "), d.Outcome.Verdict)
		if d.Outcome.Verdict == store.Aborted {
			text += ": " + d.Outcome.Reason.String()
		}
		t.script.Note(client, text)
	})
}

func (t *talk) state() (string, error) {
	up, err := t.Statuses()
	var b strings.Builder
	for _, id := range up {
		s := t.Status[id]
		fmt.Fprintf(&b, "%8s: holds %s", t.Name(id), t.holds(id))
		for _, at := range []struct {
			n    int
			what string
		}{{s.Undecided, "undecided"}, {s.Locks, "locked"}, {s.Wanting, "wanting"}, {s.Waiting, "reads waiting"}} {
			if at.n > 0 {
				fmt.Fprintf(&b, ", %d %s", at.n, at.what)
			}
		}
		b.WriteString("\n")
	}
	return b.String(), err
}

func (t *talk) holds(id protocol.ID) string {
	var all []string
	for _, k := range slices.Sorted(maps.Keys(t.held[id])) {
		all = append(all, fmt.Sprintf("%s=%s of %s", k, t.held[id][k].Bytes, t.name(t.held[id][k].Version)))
	}
	return cmp.Or(strings.Join(all, ", "), "nothing")
}

// Expect returns what keeps words from holding.
func (t *talk) Expect(args []string) error {
	up, err := t.Statuses()
	if err != nil {
		return err
	}
	if len(args) == 0 {
		return fmt.Errorf("nothing is expected")
	}
	switch key, value, sets := strings.Cut(args[0], "="); {
	case key == "answered":
		if n := t.Unanswered(); n > 0 {
			return fmt.Errorf("%d calls have no answer", n)
		}
	case key == "idle":
		for _, id := range up {
			if s := t.Status[id]; s.Undecided > 0 || s.Locks > 0 || s.Wanting > 0 {
				return fmt.Errorf("%s has %d undecided transactions, %d locks", t.Name(id), s.Undecided, s.Locks)
			}
		}
	case sets:
		shard := t.layout.ShardOf(store.Key(key))
		for _, id := range up {
			if t.Status[id].Shard != shard {
				continue
			}
			if got := string(t.held[id][store.Key(key)].Bytes); got != value {
				return fmt.Errorf("at %s %s is %q", t.Name(id), key, got)
			}
		}
	default:
		return fmt.Errorf("expect knows no such words")
	}
	return nil
}

// Format writes what all stores have.
func (t *talk) Format(v any) (string, bool) {
	if t.own != nil {
		if text, ok := t.own(t.Format, v); ok {
			return text, true
		}
	}
	switch v := v.(type) {
	case store.Version:
		return t.name(v), true
	case store.Key:
		return string(v), true
	case store.Value:
		return t.value(v), true
	case store.Held:
		if v.Large {
			return "too big", true
		}
		return t.value(v.Value), true
	case store.Read:
		return fmt.Sprintf("%s of %s", v.Key, t.name(v.Version)), true
	case store.Write:
		return fmt.Sprintf("%s=%s", v.Key, v.Bytes), true
	case protocol.ID:
		return t.Name(v), true
	}
	return "", false
}

func (t *talk) value(v store.Value) string {
	if !v.Present {
		return "nothing"
	}
	return fmt.Sprintf("%s of %s", v.Bytes, t.name(v.Version))
}

// name returns a transaction's name.
func (t *talk) name(v store.Version) string {
	if v.IsZero() {
		return "nobody"
	}
	v = t.protocol.Writer(v)
	if t.names[v] == "" {
		t.names[v] = fmt.Sprint("t", len(t.names)+1)
	}
	return t.names[v]
}

// Name returns a for a coordinator, a/0 for a server, and c1 for a client.
func (t *talk) Name(id protocol.ID) string {
	if id >= storedeploy.FirstClient {
		return fmt.Sprint("c", id-storedeploy.FirstClient+1)
	}
	for _, s := range t.layout.Sites {
		if i := slices.Index(s.Shards, id); i >= 0 {
			return fmt.Sprintf("%s/%d", s.Name, i)
		}
		if slices.Contains(s.Coordinators, id) {
			return s.Name
		}
	}
	return fmt.Sprint(id)
}
