package sim_test

import (
	"errors"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/sim"
)

func TestTraceAndExplain(t *testing.T) {
	var trace strings.Builder
	b := newBench(t, sim.Config[any]{
		Seed: 4, Disk: sim.Disk{Latency: 10 * ms}, Trace: &trace, TraceKeep: 12, Replay: "go test -run This",
		Check: nil,
	})
	b.do(0, 1, func(env *protocol.Env[any]) {
		env.Append("a record")
		env.Put([]byte("key"), []byte("value"))
		env.Delete([]byte("other"))
		env.Truncate(1)
		env.Send(protocol.App, "durable")
		env.SendAhead(2, struct{ Ballot int }{3})
		env.After(20*ms, "timer")
	})
	b.At(12*ms, func() { b.Cut(1, 2) })
	b.do(15*ms, 1, func(env *protocol.Env[any]) { env.Send(2, strings.Repeat("long", 100)) })
	b.At(55*ms, func() { b.Pause(2, time.Second, false) })
	b.do(60*ms, 2, func(env *protocol.Env[any]) {})
	b.do(70*ms, 1, func(env *protocol.Env[any]) { env.Append("b"); env.Send(1, "waits"); env.After(time.Minute, "far") })
	b.do(75*ms, 1, func(env *protocol.Env[any]) { panic(errors.New("a bug")) })
	if err := b.Run(time.Second); err == nil {
		t.Fatal("no failure")
	}
	var explained strings.Builder
	if err := b.Explain(&explained); err != nil {
		t.Fatal(err)
	}
	got := withoutStack("--- trace\n" + trace.String() + "--- explained\n" + explained.String())
	golden(t, "testdata/explain.txt", got)
}

// withoutStack cuts out what differs from machine to machine.
func withoutStack(s string) string {
	var kept []string
	stack := false
	for line := range strings.SplitSeq(s, "\n") {
		switch {
		case strings.HasPrefix(line, "goroutine "):
			stack = true
		case strings.HasPrefix(line, "at node"):
			stack = false
		}
		if i := strings.Index(line, "0x"); i >= 0 {
			line = line[:i] + "..."
		}
		if !stack {
			kept = append(kept, line)
		}
	}
	return strings.Join(kept, "\n")
}

func golden(t *testing.T, file, got string) {
	t.Helper()
	if os.Getenv("FORESAY_UPDATE") != "" {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if string(want) != got {
		t.Errorf("%s differs (FORESAY_UPDATE=1 writes it); got\n%s", file, got)
	}
}

// moody panics when it is asked what it is.
type moody struct{ probe }

func (*moody) String() string { panic("no") }

func TestExplainSurvivesStringers(t *testing.T) {
	b := newBench(t, sim.Config[any]{TraceKeep: -1})
	if err := b.Add(sim.Node[any]{ID: 3, Site: "a", New: func() protocol.Node[any] { return new(moody) }}); err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	if err := b.Explain(&out); err != nil || !strings.Contains(out.String(), "(its String panics: no)") {
		t.Errorf("%v in %s", err, out.String())
	}
	if err := b.Explain(failing{}); !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("error %v", err)
	}
}

type failing struct{}

func (failing) Write([]byte) (int, error) { return 0, io.ErrClosedPipe }
