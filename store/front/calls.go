package front

import (
	"cmp"
	"context"
	"io"
	"maps"
	"runtime"
	"slices"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	pb "github.com/foresay/foresay/api/foresay/store/v1"
	"github.com/foresay/foresay/store"
	"github.com/foresay/foresay/store/gate"
)

const (
	// maxOpen is how many calls of a stream may be without an answer that has left: no more are
	// read, or sent, until there are fewer.
	maxOpen = 2048
	// batchBytes is about how much goes into a batch of calls or answers, unless a single one is
	// larger. gRPC refuses messages of more than 4 MiB.
	batchBytes = 256 << 10
)

// A callStream serves a stream of calls.
type callStream struct {
	server *Server
	stream pb.Store_CallsServer
	open   chan struct{} // has room for as many calls as may be without an answer
	wake   chan struct{} // has room for one; there are answers

	foreign error // for all calls; nil: the client is of this store

	mu      sync.Mutex
	refs    map[uint64]bool // calls that wait in the server's table
	answers []*pb.Answer
}

// canceled is what ends a call in place of the gate's answer when its stream has ended.
type canceled struct{}

// Calls implements the service.
func (s *Server) Calls(stream pb.Store_CallsServer) error {
	c := &callStream{server: s, stream: stream, foreign: s.checkCluster(stream.Context()),
		open: make(chan struct{}, maxOpen), wake: make(chan struct{}, 1), refs: map[uint64]bool{}}
	read := make(chan error, 1)
	go func() { read <- c.read() }() // only the return of this function ends the stream, and with it the reading
	err := c.send(read)
	c.cancel()
	return err
}

// read hands calls to the gate until the client ends the stream.
func (c *callStream) read() error {
	for {
		batch, err := c.stream.Recv()
		if err == io.EOF {
			return nil
		} else if err != nil {
			return err
		}
		for _, call := range batch.GetCalls() {
			select {
			case c.open <- struct{}{}:
			case <-c.stream.Context().Done():
				return c.stream.Context().Err()
			}
			c.begin(call)
		}
	}
}

// begin hands a call to the gate.
func (c *callStream) begin(call *pb.Call) {
	s := c.server
	number, end := call.GetNumber(), func(any, error) {}
	var epoch uint64
	var msg func(ref uint64) store.Message
	switch r := call.GetRequest().(type) {
	case *pb.Call_Read:
		epoch, msg, end = r.Read.GetEpoch(), gateRead(r.Read), s.observe("Read")
	case *pb.Call_Commit:
		epoch, msg, end = r.Commit.GetEpoch(), gateCommit(r.Commit), s.observe("Commit")
	case *pb.Call_Declare:
		epoch, msg, end = r.Declare.GetEpoch(), gateDeclare(r.Declare), s.observe("Declare")
	case *pb.Call_Abandon:
		resp, err := s.abandon(c.stream.Context(), c.foreign, r.Abandon)
		c.answer(number, resp, err, end)
		return
	default:
		c.answer(number, nil, status.Errorf(codes.Unimplemented, "call %d asks for nothing that this machine knows", number),
			end)
		return
	}
	if err := cmp.Or(c.foreign, s.checkEpoch(epoch)); err != nil {
		c.answer(number, nil, err, end)
		return
	}
	var ref uint64
	ref = s.expect(func(m store.Message) { // not before the gate is asked
		resp, err := response(m)
		c.forget(ref)
		c.answer(number, resp, err, end)
	})
	c.mu.Lock()
	c.refs[ref] = true
	c.mu.Unlock()
	if err := s.Deliver(c.stream.Context(), msg(ref)); err != nil && s.waiting.Forget(ref) {
		c.forget(ref)
		c.answer(number, nil, noGate(err), end)
	}
}

func (c *callStream) forget(ref uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.refs, ref)
}

// answer has a call's answer sent. It does not wait.
func (c *callStream) answer(number uint64, resp proto.Message, err error, end func(any, error)) {
	end(resp, err)
	a := &pb.Answer{Number: number}
	if err != nil {
		resp = nil
	}
	switch r := resp.(type) {
	case *pb.ReadResponse:
		a.Response = &pb.Answer_Read{Read: r}
	case *pb.CommitResponse:
		a.Response = &pb.Answer_Commit{Commit: r}
	case *pb.DeclareResponse:
		a.Response = &pb.Answer_Declare{Declare: r}
	case *pb.AbandonResponse:
		a.Response = &pb.Answer_Abandon{Abandon: r}
	default:
		s := status.Convert(err)
		a.Response = &pb.Answer_Failure{Failure: &pb.Failure{Code: uint32(s.Code()), Message: s.Message()}}
	}
	c.mu.Lock()
	c.answers = append(c.answers, a)
	c.mu.Unlock()
	signal(c.wake)
}

func signal(wake chan struct{}) {
	select {
	case wake <- struct{}{}:
	default:
	}
}

// send sends answers until the client has ended the stream, or the machine stops and all calls are
// answered.
func (c *callStream) send(read <-chan error) error {
	stopping, ending := c.server.Stopping, false
	for {
		batch, left := c.take()
		if len(batch) > 0 {
			if err := c.stream.Send(&pb.AnswerBatch{Answers: batch}); err != nil {
				return err
			}
			continue
		}
		if ending && left == 0 {
			return status.Error(codes.Unavailable, "the machine stops")
		}
		select {
		case <-c.wake:
			runtime.Gosched() // others that can go on add to the batch
		case err := <-read:
			return err
		case <-stopping:
			stopping, ending = nil, true
		}
	}
}

// take returns answers that fit into a message, and tells how many calls have none yet.
func (c *callStream) take() (batch []*pb.Answer, left int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	n, bytes := 0, 0
	for n < len(c.answers) && (n == 0 || bytes < batchBytes) {
		if bytes += proto.Size(c.answers[n]); n > 0 && bytes > batchBytes {
			break
		}
		n++
		<-c.open
	}
	batch, c.answers = c.answers[:n:n], c.answers[n:]
	return batch, len(c.refs)
}

// cancel takes back what nobody waits for any more: else the gate would have it for some time, and
// answer nobody.
func (c *callStream) cancel() {
	c.mu.Lock()
	refs := slices.Collect(maps.Keys(c.refs))
	c.mu.Unlock()
	brief, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	for _, ref := range refs {
		if !c.server.waiting.Answer(ref, canceled{}) {
			continue // the gate's answer is on its way
		}
		_ = c.server.Deliver(brief, gate.Cancel{Ref: ref}) // see above; nothing else depends on it
	}
}
