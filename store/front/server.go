package front

import (
	"cmp"
	"context"
	"strconv"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	pb "github.com/foresay/foresay/api/foresay/store/v1"
	"github.com/foresay/foresay/internal/callers"
	"github.com/foresay/foresay/store"
	"github.com/foresay/foresay/store/gate"
)

// Server offers a site's gate to clients. Its methods may be called concurrently.
type Server struct {
	pb.UnimplementedStoreServer

	// Cluster is the store's name. Calls of clients that name another store are refused: without
	// certificates nothing else tells that an address is of another one. Empty: all are taken.
	Cluster string
	// Protocol is that of the store, with its mode (store.Protocol.Title). Calls of clients that take
	// it for another one are refused: what they ask for would be understood in part. Empty: all are
	// taken, as are those of clients that do not say.
	Protocol string
	// Shards is how many the store has. Calls of clients that count others are refused: they would
	// look for keys where these are not. 0: all are taken, as are those of clients that do not say.
	Shards int
	// Epoch is that of the machine's topology. Clients that have another one are refused: they
	// count other sites' votes.
	Epoch uint64
	// Deliver hands a message to the gate, as from its application. It may wait until ctx is done
	// for the gate to have room.
	Deliver func(ctx context.Context, msg store.Message) error
	// Describe answers calls of Status. nil: they are not answered.
	Describe func(ctx context.Context) (*pb.StatusResponse, error)

	// Snapshots says that calls of Page are answered (store.Protocol.Snapshots).
	Snapshots bool

	// Alter answers calls of Change. nil: they are not answered.
	Alter func(ctx context.Context, r *pb.ChangeRequest) (*pb.ChangeResponse, error)

	// Lead answers calls of HandOver. nil: they are not answered.
	Lead func(ctx context.Context, r *pb.HandOverRequest) (*pb.HandOverResponse, error)

	// Observe is told of each Read, Commit and Declare that a stream of calls brings when it begins.
	// What it returns is called with the answer, or the error. nil: nobody is told.
	Observe func(method string) (end func(resp any, err error))
	// Stopping is closed when the machine is about to stop: streams of calls end when all calls are
	// answered. nil: it never is.
	Stopping <-chan struct{}

	waiting callers.Table[store.Message] // by what the gate is asked with
}

// Receive takes what the gate says to its application. It does not wait.
func (s *Server) Receive(msg store.Message) {
	var ref uint64
	switch m := msg.(type) {
	case gate.ReadDone:
		ref = m.Ref
	case gate.CommitDone:
		ref = m.Ref
	case gate.DeclareDone:
		ref = m.Ref
	case gate.PageDone:
		ref = m.Ref
	case gate.Refused:
		ref = m.Ref
	default:
		return
	}
	s.waiting.Answer(ref, msg)
}

// expect returns a number for what the gate is asked. answer is called once with what it says,
// unless that is taken back before; it must not wait.
func (s *Server) expect(answer func(store.Message)) uint64 {
	ref, _ := s.waiting.Add(answer) // the table has no bound, and is never closed
	return ref
}

func (s *Server) observe(method string) func(any, error) {
	if s.Observe == nil {
		return func(any, error) {}
	}
	return s.Observe(method)
}

// response returns what a client is told when the gate has said something.
func response(m store.Message) (proto.Message, error) {
	switch m := m.(type) {
	case gate.ReadDone:
		v := m.Reply.Value
		return &pb.ReadResponse{
			Version: versionToWire(v.Version), Present: v.Present, Value: v.Bytes, Pending: m.Reply.Pending, Hint: m.Reply.Hint,
			Queued: m.Reply.Queued, Led: m.Reply.Led,
		}, nil
	case gate.CommitDone:
		return doneToWire(m), nil
	case gate.DeclareDone:
		return declaredToWire(m.Reply), nil
	case gate.PageDone:
		return pageToWire(m.Reply), nil
	case gate.Refused:
		code := codes.InvalidArgument
		switch {
		case m.Full:
			code = codes.ResourceExhausted
		case m.Late:
			code = codes.Unavailable
		}
		return nil, status.Error(code, m.Detail)
	case canceled:
		return nil, status.Error(codes.Canceled, "the client has ended the stream")
	}
	return nil, status.Errorf(codes.Internal, "the gate's answer is a %T", m)
}

// notTaken is the code of calls with which a machine has done nothing, and may do something later.
// gRPC itself never uses it.
const notTaken = codes.Aborted

func noGate(err error) error {
	return status.Errorf(notTaken, "the site's gate does not take calls: %s", status.Convert(err).Message())
}

// ask hands the gate a message that is made with a number, and waits for the answer to that.
func (s *Server) ask(ctx context.Context, msg func(ref uint64) store.Message) (proto.Message, error) {
	answer := make(chan store.Message, 1)
	ref := s.expect(func(m store.Message) { answer <- m })
	if err := s.Deliver(ctx, msg(ref)); err != nil {
		s.waiting.Forget(ref)
		if ctx.Err() != nil {
			return nil, status.FromContextError(ctx.Err()).Err()
		}
		return nil, noGate(err)
	}
	select {
	case m := <-answer:
		return response(m)
	case <-ctx.Done():
	}
	if s.waiting.Forget(ref) {
		brief, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer cancel()
		_ = s.Deliver(brief, gate.Cancel{Ref: ref}) // else the gate has an entry for some time, and answers nobody
	}
	return nil, status.FromContextError(ctx.Err()).Err()
}

// These are the keys of the store's name in the metadata of calls, which may have any bytes, and of
// the protocol and mode that the client takes the store to run, with so many shards.
const (
	clusterKey  = "foresay-store-bin"
	protocolKey = "foresay-store-protocol"
	shardsKey   = "foresay-store-shards"
)

// checkCluster refuses a call that is for another store, or for this one as what it is not.
func (s *Server) checkCluster(ctx context.Context) error {
	if named := metadata.ValueFromIncomingContext(ctx, clusterKey); s.Cluster != "" && len(named) > 0 &&
		named[0] != s.Cluster {
		return status.Errorf(codes.FailedPrecondition, "the client is of the store %.64q, and this machine of %q", named[0],
			s.Cluster)
	}
	if named := metadata.ValueFromIncomingContext(ctx, protocolKey); s.Protocol != "" && len(named) > 0 &&
		named[0] != s.Protocol {
		return status.Errorf(codes.FailedPrecondition, "the client's file says that the store runs %.64q, and it runs %q",
			named[0], s.Protocol)
	}
	if named := metadata.ValueFromIncomingContext(ctx, shardsKey); s.Shards > 0 && len(named) > 0 &&
		named[0] != strconv.Itoa(s.Shards) {
		return status.Errorf(codes.FailedPrecondition,
			"the client's file says that the store has %.20q shards, and it has %d", named[0], s.Shards)
	}
	return nil
}

func (s *Server) checkEpoch(epoch uint64) error {
	if epoch != s.Epoch {
		return status.Errorf(codes.FailedPrecondition,
			"the client knows the store as of epoch %d, and this machine is of epoch %d", epoch, s.Epoch)
	}
	return nil
}

// Read implements the service.
func (s *Server) Read(ctx context.Context, r *pb.ReadRequest) (*pb.ReadResponse, error) {
	if err := cmp.Or(s.checkCluster(ctx), s.checkEpoch(r.GetEpoch())); err != nil {
		return nil, err
	}
	m, err := s.ask(ctx, gateRead(r))
	if err != nil {
		return nil, err
	}
	done, ok := m.(*pb.ReadResponse)
	if !ok {
		return nil, errMixedUp(m)
	}
	return done, nil
}

// Commit implements the service.
func (s *Server) Commit(ctx context.Context, r *pb.CommitRequest) (*pb.CommitResponse, error) {
	if err := cmp.Or(s.checkCluster(ctx), s.checkEpoch(r.GetEpoch())); err != nil {
		return nil, err
	}
	m, err := s.ask(ctx, gateCommit(r))
	if err != nil {
		return nil, err
	}
	done, ok := m.(*pb.CommitResponse)
	if !ok {
		return nil, errMixedUp(m)
	}
	return done, nil
}

// Declare implements the service.
func (s *Server) Declare(ctx context.Context, r *pb.DeclareRequest) (*pb.DeclareResponse, error) {
	if err := cmp.Or(s.checkCluster(ctx), s.checkEpoch(r.GetEpoch())); err != nil {
		return nil, err
	}
	m, err := s.ask(ctx, gateDeclare(r))
	if err != nil {
		return nil, err
	}
	done, ok := m.(*pb.DeclareResponse)
	if !ok {
		return nil, errMixedUp(m)
	}
	return done, nil
}

// Abandon implements the service.
func (s *Server) Abandon(ctx context.Context, r *pb.AbandonRequest) (*pb.AbandonResponse, error) {
	return s.abandon(ctx, s.checkCluster(ctx), r)
}

// abandon tells the gate that a transaction is over which was declared. foreign is the error for
// clients of other stores.
func (s *Server) abandon(ctx context.Context, foreign error, r *pb.AbandonRequest) (*pb.AbandonResponse, error) {
	if err := cmp.Or(foreign, s.checkEpoch(r.GetEpoch())); err != nil {
		return nil, err
	}
	if err := s.Deliver(ctx, gate.Abandon{ID: versionFromWire(r.GetId())}); err != nil {
		return nil, noGate(err)
	}
	return &pb.AbandonResponse{}, nil
}

// Page implements the service.
func (s *Server) Page(ctx context.Context, r *pb.PageRequest) (*pb.PageResponse, error) {
	if err := cmp.Or(s.checkCluster(ctx), s.checkEpoch(r.GetEpoch())); err != nil {
		return nil, err
	}
	if !s.Snapshots {
		return nil, status.Error(codes.Unimplemented, "the store's protocol keeps no versions")
	}
	m, err := s.ask(ctx, gatePage(r))
	if err != nil {
		return nil, err
	}
	done, ok := m.(*pb.PageResponse)
	if !ok {
		return nil, errMixedUp(m)
	}
	return done, nil
}

// Status implements the service.
func (s *Server) Status(ctx context.Context, _ *pb.StatusRequest) (*pb.StatusResponse, error) {
	if s.Describe == nil {
		return nil, status.Error(codes.Unimplemented, "this machine does not tell its status")
	}
	if err := s.checkCluster(ctx); err != nil {
		return nil, err
	}
	return s.Describe(ctx)
}

// Change implements the service.
func (s *Server) Change(ctx context.Context, r *pb.ChangeRequest) (*pb.ChangeResponse, error) {
	if s.Alter == nil {
		return nil, status.Error(codes.Unimplemented, "this machine takes no part in changes of the store")
	}
	if err := s.checkCluster(ctx); err != nil {
		return nil, err
	}
	return s.Alter(ctx, r)
}

// HandOver implements the service.
func (s *Server) HandOver(ctx context.Context, r *pb.HandOverRequest) (*pb.HandOverResponse, error) {
	if s.Lead == nil {
		return nil, status.Error(codes.Unimplemented, "the store's protocol has no leaders")
	}
	if err := cmp.Or(s.checkCluster(ctx), s.checkEpoch(r.GetEpoch())); err != nil {
		return nil, err
	}
	return s.Lead(ctx, r)
}

func errMixedUp(m proto.Message) error {
	return status.Errorf(codes.Internal, "the gate's answer is to another call: %T", m)
}
