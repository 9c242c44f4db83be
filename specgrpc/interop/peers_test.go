package interop

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/proto"

	"github.com/foresay/foresay"
	"github.com/foresay/foresay/control"
	"github.com/foresay/foresay/report"

	kvpb "github.com/foresay/foresay/api/foresay/testkv/v1"
	"github.com/foresay/foresay/specgrpc"
)

// peer is a server that a client of package specgrpc meets.
type peer struct {
	addr string
	// conn knows nothing of Foresay, nor does plain, which uses it.
	conn  *grpc.ClientConn
	plain kvpb.TestKVClient
	// aware: it serves through a Registrar.
	aware bool
}

func newPeer(t *testing.T, addr string, aware bool) *peer {
	t.Helper()
	cc, err := grpc.NewClient("passthrough:///"+addr, insecurely())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cc.Close() })
	return &peer{addr: addr, conn: cc, plain: kvpb.NewTestKVClient(cc), aware: aware}
}

func insecurely() grpc.DialOption { return grpc.WithTransportCredentials(insecure.NewCredentials()) }

// ask has the server do one of the things that kv.control does.
func (p *peer) ask(ctx context.Context, t *testing.T, command string) string {
	t.Helper()
	r, err := p.plain.Get(ctx, &kvpb.GetRequest{Key: command})
	if err != nil {
		t.Fatalf("%s: %v", command, err)
	}
	return r.GetValue()
}

// lines asks for lines.
func (p *peer) lines(ctx context.Context, t *testing.T, command string) []string {
	t.Helper()
	return strings.FieldsFunc(p.ask(ctx, t, command), func(r rune) bool { return r == '\n' })
}

// dial connects a client that speculates.
func (p *peer) dial(t *testing.T, opts ...grpc.DialOption) *specgrpc.ClientConn {
	t.Helper()
	cc, err := specgrpc.NewClient("passthrough:///"+p.addr,
		append(opts, insecurely(), specgrpc.WithMode(control.ModeOn))...)
	if err != nil {
		t.Fatal(err)
	}
	return cc
}

// mode is how a client speculates.
type mode struct {
	name   string
	guess  guess
	wanted bool // the server's predictions are
	sites  []control.CallSiteConfig
}

func modes() []mode {
	wanted := []control.CallSiteConfig{
		{Name: kvpb.TestKV_Get_FullMethodName, ServerPredictions: true},
		{Name: kvpb.TestKV_Put_FullMethodName, ServerPredictions: true},
		{Name: kvpb.TestKV_Append_FullMethodName, ServerPredictions: true},
	}
	// The client takes the server's word for what it stages; only a Registrar
	// gives it.
	staged := []control.CallSiteConfig{{Name: kvpb.TestKV_Append_FullMethodName, Effect: control.EffectStaged}}
	return []mode{
		{name: "no predictions"},
		{name: "right", guess: right},
		{name: "wrong", guess: wrong},
		{name: "several", guess: several},
		{name: "server predictions wanted", wanted: true, sites: wanted},
		{name: "server predictions wanted, right", wanted: true, sites: wanted, guess: right},
		{name: "server predictions wanted, wrong", wanted: true, sites: wanted, guess: wrong},
		{name: "staged, right", sites: staged, guess: right},
		{name: "staged, wrong", sites: staged, guess: wrong},
	}
}

// reference is what a plain client makes of a script.
type reference struct {
	out  string
	log  []string
	seen *responses
}

// play runs the scripts in every mode against peers, and compares the tasks'
// results and what the servers did with what a plain client sees and causes.
func play(t *testing.T, open func(t *testing.T) *peer) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for _, script := range scripts() {
		t.Run(script.name, func(t *testing.T) {
			p := open(t)
			p.ask(ctx, t, "!reset")
			ref := &reference{seen: &responses{keep: true, byPlace: make(map[string]proto.Message)}}
			s := &steps{client: p.plain, seen: ref.seen}
			s.begin(ctx)
			script.run(ctx, s)
			ref.out, ref.log = s.out.String(), p.lines(ctx, t, "!log")
			ref.seen.keep = false
			for _, mode := range modes() {
				t.Run(mode.name, func(t *testing.T) { open(t).compare(ctx, t, script, mode, ref) })
			}
		})
	}
}

// compare runs a script in a task.
func (p *peer) compare(ctx context.Context, t *testing.T, script script, mode mode, ref *reference) {
	reset := "!reset"
	if mode.guess != nil {
		reset = "!reset gated"
	}
	p.ask(ctx, t, reset)
	cc := p.dial(t, specgrpc.WithCallSites(mode.sites...))
	defer cc.Close()
	client := kvpb.NewTestKVClient(cc)
	var told *report.Report
	out, err := foresay.Do(ctx, func(ctx context.Context) (string, error) {
		s := &steps{client: client, seen: ref.seen, guess: mode.guess}
		s.begin(ctx)
		script.run(ctx, s)
		return s.out.String(), nil
	}, foresay.WithReport(func(r *report.Report) { told = r }))
	defer func() {
		if t.Failed() {
			_ = told.WriteText(t.Output())
		}
	}()
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(ref.out, out); diff != "" {
		t.Errorf("the task saw something else than a plain client (-plain +task):\n%s", diff)
	}
	log := p.lines(ctx, t, "!log")
	streams := p.lines(ctx, t, "!streams")
	if want := mode.guess != nil || mode.wanted; want != (len(streams) > 0) {
		t.Errorf("speculative streams arrived: %q, want some: %t", streams, want)
	}
	if !soon(func() bool { return cc.HalfOpen() == 0 }) {
		t.Errorf("%d half-open streams are left", cc.HalfOpen())
	}
	if p.aware {
		compareEffects(t, script, ref.log, log)
		return
	}
	comparePlain(t, script, ref.log, log)
	cc.Close()
	if late := p.lines(ctx, t, "!log"); len(late) > 0 {
		t.Errorf("after the task had ended, the server ran %q", late)
	}
}

// comparePlain compares what handlers of a server that knows nothing of Foresay
// did: no call ran for a guess, and every call of the result ran once.
func comparePlain(t *testing.T, script script, want, got []string) {
	t.Helper()
	if script.parallel {
		want, got = sorted(want), sorted(got)
	}
	if i := slices.Index(got, script.mayMiss); i >= 0 {
		got = slices.Delete(slices.Clone(got), i, i+1)
	}
	want = slices.DeleteFunc(slices.Clone(want), func(line string) bool { return line == script.mayMiss })
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("other handlers ran than for a plain client (-plain +task):\n%s", diff)
	}
}

// compareEffects compares what handlers behind a Registrar did: calls without
// side effects may have run for a guess too.
func compareEffects(t *testing.T, script script, want, got []string) {
	t.Helper()
	isRead := func(line string) bool { return strings.HasPrefix(line, "get ") }
	comparePlain(t, script, slices.DeleteFunc(slices.Clone(want), isRead), slices.DeleteFunc(slices.Clone(got), isRead))
	rest := slices.Clone(got)
	for _, line := range want {
		i := slices.Index(rest, line)
		if i < 0 && line == script.mayMiss {
			continue
		}
		if i < 0 {
			t.Errorf("%q did not run; these did: %q", line, got)
			return
		}
		rest = slices.Delete(rest, i, i+1)
	}
	t.Logf("ran for guesses too: %q", rest)
}

// soon waits for a condition, for two seconds at most.
func soon(ok func() bool) bool {
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for range 2000 {
		if ok() {
			return true
		}
		<-tick.C
	}
	return false
}

func TestPlainServerInGo(t *testing.T) {
	t.Parallel()
	play(t, func(t *testing.T) *peer { return newPeer(t, servePlain(t, newKV()), false) })
}

// The same against servers that do know Foresay, for contrast.
func TestAwareServerInGo(t *testing.T) {
	t.Parallel()
	play(t, func(t *testing.T) *peer {
		s := newKV()
		return newPeer(t, serveAware(t, s, s, specgrpc.Stages(kvpb.TestKV_Append_FullMethodName)), true)
	})
}

// The same against servers in Python.
func (p *python) testServers(t *testing.T) {
	for _, script := range []string{"server_sync.py", "server_aio.py"} {
		t.Run(script, func(t *testing.T) {
			t.Parallel()
			addr, kill := p.serve(t, script)
			server := newPeer(t, addr, false)
			play(t, func(*testing.T) *peer { return server })
			t.Run("cancelled task", server.cancelled)
			t.Run("killed server", func(t *testing.T) { server.killed(t, kill) })
		})
	}
}
