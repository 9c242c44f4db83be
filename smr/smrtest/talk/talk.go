package talk

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
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
	"github.com/foresay/foresay/smr"
	"github.com/foresay/foresay/smr/kit"
	"github.com/foresay/foresay/smr/smrsim"
	"github.com/foresay/foresay/wan"
)

// Play plays a protocol's scenarios, those of testdata/scenarios. format writes values of the
// protocol's own as text; nil: there are none.
func Play(t *testing.T, p smr.Protocol, format msgtext.Format) {
	transcript.Play(t, "testdata/scenarios", func() transcript.Family[smr.Message] { return New(p, format) })
}

// New returns a protocol's groups, for a scenario of its own.
func New(p smr.Protocol, format msgtext.Format) transcript.Family[smr.Message] {
	return &talk{protocol: p, own: format, machines: map[protocol.ID]*words{}}
}

// talk is a group in a scenario.
type talk struct {
	protocol smr.Protocol
	own      msgtext.Format
	script   *transcript.Script[smr.Message]
	*smrsim.Group
	machines map[protocol.ID]*words
}

// Begin is part of transcript.Family, as are Do, Expect, Format and Name.
func (t *talk) Begin(script *transcript.Script[smr.Message], args []string) (*deploy.Deployment[smr.Message], error) {
	replicas, clients, leader := 3, 1, 0
	trip, told, disk, settle := 20*time.Millisecond, smr.DefaultRoundTrip, time.Duration(0), 2*time.Second
	apart := false
	for _, arg := range args {
		name, value, _ := strings.Cut(arg, "=")
		var err error
		switch name {
		case "apart":
			apart = true
		case "replicas":
			replicas, err = strconv.Atoi(value)
		case "clients":
			clients, err = strconv.Atoi(value)
		case "leader":
			leader, err = strconv.Atoi(value)
		case "rtt":
			trip, err = time.ParseDuration(value)
		case "told":
			told, err = time.ParseDuration(value)
		case "disk":
			disk, err = time.ParseDuration(value)
		case "settle":
			settle, err = time.ParseDuration(value)
		default:
			err = fmt.Errorf("begin knows no %s", name)
		}
		if err != nil {
			return nil, err
		}
	}
	var place wan.Deployment
	var all []wan.Site
	for i := range replicas + clients {
		all = append(all, wan.Site(fmt.Sprint("s", i+1)))
	}
	place.Matrix, place.Replicas = wan.Uniform(trip, all...), all[:replicas]
	at := all[:clients]
	if apart {
		at = all[replicas:]
	}
	t.script = script
	script.Hide("Hello", "Welcome", "Ping", "Pong")
	var err error
	t.Group, err = smrsim.New(smrsim.Config{
		Protocol: t.protocol, Place: place, Clients: at, RoundTrip: told, Wrap: script.Wrap,
		Sim: sim.Config[smr.Message]{Seed: 1, Disk: sim.Disk{Latency: disk}},
		Replica: func(c *smr.ReplicaConfig) {
			t.machines[c.ID] = &words{values: map[string]string{}}
			c.Machine, c.Leader = t.machines[c.ID], protocol.ID(leader)
		},
	})
	if err != nil {
		return nil, err
	}
	return t.Deployment, t.Pass(settle)
}

// Do carries out a command.
func (t *talk) Do(command string, args []string) (string, error) {
	switch command {
	case "state":
		return t.state()
	case "call":
		return "", t.call(args)
	}
	return "", fmt.Errorf("there is no such command")
}

func (t *talk) call(args []string) error {
	if len(args) < 2 {
		return fmt.Errorf("want a client and a command or query")
	}
	i := slices.IndexFunc(t.Clients, func(id protocol.ID) bool { return t.Name(id) == args[0] })
	if i < 0 {
		return fmt.Errorf("there is no client %s", args[0])
	}
	what, more := args[1], args[2:]
	c := smr.Call{Kind: smr.Execute, Command: []byte(what)}
	switch {
	case what == "remove" && len(more) == 1:
		id, err := strconv.ParseUint(more[0], 10, 32)
		if err != nil {
			return err
		}
		c, what = smr.Call{Kind: smr.Reconfigure, Change: smr.Change{Remove: protocol.ID(id)}}, strings.Join(args[1:], " ")
	case slices.Equal(more, []string{"durable"}):
		c.Kind, c.Ack = smr.Propose, smr.AckDurable
	case len(more) > 0:
		return fmt.Errorf("a call knows no %v", more)
	case !strings.Contains(what, "="):
		c.Kind = smr.Read
	}
	t.Make(t.Clients[i], c, func(a smrsim.Answer) {
		text := what + " is " + a.Outcome.String()
		switch {
		case a.Outcome != smr.Committed:
			text += ": " + a.Reason
		case c.Kind == smr.Read:
			text = fmt.Sprintf("%s is read: %q", what, a.Result)
		default:
			text += " in slot " + t.slot(a.Slot)
		}
		t.script.Note(a.Client, text)
	})
	return nil
}

func (t *talk) slot(s smr.Slot) string {
	if text, ok := t.Format(s); ok {
		return text
	}
	return fmt.Sprint(s)
}

// up asks the replicas that are up how they are.
func (t *talk) up() ([]smr.Status, error) {
	clear(t.Status)
	for _, m := range t.Members {
		t.Deliver(m.ID, smr.StatusQuery{})
	}
	if err := t.Pass(0); err != nil {
		return nil, err
	}
	return slices.SortedFunc(maps.Values(t.Status), func(a, b smr.Status) int {
		return cmp.Compare(a.Replica, b.Replica)
	}), nil
}

func (t *talk) state() (string, error) {
	all, err := t.up()
	var b strings.Builder
	for _, s := range all {
		fmt.Fprintf(&b, "%8s: %s", t.Name(s.Replica), s.Role)
		if s.Leader != 0 && s.Leader != s.Replica {
			fmt.Fprintf(&b, " of %s", t.Name(s.Leader))
		}
		if s.Ballot >= 1<<32 {
			fmt.Fprintf(&b, ", ballot %d.%d", s.Ballot>>32, uint32(s.Ballot))
		} else if s.Ballot != 0 {
			fmt.Fprintf(&b, ", ballot %d", s.Ballot)
		}
		fmt.Fprintf(&b, ", committed %s, applied %s, holds %s\n", t.slot(s.Committed), t.slot(s.Applied),
			t.machines[s.Replica])
	}
	return b.String(), err
}

// Expect returns what keeps words from holding.
func (t *talk) Expect(args []string) error {
	all, err := t.up()
	if err != nil {
		return err
	}
	if len(all) == 0 || len(args) == 0 {
		return fmt.Errorf("nobody tells, or nothing is expected")
	}
	switch what, value, sets := strings.Cut(args[0], "="); {
	case what == "answered":
		if n := t.Unanswered(); n > 0 {
			return fmt.Errorf("%d calls have no answer", n)
		}
	case what == "answered-by" && len(args) == 2:
		id, err := t.script.ID(args[1])
		if err == nil && t.Waiting(id, uint64(t.Calls(id))) {
			err = fmt.Errorf("%s waits for an answer", args[1])
		}
		return err
	case what == "leader" && len(args) == 2:
		for _, s := range all {
			if t.Name(s.Leader) != args[1] {
				return fmt.Errorf("replica %d follows %d", s.Replica, s.Leader)
			}
		}
	case what == "equal":
		for _, s := range all {
			if m := t.machines[s.Replica].String(); s.Applied != all[0].Applied || m != t.machines[all[0].Replica].String() {
				return fmt.Errorf("replica %d has applied %s and holds %s", s.Replica, t.slot(s.Applied), m)
			}
		}
	case sets:
		for _, s := range all {
			if got := t.machines[s.Replica].values[what]; got != value {
				return fmt.Errorf("at replica %d %s is %q", s.Replica, what, got)
			}
		}
	default:
		return fmt.Errorf("expect knows no such words")
	}
	return nil
}

// Format writes what all protocols have.
func (t *talk) Format(v any) (string, bool) {
	if t.own != nil {
		if text, ok := t.own(v); ok {
			return text, true
		}
	}
	switch v := v.(type) {
	case []byte:
		return string(v), utf8Words(v)
	case protocol.ID:
		return t.Name(v), true
	case smr.Member:
		return t.Name(v.ID), true
	case kit.RequestedCommand:
		return string(v.Command), true
	case kit.Query:
		return string(v.Body), true
	case kit.CommandReply:
		return strings.TrimSpace(fmt.Sprintf("%v in slot %s", v.Outcome, t.slot(v.Slot))), true
	case kit.ReadReply:
		return strconv.Quote(string(v.Result)), true
	case kit.Entry:
		return t.entry(v), true
	case kit.Letter:
		return msgtext.Format(t.Format).Of(v.Msg), true
	}
	return "", false
}

func (t *talk) entry(e kit.Entry) string {
	switch e.Kind {
	case kit.Command:
		return string(e.Command)
	case kit.OpenSession:
		return "session for " + t.Name(e.Client)
	}
	return e.String()
}

func utf8Words(b []byte) bool {
	return len(b) < 40 && !bytes.ContainsFunc(b, func(r rune) bool { return r < ' ' || r > '~' })
}

// Name returns 2 for a replica and c1 for a client.
func (t *talk) Name(id protocol.ID) string {
	if n := int(id) - 100; n > 0 && n < 100 {
		return fmt.Sprint("c", n)
	}
	return fmt.Sprint(id)
}

// words is a state machine whose commands are x=1, and whose queries x. Commands of different keys
// commute.
type words struct{ values map[string]string }

func (w *words) String() string {
	var all []string
	for _, k := range slices.Sorted(maps.Keys(w.values)) {
		all = append(all, k+"="+w.values[k])
	}
	return cmp.Or(strings.Join(all, " "), "nothing")
}

// Apply is part of smr.StateMachine, as are Read, Snapshot and Restore.
func (w *words) Apply(command []byte) []byte {
	key, value, _ := strings.Cut(string(command), "=")
	w.values[key] = value
	return nil
}

func (w *words) Read(query []byte) []byte { return []byte(w.values[string(query)]) }

func (w *words) Snapshot(to io.Writer) error {
	for _, k := range slices.Sorted(maps.Keys(w.values)) {
		if _, err := fmt.Fprintf(to, "%s=%s\n", k, w.values[k]); err != nil {
			return err
		}
	}
	return nil
}

func (w *words) Restore(from io.Reader) error {
	b, err := io.ReadAll(from)
	clear(w.values)
	for line := range strings.Lines(string(b)) {
		w.Apply([]byte(strings.TrimSpace(line)))
	}
	return err
}

// Footprint is part of epaxos.Interferer.
func (w *words) Footprint(command []byte) (keys []string, ok bool) {
	key, _, _ := strings.Cut(string(command), "=")
	return []string{key}, true
}
