package observe_test

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/foresay/foresay"
	"github.com/foresay/foresay/control"

	kvpb "github.com/foresay/foresay/api/foresay/testkv/v1"
	"github.com/foresay/foresay/observe"
	"github.com/foresay/foresay/specgrpc"
	"github.com/foresay/foresay/wan"
	"github.com/foresay/foresay/wan/shape"
)

// kindOf says what a step of a program does.
type kindOf string

const (
	get     kindOf = "get"     // a read; took is with the round trip
	refused kindOf = "refused" // a read that fails
	put     kindOf = "put"     // a call with effects
	staged  kindOf = "staged"  // a call whose server stages its effects
	failing kindOf = "failing" // one of these that fails
	stream  kindOf = "stream"  // a server stream
	barrier kindOf = "barrier"
	act     kindOf = "act"    // a local side effect
	hook    kindOf = "hook"   // OnCommit
	work    kindOf = "work"   // the program's own time
	memo    kindOf = "memo"   // Memo
	group   kindOf = "group"  // parts side by side
	raw     kindOf = "raw"    // parts side by side, in goroutines of the code's own that share its context
	future  kindOf = "future" // parts[0] as a future of the run, parts[1] meanwhile; then it waits
	task    kindOf = "task"   // the parts, a task each, beside each other
	served  kindOf = "served" // a staged call whose handler runs parts[0], a chain of steps
	again   kindOf = "again"  // the same of a handler that may be run again, so that it may guess
)

// step is one step of a program that a clock is held to.
type step struct {
	kind  kindOf
	took  int           // ms
	more  time.Duration // beside that, see apart
	guess string        // "right", "wrong" or ""
	plain bool          // its server has no registrar
	via   string        // "ordered": its call site is; "ahead": that sends plainly to a plain server; or ""
	parts [][]step
}

// wireStep is a step on its way to the handler that runs it.
type wireStep struct {
	Kind  kindOf
	Took  int
	Guess string
	Plain bool
	Via   string
	Parts [][]step
}

func (s step) MarshalJSON() ([]byte, error) {
	return json.Marshal(wireStep{s.kind, s.took, s.guess, s.plain, s.via, s.parts})
}

func (s *step) UnmarshalJSON(b []byte) error {
	var w wireStep
	err := json.Unmarshal(b, &w)
	*s = step{kind: w.Kind, took: w.Took, guess: w.Guess, plain: w.Plain, via: w.Via, parts: w.Parts}
	return err
}

func (s step) String() string {
	out := string(s.kind)
	if s.took > 0 {
		out += fmt.Sprintf(" %d", s.took)
	}
	if s.guess != "" {
		out += " " + s.guess
	}
	if s.plain {
		out += " plain"
	}
	if s.via != "" {
		out += " " + s.via
	}
	for _, p := range s.parts {
		out += fmt.Sprint(" ", p)
	}
	return out
}

// watch is a server stream that no .proto declares.
const watch = "/foresay.testkv.v1.TestKV/Watch"

// playRTT is the round trip to each server, in milliseconds.
const playRTT = 2

// keptServer answers each request with a digest of it, after the time that its key says.
type keptServer struct {
	kvpb.UnimplementedTestKVServer
	own player // for handlers that make calls of their own
}

// answerTo is the only right answer to a key.
func answerTo(key string) string { return fmt.Sprintf("%x", sha256.Sum256([]byte(key)))[:12] }

func serveKey(ctx context.Context, key string) (string, error) {
	head, _, _ := strings.Cut(key, "|")
	took, err := time.ParseDuration(head)
	if err != nil {
		return "", err
	}
	select {
	case <-time.After(max(took-playRTT*time.Millisecond, 0)):
		return answerTo(key), nil
	case <-ctx.Done():
		return "", ctx.Err()
	}
}

func (*keptServer) Get(ctx context.Context, r *kvpb.GetRequest) (*kvpb.GetResponse, error) {
	v, err := serveKey(ctx, r.GetKey())
	if err == nil && strings.HasSuffix(r.GetKey(), string(refused)) {
		err = status.Error(codes.NotFound, r.GetKey())
	}
	return &kvpb.GetResponse{Value: v}, err
}

func (*keptServer) Put(ctx context.Context, r *kvpb.PutRequest) (*kvpb.PutResponse, error) {
	_, err := serveKey(ctx, r.GetKey())
	return &kvpb.PutResponse{Version: 1}, err
}

// Append answers as Get does or, if it is sent steps, with what these come to.
func (k *keptServer) Append(ctx context.Context, r *kvpb.AppendRequest) (*kvpb.AppendResponse, error) {
	if r.GetValue() == "" || r.GetValue() == string(failing) {
		v, err := serveKey(ctx, r.GetKey())
		if err == nil && r.GetValue() != "" {
			err = status.Error(codes.NotFound, r.GetKey())
		}
		return &kvpb.AppendResponse{Value: v}, err
	}
	var steps []step
	if err := json.Unmarshal([]byte(r.GetValue()), &steps); err != nil {
		return nil, err
	}
	v, err := k.own.run(ctx, r.GetKey(), "", steps)
	return &kvpb.AppendResponse{Value: v}, err
}

// streamed answers each stream with one message, after the time that its request says.
func streamed(_ any, ss grpc.ServerStream) error {
	if method, _ := grpc.MethodFromServerStream(ss); method != watch {
		return status.Errorf(codes.Unimplemented, "unknown method %s", method)
	}
	var in kvpb.GetRequest
	if err := ss.RecvMsg(&in); err != nil {
		return err
	}
	v, err := serveKey(ss.Context(), in.GetKey())
	if err != nil {
		return err
	}
	return ss.SendMsg(&kvpb.GetResponse{Value: v})
}

// player runs programs against two servers, one of them plain.
type player struct {
	spec, plain, again, ordered, ahead *specgrpc.ClientConn
}

func (p *player) conn(s *step) *specgrpc.ClientConn {
	switch {
	case s.via == "ordered":
		return p.ordered
	case s.via == "ahead":
		return p.ahead
	case s.plain:
		return p.plain
	case s.kind == again:
		return p.again
	default:
		return p.spec
	}
}

// run runs steps; what they ask depends on all answers before, so that a wrong guess changes every
// later request.
func (p *player) run(ctx context.Context, at, seen string, steps []step) (string, error) {
	for i := range steps {
		s := &steps[i]
		answer, err := p.step(ctx, fmt.Sprintf("%s.%d", at, i), seen, s)
		if err != nil {
			return "", err
		}
		seen = answerTo(seen + answer)
	}
	return seen, nil
}

func (p *player) step(ctx context.Context, at, seen string, s *step) (string, error) {
	took := time.Duration(s.took)*time.Millisecond + s.more
	key := fmt.Sprintf("%v|%s|%s", took, at, seen)
	client := kvpb.NewTestKVClient(p.conn(s))
	switch s.kind {
	case get:
		switch s.guess {
		case "right":
			ctx = foresay.Predicting(ctx, &kvpb.GetResponse{Value: answerTo(key)})
		case "wrong":
			ctx = foresay.Predicting(ctx, &kvpb.GetResponse{Value: "wrong"})
		}
		r, err := client.Get(ctx, &kvpb.GetRequest{Key: key})
		return r.GetValue(), err
	case refused:
		if s.guess != "" {
			ctx = foresay.Predicting(ctx, &kvpb.GetResponse{Value: "wrong"})
		}
		_, err := client.Get(ctx, &kvpb.GetRequest{Key: key + "|" + string(refused)})
		if status.Code(err) == codes.NotFound {
			return status.Convert(err).Message(), nil
		}
		return "", err
	case put:
		switch s.guess {
		case "right":
			ctx = foresay.Predicting(ctx, &kvpb.PutResponse{Version: 1})
		case "wrong":
			ctx = foresay.Predicting(ctx, &kvpb.PutResponse{Version: 2})
		}
		_, err := client.Put(ctx, &kvpb.PutRequest{Key: key})
		return "", err
	case staged:
		r, err := client.Append(ctx, &kvpb.AppendRequest{Key: key})
		return r.GetValue(), err
	case failing:
		_, err := client.Append(ctx, &kvpb.AppendRequest{Key: key, Value: string(failing)})
		if status.Code(err) == codes.NotFound {
			return status.Convert(err).Message(), nil
		}
		return "", err
	case served, again:
		program, err := json.Marshal(s.parts[0])
		if err != nil {
			return "", err
		}
		r, err := client.Append(ctx, &kvpb.AppendRequest{Key: key, Value: string(program)})
		return r.GetValue(), err
	case stream:
		return p.stream(ctx, p.conn(s), key)
	case barrier:
		return "", foresay.Barrier(ctx)
	case act:
		return foresay.Act(ctx, key, func(context.Context) (string, error) { time.Sleep(took); return answerTo(key), nil })
	case memo:
		return foresay.Memo(ctx, key, func(context.Context) (string, error) { time.Sleep(took); return answerTo(key), nil })
	case hook:
		foresay.OnCommit(ctx, func() { time.Sleep(took) })
	case work:
		time.Sleep(took)
	case group:
		return p.group(ctx, at, seen, s)
	case raw:
		return p.raw(ctx, at, seen, s)
	case future:
		f := foresay.Go(ctx, func(ctx context.Context) (string, error) { return p.run(ctx, at+"f", seen, s.parts[0]) })
		mine, err := p.run(ctx, at+"m", seen, s.parts[1])
		theirs, err2 := f.Wait(ctx)
		return mine + theirs, errors.Join(err, err2)
	}
	return "", nil
}

func (p *player) stream(ctx context.Context, conn *specgrpc.ClientConn, key string) (string, error) {
	ss, err := conn.NewStream(ctx, &grpc.StreamDesc{ServerStreams: true}, watch)
	if err != nil {
		return "", err
	}
	if err := errors.Join(ss.SendMsg(&kvpb.GetRequest{Key: key}), ss.CloseSend()); err != nil {
		return "", err
	}
	var out kvpb.GetResponse
	if err := ss.RecvMsg(&out); err != nil {
		return "", err
	}
	if err := ss.RecvMsg(&kvpb.GetResponse{}); err != io.EOF {
		return "", fmt.Errorf("the stream goes on: %w", err)
	}
	return out.GetValue(), nil
}

func (p *player) group(ctx context.Context, at, seen string, s *step) (string, error) {
	g := foresay.NewGroup(ctx)
	answers := make([]string, len(s.parts))
	for i, part := range s.parts {
		g.Go(func(ctx context.Context) (err error) {
			answers[i], err = p.run(ctx, fmt.Sprintf("%sg%d", at, i), seen, part)
			return err
		})
	}
	err := g.Wait()
	return strings.Join(answers, ","), err
}

func (p *player) raw(ctx context.Context, at, seen string, s *step) (string, error) {
	answers, errs := make([]string, len(s.parts)), make([]error, len(s.parts))
	var all sync.WaitGroup
	for i, part := range s.parts {
		all.Go(func() { answers[i], errs[i] = p.run(ctx, fmt.Sprintf("%sr%d", at, i), seen, part) })
	}
	all.Wait()
	return strings.Join(answers, ","), errors.Join(errs...)
}

// request runs a whole program: its parts of the kind task as tasks beside each other, and what is
// between as one.
func (p *player) request(ctx context.Context, steps []step) error {
	begun := 0
	flush := func(end int) error {
		if begun == end {
			return nil
		}
		part := steps[begun:end]
		_, err := foresay.Do(ctx, func(ctx context.Context) (string, error) {
			return p.run(ctx, fmt.Sprint(begun), "", part)
		})
		return err
	}
	for i := range steps {
		if steps[i].kind != task {
			continue
		}
		if err := flush(i); err != nil {
			return err
		}
		var futures []*foresay.Future[string]
		for j, part := range steps[i].parts {
			futures = append(futures, foresay.Go(ctx, func(ctx context.Context) (string, error) {
				return p.run(ctx, fmt.Sprintf("%d.%dt", i, j), "", part)
			}))
		}
		for _, f := range futures {
			if _, err := f.Wait(ctx); err != nil {
				return err
			}
		}
		begun = i + 1
	}
	return flush(len(steps))
}

// played is what one run of a program came to.
type played struct {
	took    time.Duration
	limited bool // calls were not predicted, or sent on a prediction, because of a limit
	report  *observe.RequestReport
}

// sites yields the sites of the calls that the program makes.
func (p *player) sites(yield func(*control.CallSite) bool) {
	for _, conn := range []*specgrpc.ClientConn{p.spec, p.plain, p.again, p.ordered, p.ahead} {
		for _, method := range []string{"Get", "Put", "Append"} {
			if !yield(conn.CallSite("/foresay.testkv.v1.TestKV/" + method)) {
				return
			}
		}
	}
}

// limited returns how often a limit was met.
func (p *player) limited() (n int64) {
	for site := range p.sites {
		n += site.Stats().Limited
	}
	return n
}

// meet has the connections find out what their servers are, for each method: the second call of
// each pair is sent on a guess at the first.
func (p *player) meet(t *testing.T) {
	t.Helper()
	for _, like := range []step{{}, {plain: true}, {via: "ordered"}, {via: "ahead"}} {
		of := func(s step) step { s.plain, s.via = like.plain, like.via; return s }
		err := p.request(t.Context(), []step{
			of(step{kind: get, took: 9, guess: "right"}), of(step{kind: get, took: 9}),
			of(step{kind: get, took: 9, guess: "right"}), of(step{kind: staged, took: 9}),
			{kind: get, took: 9, guess: "right"}, {kind: again, parts: [][]step{{}}},
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

// crowd has the connection that speculates find out that its server admits as many speculative
// calls at once as it may have: a new one begins with four, and lets a call wait for up to a
// millisecond until it admits more.
func (p *player) crowd(t *testing.T) {
	t.Helper()
	atOnce := step{kind: group}
	for range 40 {
		atOnce.parts = append(atOnce.parts, []step{{kind: get, took: 19}})
	}
	if err := p.request(t.Context(), []step{{kind: get, took: 20, guess: "right"}, atOnce}); err != nil {
		t.Fatal(err)
	}
}

// play runs a program in a mode, in a bubble of its own. met: the connections know what their
// servers are.
func play(t *testing.T, mode control.Mode, steps []step, met bool) (out played) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		net := shape.NewNetwork(wan.Uniform(playRTT*time.Millisecond, "front", "back"), 1)
		s := &shop{t: t, net: net}
		t.Cleanup(func() { net.Close() })
		collector, ctl := watched(t, control.Config{Budget: -1})
		impl := &keptServer{}
		options := []grpc.DialOption{specgrpc.WithMode(control.ModeOn), specgrpc.WithCallSites(control.CallSiteConfig{
			Name: kvpb.TestKV_Append_FullMethodName, Effect: control.EffectStaged,
		})}
		getSite := func(cfg control.CallSiteConfig) grpc.DialOption {
			cfg.Name = kvpb.TestKV_Get_FullMethodName
			return specgrpc.WithCallSites(cfg)
		}
		viaOrdered := getSite(control.CallSiteConfig{Ordered: true})
		viaAhead := getSite(control.CallSiteConfig{SendPlainly: true})
		dial := func(addr string, more ...grpc.DialOption) *specgrpc.ClientConn {
			return s.dial("front", addr, slices.Concat(options, more, []grpc.DialOption{specgrpc.WithControl(ctl)})...)
		}
		// A handler's own calls are to servers like its own, and nobody reports of them.
		serverDial := func(like *specgrpc.ClientConn, more ...grpc.DialOption) *specgrpc.ClientConn {
			return s.dial("front", strings.TrimPrefix(like.Target(), "passthrough:///"), slices.Concat(options, more)...)
		}
		p := &player{}
		stages := func(opts ...specgrpc.ServerOption) string {
			return s.serve("back", func(server *grpc.Server) {
				kvpb.RegisterTestKVServer(specgrpc.Registrar(server,
					append(opts, specgrpc.Stages(kvpb.TestKV_Append_FullMethodName))...), impl)
			}, grpc.UnknownServiceHandler(streamed))
		}
		p.spec, p.again = dial(stages()), dial(stages(specgrpc.Replayable(kvpb.TestKV_Append_FullMethodName)))
		unaware := s.serve("back", func(server *grpc.Server) {
			kvpb.RegisterTestKVServer(server, impl)
		}, grpc.UnknownServiceHandler(streamed))
		p.plain, p.ordered, p.ahead = dial(unaware), dial(stages(), viaOrdered), dial(unaware, viaAhead)
		impl.own = player{serverDial(p.spec), serverDial(p.plain), serverDial(p.again), serverDial(p.ordered, viaOrdered),
			serverDial(p.ahead, viaAhead)}
		time.Sleep(time.Second) // the connections are there
		if met {
			p.meet(t)
			p.crowd(t)
			impl.own.meet(t)
		}
		for site := range p.sites {
			if err := site.Reconfigure(mode, 0); err != nil {
				t.Fatal(err)
			}
		}
		limited := p.limited()
		ctx, r := ctl.Begin(t.Context(), "page", "")
		start := time.Now()
		err := p.request(ctx, steps)
		out.took, out.limited = time.Since(start), p.limited() > limited
		r.End(err)
		if err != nil {
			t.Errorf("%v: %v", mode, err)
		}
		out.report = only(t, collector.Report(ctl))
		time.Sleep(100 * time.Millisecond) // longer than what runs that were discarded may still do of their own
	})
	return out
}
