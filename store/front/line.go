package front

import (
	"context"
	"maps"
	"runtime"
	"slices"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	pb "github.com/foresay/foresay/api/foresay/store/v1"
	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/store"
)

// A line carries a Conn's small messages to a machine, and the answers. It is a stream, which is
// opened when there is something to send, and again after it broke. What was sent on a stream that
// breaks is not sent again: the node repeats what it still wants to know. Its fields are guarded by
// Conn.mu.
type line struct {
	c       *Conn
	to      *machine
	wake    chan struct{} // has room for one
	running bool
	last    uint64               // of the calls' numbers
	queue   []*lineCall          // those that are not sent yet, the oldest first
	sent    map[uint64]*lineCall // those that are, and have no answer
	heard   time.Time            // when the last answer came, or something was sent while nothing waited for one
	reset   context.CancelFunc   // ends the stream; nil if there is none
}

// lineCall is a message on its way.
type lineCall struct {
	*call
	id    protocol.ID
	msg   store.Message
	until time.Time // when the node no longer waits for it
	told  bool      // its request knows that the machine cannot be reached
}

// push sends a message, if that can be done until a timeout.
func (l *line) push(k *call, id protocol.ID, msg store.Message, timeout time.Duration) {
	now := time.Now()
	l.prune(now)
	s := &lineCall{call: k, id: id, msg: msg, until: now.Add(timeout)}
	k.cancel = func() {
		l.c.mu.Lock()
		defer l.c.mu.Unlock()
		if i := slices.Index(l.queue, s); i >= 0 {
			l.queue = slices.Delete(l.queue, i, i+1)
			s.request.wg.Done()
		}
	}
	l.queue = append(l.queue, s)
	if !l.running {
		l.running = true
		l.c.wg.Go(l.run)
	}
	signal(l.wake)
}

// prune forgets what it is too late to send, and ends a stream from which nothing is heard: its
// machine, when it goes on, is not to do all that nobody waits for any more.
func (l *line) prune(now time.Time) {
	for len(l.queue) > 0 && l.queue[0].until.Before(now) {
		l.queue[0].request.wg.Done()
		l.queue = l.queue[1:]
		signal(l.c.parted)
	}
	if len(l.sent) > 0 && now.Sub(l.heard) > max(stuckAfter*l.c.cfg.RoundTrip, leastStuck) && l.reset != nil {
		l.reset()
	}
}

// abandons reports whether an AbandonRequest waits to be sent, or to be answered.
func (l *line) abandons() bool {
	is := func(s *lineCall) bool {
		_, ok := s.msg.(store.AbandonRequest)
		return ok
	}
	return slices.ContainsFunc(l.queue, is) || slices.ContainsFunc(slices.Collect(maps.Values(l.sent)), is)
}

// A machine answers all calls within some round trips, if it is only to say that its site does not:
// see Gate.
const (
	stuckAfter = 12
	leastStuck = 4 * time.Second
)

// run opens streams while the Conn is open.
func (l *line) run() {
	for {
		select {
		case <-l.wake:
		case <-l.c.closing.Done():
			return
		}
		ctx, cancel := context.WithCancel(l.c.closing)
		if stream := l.connect(ctx); stream != nil {
			l.carry(ctx, cancel, stream)
		}
		cancel()
	}
}

// connect opens a stream. While that fails, requests are told so at once, and their messages wait
// all the same.
func (l *line) connect(ctx context.Context) pb.Store_CallsClient {
	stream, err := l.to.stub.Calls(ctx, grpc.WaitForReady(false))
	for wait := 100 * time.Millisecond; err != nil; wait = min(2*wait, 2*time.Second) {
		l.failed(err)
		first, opened := err, make(chan struct{})
		go func() {
			defer close(opened)
			stream, err = l.to.stub.Calls(ctx, grpc.WaitForReady(true))
		}()
		for waiting := true; waiting; {
			select {
			case <-l.wake:
				l.failed(first)
			case <-opened:
				waiting = false
			}
		}
		if ctx.Err() != nil {
			return nil
		}
		if err != nil { // it does not wait for a connection: the client's own credentials fail, say
			sleep(ctx, wait)
		}
	}
	return stream
}

func sleep(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// failed tells the requests of all messages that wait that the machine cannot be reached.
func (l *line) failed(err error) {
	var hopeless []*request
	l.c.mu.Lock()
	for _, s := range l.queue {
		if !s.told {
			s.told = true
			if l.c.note(s.call, err, false, false) {
				hopeless = append(hopeless, s.request)
			}
		}
	}
	l.c.mu.Unlock()
	for _, r := range hopeless {
		l.c.abandon(r)
	}
}

// carry sends and receives until the stream breaks.
func (l *line) carry(ctx context.Context, cancel context.CancelFunc, stream pb.Store_CallsClient) {
	l.c.mu.Lock()
	l.reset, l.sent = cancel, map[uint64]*lineCall{}
	l.c.reached = true
	l.c.mu.Unlock()
	broken := make(chan error, 1)
	l.c.wg.Go(func() { broken <- l.receive(stream) })
	err := l.send(ctx, stream, broken)
	if cancel(); err == nil {
		err = <-broken
	}
	l.c.mu.Lock()
	defer l.c.mu.Unlock()
	for _, s := range l.sent {
		l.c.note(s.call, err, true, false) // it may have been taken
	}
	l.sent, l.reset = nil, nil
	signal(l.c.parted)
	if len(l.queue) > 0 {
		signal(l.wake)
	}
}

// send sends what waits. It returns nil when the stream broke, and receive will tell why, or else
// why.
func (l *line) send(ctx context.Context, stream pb.Store_CallsClient, broken chan error) error {
	for {
		if batch := l.take(); batch != nil {
			if stream.Send(batch) != nil {
				return nil
			}
			continue
		}
		select {
		case <-l.wake:
			runtime.Gosched() // others that can go on add to the batch
		case err := <-broken:
			broken <- err
			return nil
		case <-ctx.Done():
			return status.Error(codes.Unavailable, "nothing was heard of it for long")
		}
	}
}

// take returns messages that fit into a batch, nil if there are none or too many wait for answers.
func (l *line) take() *pb.CallBatch {
	l.c.mu.Lock()
	defer l.c.mu.Unlock()
	now, bytes := time.Now(), 0
	l.prune(now)
	if len(l.sent) == 0 {
		l.heard = now
	}
	var batch *pb.CallBatch
	for len(l.queue) > 0 && len(l.sent) < maxOpen && bytes < batchBytes {
		s := l.queue[0]
		l.queue = l.queue[1:]
		l.last++
		wire := &pb.Call{Number: l.last}
		switch m := s.msg.(type) {
		case store.ReadRequest:
			wire.Request = &pb.Call_Read{Read: readToWire(m, l.c.cfg.Topology.Epoch)}
		case store.CommitRequest, store.SpeculateRequest:
			of, _ := commitOf(m)
			wire.Request = &pb.Call_Commit{Commit: encodedToWire(m, s.request.encode(of.Txn), l.c.cfg.Topology.Epoch)}
			bytes += of.Bytes()
		case store.DeclareRequest:
			wire.Request = &pb.Call_Declare{Declare: declareToWire(m, l.c.cfg.Topology.Epoch)}
			bytes += m.Bytes()
		case store.AbandonRequest:
			wire.Request = &pb.Call_Abandon{Abandon: &pb.AbandonRequest{Id: versionToWire(m.ID), Epoch: l.c.cfg.Topology.Epoch}}
		}
		if batch == nil {
			batch = &pb.CallBatch{}
		}
		batch.Calls = append(batch.Calls, wire)
		l.sent[l.last] = s
		s.taken = true // for all that is known from now on
		s.request.wg.Done()
	}
	return batch
}

// receive hands answers to the node until the stream breaks.
func (l *line) receive(stream pb.Store_CallsClient) error {
	for {
		batch, err := stream.Recv()
		if err != nil {
			return err
		}
		outdated := false
		var hopeless []*request
		l.c.mu.Lock()
		l.heard = time.Now()
		for _, a := range batch.GetAnswers() {
			s := l.sent[a.GetNumber()]
			if s == nil {
				continue
			}
			delete(l.sent, a.GetNumber())
			resp, err := fromAnswer(a)
			outdated = outdated || status.Code(err) == codes.FailedPrecondition
			if l.c.note(s.call, err, true, false) {
				hopeless = append(hopeless, s.request)
			}
			if msg := fromWire(s.msg, resp); msg != nil {
				l.c.node.Arrive(s.id, msg, proto.Size(a))
			}
		}
		l.c.mu.Unlock()
		signal(l.c.parted)
		signal(l.wake) // there may be room
		if outdated && l.c.cfg.Outdated != nil {
			l.c.cfg.Outdated(l.to.name)
		}
		for _, r := range hopeless {
			l.c.abandon(r)
		}
	}
}

func fromAnswer(a *pb.Answer) (proto.Message, error) {
	switch r := a.GetResponse().(type) {
	case *pb.Answer_Read:
		return r.Read, nil
	case *pb.Answer_Commit:
		return r.Commit, nil
	case *pb.Answer_Declare:
		return r.Declare, nil
	case *pb.Answer_Abandon:
		return r.Abandon, nil
	case *pb.Answer_Failure:
		return nil, status.Error(codes.Code(r.Failure.GetCode()), r.Failure.GetMessage())
	}
	return nil, status.Error(codes.Internal, "an answer that says nothing")
}

// fromWire returns the message that a node would have got for one of its own, or nil if the
// response is to something else.
func fromWire(msg store.Message, resp proto.Message) store.Message {
	switch m := msg.(type) {
	case store.ReadRequest:
		if r, ok := resp.(*pb.ReadResponse); ok {
			return readFromWire(m.Ref, r)
		}
	case store.CommitRequest, store.SpeculateRequest:
		if r, ok := resp.(*pb.CommitResponse); ok {
			of, _ := commitOf(m)
			return doneFromWire(of.Txn.ID, r)
		}
	case store.DeclareRequest:
		if r, ok := resp.(*pb.DeclareResponse); ok {
			return declaredFromWire(m, r)
		}
	}
	return nil
}
