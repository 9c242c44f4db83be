package specgrpc

import (
	"context"
	"slices"
	"time"
)

// turn is the place in line of a confirmed caller's call at a full connection. There grpc gives a
// stream that becomes free to whoever comes first, and sends those that come too late to the end
// of its own queue, so that some calls wait for several times as long as others. Calls of older
// tasks go first here, by at most overtaking, so that a task of many calls keeps nobody out. Only
// a few calls at a time wait in grpc's queue. Those show how many streams the peer admits, and see
// to it that somebody always gets the next one.
type turn struct {
	began time.Time // the task, or the call less overtaking
	since look
	come  chan struct{}
}

// overtaking is how much later a call that goes first may have come if its task has made more than
// fewCalls: the calls of younger tasks are to get their turns before it ends.
const (
	overtaking = time.Second
	fewCalls   = 32
)

// insideGRPC is how many calls may wait in grpc's own queue. Where no limit is known they do not
// wait there, and there may be one more for every four streams.
const insideGRPC = 2

// want notes that a call of a confirmed caller needs a stream, and returns when it may open one.
func (r *room) want(ctx context.Context) look {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.wanting++
	r.age(r.demand())
	if r.serve(); len(r.line) == 0 && r.straight(r.wanting-1) {
		return r.asks()
	}
	r.mu.Unlock()
	t := &turn{began: inLine(taskOf(ctx)), come: make(chan struct{})}
	r.mu.Lock()
	r.join(t)
	r.mu.Unlock()
	r.full()
	select {
	case <-t.come:
	case <-ctx.Done(): // grpc has an error for that
	}
	r.mu.Lock()
	if i := slices.Index(r.line, t); i >= 0 {
		r.line = slices.Delete(r.line, i, i+1)
		t.since = r.asks()
	}
	return t.since
}

// join puts a call in line. Under mu.
func (r *room) join(t *turn) {
	i, _ := slices.BinarySearchFunc(r.line, t, func(a, b *turn) int {
		if a.began.After(b.began) {
			return 1
		}
		return -1 // who comes later stands behind
	})
	r.line = slices.Insert(r.line, i, t)
	r.serve()
}

// inLine returns what place in line a call takes now whose task began then and has made so many.
func inLine(began time.Time, calls int) time.Time {
	if first := time.Now().Add(-overtaking); calls > fewCalls && began.Before(first) {
		return first
	}
	return began
}

// taskOf returns when the task began that makes the call of this context, and how many it has made.
func taskOf(ctx context.Context) (began time.Time, calls int) {
	if out, ok := ctx.Value(outgoingKey{}).(*outgoing); ok {
		return out.attempt.TaskBegan(), out.attempt.TaskCalls()
	}
	return time.Now(), 1
}

// straight reports whether one more call may ask grpc for a stream, beside so many of confirmed
// callers that have. Those that asked before a limit was known do not count: calls of older tasks
// would have to wait until all of them have had their turns. Under mu.
func (r *room) straight(inside int) bool {
	most, streams := r.streams.most, r.open-r.opening
	if !r.streams.sure { // it may have one
		return inside < insideGRPC+streams/4 || !r.ready()
	}
	return inside-r.flood < insideGRPC || streams+r.lookout.before+r.lookout.after < most
}

// call calls up those whose turn it is. Under mu.
func (r *room) call() {
	for len(r.line) > 0 && r.straight(r.wanting-len(r.line)) {
		t := r.line[0]
		r.line[0] = nil
		r.line = r.line[1:]
		t.since = r.asks()
		close(t.come)
	}
}
