package rcgrpc

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	pb "github.com/foresay/foresay/api/foresay/store/v1"
	"github.com/foresay/foresay/store"
	rc "github.com/foresay/foresay/store/replicatedcommit"
)

// Server offers a site's gate to clients. Its methods may be called concurrently.
type Server struct {
	pb.UnimplementedStoreServer

	// Epoch is that of the machine's topology. Clients that have another one are refused: they count other sites' votes.
	Epoch uint64
	// Deliver hands a message to the gate, as from its application. It may wait until ctx is done for the gate to have room.
	Deliver func(ctx context.Context, msg rc.Message) error
	// Describe answers calls of Status. nil: they are not answered.
	Describe func(ctx context.Context) (*pb.StatusResponse, error)

	// Alter answers calls of Change. nil: they are not answered.
	Alter func(ctx context.Context, r *pb.ChangeRequest) (*pb.ChangeResponse, error)

	mu      sync.Mutex
	last    uint64
	waiting map[uint64]chan rc.Message
}

// Receive takes what the gate says to its application. It does not wait.
func (s *Server) Receive(msg rc.Message) {
	var ref uint64
	switch m := msg.(type) {
	case rc.GateReadDone:
		ref = m.Ref
	case rc.GateCommitDone:
		ref = m.Ref
	case rc.GateRefused:
		ref = m.Ref
	default:
		return
	}
	if c := s.take(ref); c != nil {
		c <- msg // it has room for one
	}
}

func (s *Server) take(ref uint64) chan rc.Message {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.waiting[ref]
	delete(s.waiting, ref)
	return c
}

// ask hands the gate a message that is made with a number, and waits for the answer to that.
func (s *Server) ask(ctx context.Context, msg func(ref uint64) rc.Message) (rc.Message, error) {
	answer := make(chan rc.Message, 1)
	s.mu.Lock()
	s.last++
	ref := s.last
	if s.waiting == nil {
		s.waiting = map[uint64]chan rc.Message{}
	}
	s.waiting[ref] = answer
	s.mu.Unlock()
	if err := s.Deliver(ctx, msg(ref)); err != nil {
		s.take(ref)
		if ctx.Err() != nil {
			return nil, status.FromContextError(ctx.Err()).Err()
		}
		return nil, status.Errorf(codes.Unavailable, "the site's gate does not take calls: %v", err)
	}
	select {
	case m := <-answer:
		if r, ok := m.(rc.GateRefused); ok {
			code := codes.InvalidArgument
			switch {
			case r.Full:
				code = codes.ResourceExhausted
			case r.Late:
				code = codes.Unavailable
			}
			return nil, status.Error(code, r.Detail)
		}
		return m, nil
	case <-ctx.Done():
	}
	if s.take(ref) != nil {
		brief, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer cancel()
		_ = s.Deliver(brief, rc.GateCancel{Ref: ref}) // else the gate has an entry for some time, and answers nobody
	}
	return nil, status.FromContextError(ctx.Err()).Err()
}

func (s *Server) checkEpoch(epoch uint64) error {
	if epoch != s.Epoch {
		return status.Errorf(codes.FailedPrecondition, "the client knows the store as of epoch %d, and this machine is of epoch %d", epoch, s.Epoch)
	}
	return nil
}

// Read implements the service.
func (s *Server) Read(ctx context.Context, r *pb.ReadRequest) (*pb.ReadResponse, error) {
	if err := s.checkEpoch(r.GetEpoch()); err != nil {
		return nil, err
	}
	m, err := s.ask(ctx, func(ref uint64) rc.Message {
		return rc.GateRead{Ref: ref, Key: store.Key(r.GetKey()), Priority: priorityFromWire(r.GetPriority())}
	})
	if err != nil {
		return nil, err
	}
	done, ok := m.(rc.GateReadDone)
	if !ok {
		return nil, errMixedUp(m)
	}
	reply := done.Reply
	v := reply.Value
	return &pb.ReadResponse{
		Version: versionToWire(v.Version), Present: v.Present, Value: v.Bytes, Pending: reply.Pending, Hint: reply.Hint, Queued: reply.Queued,
	}, nil
}

// Commit implements the service.
func (s *Server) Commit(ctx context.Context, r *pb.CommitRequest) (*pb.CommitResponse, error) {
	if err := s.checkEpoch(r.GetEpoch()); err != nil {
		return nil, err
	}
	m, err := s.ask(ctx, func(ref uint64) rc.Message {
		return gateCommitFromWire(ref, r)
	})
	if err != nil {
		return nil, err
	}
	done, ok := m.(rc.GateCommitDone)
	if !ok {
		return nil, errMixedUp(m)
	}
	return doneToWire(done), nil
}

// Status implements the service.
func (s *Server) Status(ctx context.Context, _ *pb.StatusRequest) (*pb.StatusResponse, error) {
	if s.Describe == nil {
		return nil, status.Error(codes.Unimplemented, "this machine does not tell its status")
	}
	return s.Describe(ctx)
}

// Change implements the service.
func (s *Server) Change(ctx context.Context, r *pb.ChangeRequest) (*pb.ChangeResponse, error) {
	if s.Alter == nil {
		return nil, status.Error(codes.Unimplemented, "this machine takes no part in changes of the store")
	}
	return s.Alter(ctx, r)
}

func errMixedUp(m rc.Message) error {
	return status.Error(codes.Internal, errors.Join(errAnswer, fmt.Errorf("%T", m)).Error())
}

var errAnswer = errors.New("the gate's answer is to another call")
