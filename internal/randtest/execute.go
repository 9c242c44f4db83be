package randtest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/foresay/foresay"
	kvpb "github.com/foresay/foresay/api/foresay/testkv/v1"
	"github.com/foresay/foresay/control"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
)

// execution is one run of a task's code, or of one link of it.
type execution struct {
	w *world

	mu    sync.Mutex
	acks  []effect
	clock []effect
	trace []string
}

// runLink runs one link of a task. What it was told counts if it is confirmed.
func (w *world) runLink(ctx context.Context, t *task, link int, digest string) (string, error) {
	x := &execution{w: w}
	out, err := x.body(newStrand(ctx), t.name, t.links[link], digest)
	foresay.OnCommit(ctx, func() {
		x.mu.Lock()
		defer x.mu.Unlock()
		w.journal.acknowledged(x.acks, x.clock, x.trace)
	})
	return out, err
}

// note adds a result to the digest.
func (x *execution) note(at, digest, result string) string {
	x.mu.Lock()
	defer x.mu.Unlock()
	after := fold(digest, result)
	x.trace = append(x.trace, fmt.Sprintf("%s: %s -> %s", at, result, after))
	return after
}

func (x *execution) body(ctx context.Context, at string, steps []*step, digest string) (string, error) {
	for _, s := range steps {
		var err error
		if digest, err = x.step(ctx, at+"."+strconv.Itoa(s.id), s, digest); err != nil {
			return digest, err
		}
	}
	return digest, nil
}

func (x *execution) step(ctx context.Context, at string, s *step, digest string) (string, error) {
	switch s.kind {
	case kindGet, kindPut, kindAppend, kindObserved, kindRelay, kindDrift:
		return x.call(ctx, at, s, digest)
	case kindBranch:
		i := choose(digest, 2)
		return x.body(ctx, fmt.Sprintf("%s:%d", at, i), s.bodies[i], digest)
	case kindRepeat:
		for i := range s.count {
			var err error
			if digest, err = x.body(ctx, fmt.Sprintf("%s[%d]", at, i), s.bodies[0], digest); err != nil {
				return digest, err
			}
		}
		return digest, nil
	case kindDo:
		return x.nested(ctx, at, s, digest)
	case kindGroup:
		return x.group(ctx, at, s, digest)
	case kindShared, kindCrowd:
		return x.shared(ctx, at, s, digest)
	case kindContend:
		return x.contend(ctx, at, s, digest)
	case kindFutures:
		return x.futures(ctx, at, s, digest)
	case kindQuorum, kindAny:
		return x.replicas(ctx, at, s, digest)
	case kindLoose:
		return x.loose(ctx, at, s, digest)
	case kindEnd:
		return x.end(ctx, at, s, digest)
	case kindSleep:
		x.w.oracle.computes(x.w.plain, s.pause)
		time.Sleep(s.pause)
		return digest, nil
	default:
		return x.special(ctx, at, s, digest)
	}
}

// special carries out the steps that are about speculation itself.
func (x *execution) special(ctx context.Context, at string, s *step, digest string) (string, error) {
	j := x.w.journal
	switch s.kind {
	case kindAct:
		n, err := x.w.act(ctx, at, digest)
		return x.noted(at, digest, "act "+strconv.Itoa(n), err)
	case kindOnce:
		key := fmt.Sprintf("%s.once%d/0", at[:strings.IndexByte(at, '.')], s.id)
		n, err := x.w.once(ctx, key)
		return x.noted(at, digest, "once "+strconv.Itoa(n), err)
	case kindMemo:
		n, err := x.w.memo(ctx, at)
		return x.noted(at, digest, "memo "+strconv.Itoa(n), err)
	case kindHook:
		tok := j.token(at)
		x.w.onCommit(ctx, func() {
			j.commit(tok)
			j.hook(at, digest)
		})
		j.onRollback(ctx, at, func() { j.rollback(tok) })
	case kindBarrier:
		if err := x.w.barrier(ctx); err != nil {
			return x.noted(at, digest, "", err)
		}
		j.act(at, digest)
	case kindTrap:
		x.trap(ctx, at, digest)
	}
	return digest, nil
}

// noted adds a result or an error to the digest, unless the code gives up.
func (x *execution) noted(at, digest, result string, err error) (string, error) {
	if err != nil {
		if x.w.sc.fatal(err) {
			return digest, err
		}
		result = "error " + status.Code(err).String()
	}
	return x.note(at, digest, result), nil
}

func (x *execution) call(ctx context.Context, at string, s *step, digest string) (string, error) {
	if s.outer {
		ctx = outside(ctx)
	}
	c := &invoker{w: x.w, clients: x.w.clients, limit: s.limit, dead: s.dead, observe: s.kind == kindObserved}
	c.tenant = x.tenantOf(at, s, digest)
	var o *kvpb.Operation
	var server int
	if s.kind == kindRelay {
		o, server = s.relay.operation("r"+strconv.Itoa(s.id)), s.relay.server
	} else {
		key, value, k := s.keys[choose(digest, len(s.keys))], s.value, s.kind
		if k == kindDrift {
			k, value = kindPut, fmt.Sprint("drift ", x.w.journal.drift(at))
		}
		o, server = operation(k, key, value), serverOf(key)
		derive(o, digest)
	}
	m, err := c.call(ctx, at, server, o)
	if err != nil {
		return x.noted(at, digest, "", err)
	}
	x.acknowledge(o, m, c.tenant)
	result := x.w.sc.describe(m)
	if c.observe {
		result += fmt.Sprint(c.header.Get("stamp"))
	}
	scribble(o, m)
	return x.note(at, digest, result), nil
}

// scribble changes a call's request and response: they are the code's own once
// the call has returned.
func scribble(o *kvpb.Operation, m proto.Message) {
	switch x := o.GetOperation().(type) {
	case *kvpb.Operation_Get:
		x.Get.Key = "scribbled"
	case *kvpb.Operation_Put:
		x.Put.Value = "scribbled"
	case *kvpb.Operation_Append:
		x.Append.Value = "scribbled"
	}
	if relayed, ok := m.(*kvpb.RelayResponse); ok {
		for _, r := range relayed.GetResults() {
			r.Result = &kvpb.Result_Get{Get: &kvpb.GetResponse{Value: "scribbled"}}
		}
	}
}

// acknowledge notes a write that its caller was told of, and readings of the clock.
func (x *execution) acknowledge(o *kvpb.Operation, m proto.Message, tenant string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	switch m := m.(type) {
	case *kvpb.GetResponse:
		if key := o.GetGet().GetKey(); key[1] == classClock {
			x.clock = append(x.clock, effect{key: key, version: m.GetVersion()})
		}
	case *kvpb.PutResponse:
		x.acks = append(x.acks, effect{key: o.GetPut().GetKey(), what: "put " + signed(o.GetPut().GetValue(), tenant),
			version: m.GetVersion()})
	case *kvpb.AppendResponse:
		x.acks = append(x.acks, effect{key: o.GetAppend().GetKey(), what: "append " + signed(o.GetAppend().GetValue(),
			tenant), version: m.GetVersion()})
	}
}

// trap misbehaves in code that computed on a wrong guess.
func (x *execution) trap(ctx context.Context, at, digest string) {
	if x.w.plain {
		x.w.oracle.mark(at, digest)
		return
	}
	if right, ok := x.w.oracle.digest(at); ok && right == digest {
		return
	}
	c := x.w.sc.chance
	switch c.below(5, "trap", at, digest) {
	case 0:
		panic("a trap at " + at)
	case 1:
		runtime.Goexit()
	case 2:
		in := &invoker{w: x.w, clients: x.w.clients}
		for i := range 300 { // ignores its errors
			key := keyOf(0, classOwn, i%3)
			_, _ = in.call(ctx, "", 0, operation(kindGet, key, ""))
			time.Sleep(time.Millisecond)
		}
		panic("a trap that is still open at " + at)
	case 3:
		in := &invoker{w: x.w, clients: x.w.clients}
		_, _ = in.call(ctx, "", 0, operation(kindPut, keyOf(0, classOwn, 0), "poison"))
	case 4:
		foresay.OnCommit(ctx, func() { x.w.journal.brokenRule("the commit hook of a trap at %s ran", at) })
		time.Sleep(300 * time.Millisecond)
	}
}

// This file is about programs whose calls are not guessed: Do makes no tasks for them, or only once
// they ask for what only tasks have.

// NewUnguessed returns the scenario of a seed with clients that only observe, or do not even that.
func NewUnguessed(seed uint64) *Scenario {
	sc := NewScenario(seed, false)
	mode := []control.Mode{control.ModeOff, control.ModeObserve}[rand.New(rand.NewPCG(seed, 0x7a5c)).IntN(2)]
	sc.knobs.Unguessed = mode
	return sc
}

// RunUnguessed checks so many of them.
func RunUnguessed(t *testing.T, seeds int) {
	t.Helper()
	run(t, seeds, NewUnguessed)
}

// habitually is how often Do is called with a function that calls nothing before it makes no task
// of it.
const habitually = 64

// unguessed executes a task whose function Do has come to know as one without guesses.
func (w *world) unguessed(ctx context.Context, t *task) (digest string, err error) {
	f := func(practice bool) func(ctx context.Context) (string, error) {
		return func(ctx context.Context) (string, error) {
			if practice {
				return "", nil
			}
			return w.runLink(ctx, t, 0, "")
		}
	}
	for range habitually {
		if digest, err = foresay.Do(ctx, f(true)); err != nil {
			return digest, err
		}
	}
	return foresay.Do(ctx, f(false), foresay.WithName(t.name), foresay.WithLimits(w.sc.knobs.Limits))
}
