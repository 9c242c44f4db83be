package front

import (
	"context"
	"errors"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"

	pb "github.com/foresay/foresay/api/foresay/store/v1"
	"github.com/foresay/foresay/store"
	"github.com/foresay/foresay/store/client"
	"github.com/foresay/foresay/store/gate"
)

// A site is a machine with a gate that a test makes up.
type site struct {
	Server
	listener *bufconn.Listener
	grpc     *grpc.Server
	done     chan error
	streams  atomic.Int64 // of calls, ever
	messages atomic.Int64 // on them
	limit    int64        // each stream breaks after so many; 0: none does
}

// newSite serves. gate is called with what the site's gate is asked, and says what the gate
// answers, nil if it says nothing.
func newSite(t *testing.T, gate func(store.Message) store.Message) *site {
	s := &site{listener: bufconn.Listen(1 << 16), done: make(chan error, 1)}
	s.Epoch = 1
	s.Deliver = func(_ context.Context, msg store.Message) error {
		if answer := gate(msg); answer != nil {
			go s.Receive(answer)
		}
		return nil
	}
	s.grpc = grpc.NewServer(grpc.StreamInterceptor(func(srv any, stream grpc.ServerStream, _ *grpc.StreamServerInfo,
		handler grpc.StreamHandler) error {
		s.streams.Add(1)
		return handler(srv, &countedStream{ServerStream: stream, site: s})
	}))
	pb.RegisterStoreServer(s.grpc, s)
	go func() { s.done <- s.grpc.Serve(s.listener) }()
	return s
}

func (s *site) stop(t *testing.T) {
	s.grpc.Stop()
	if err := <-s.done; err != nil {
		t.Error(err)
	}
}

func (s *site) dial(ctx context.Context) (net.Conn, error) { return s.listener.DialContext(ctx) }

type countedStream struct {
	grpc.ServerStream
	site *site
	n    int64
}

func (c *countedStream) RecvMsg(m any) error {
	if c.site.limit > 0 && c.n >= c.site.limit {
		return status.Error(codes.Internal, "the test breaks the stream")
	}
	c.n++
	c.site.messages.Add(1)
	return c.ServerStream.RecvMsg(m)
}

// agree is a gate that has a value for every key, and agrees to everything.
func agree(value []byte) func(store.Message) store.Message {
	return func(msg store.Message) store.Message {
		switch m := msg.(type) {
		case gate.Read:
			return gate.ReadDone{Ref: m.Ref, Reply: store.ReadReply{
				Value: store.Value{Version: store.Version{Time: 1, Client: 1}, Present: true, Bytes: value}}}
		case gate.Commit:
			return gate.CommitDone{Ref: m.Ref, Vote: store.SiteVote{ID: m.Txn.ID, Yes: true}}
		}
		return nil
	}
}

// sites returns a connection to three.
func sites(t *testing.T, all ...*site) *Conn {
	return threeSites(t, func(ctx context.Context, address string) (net.Conn, error) {
		return all[address[0]-'a'].dial(ctx)
	})
}

// TestCallsShareAStream: all small calls to a machine are on one stream, in fewer messages than
// there are calls, and each has its own answer; answers as large as a message may be do not break
// it.
func TestCallsShareAStream(t *testing.T) {
	for _, bytes := range []int{10, 1 << 20} {
		synctest.Test(t, func(t *testing.T) {
			var all []*site
			for range 3 {
				all = append(all, newSite(t, agree(make([]byte, bytes))))
			}
			conn := sites(t, all...)
			const calls = 100
			var wg sync.WaitGroup
			for range calls {
				wg.Go(func() {
					if a, err := begin(conn).Read(t.Context(), "k", nil); err != nil || len(a.Value.Bytes) != bytes {
						t.Errorf("a read returns %d bytes (%v), want %d", len(a.Value.Bytes), err, bytes)
					}
				})
				wg.Go(func() {
					if o := begin(conn).Commit(t.Context(), write).Outcome; o.Verdict != store.Committed {
						t.Errorf("a commit is %+v", o)
					}
				})
			}
			wg.Wait()
			synctest.Wait() // two sites are enough for an answer
			for i, s := range all {
				if n, m := s.streams.Load(), s.messages.Load(); n != 1 || m >= 2*calls {
					t.Errorf("site %d: %d calls are in %d messages on %d streams", i, 2*calls, m, n)
				}
			}
			conn.Close()
			for _, s := range all {
				s.stop(t)
			}
		})
	}
}

// TestStreamsBreak: a client whose streams break every few messages is answered all the same.
func TestStreamsBreak(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var all []*site
		for range 3 {
			s := newSite(t, agree([]byte("v")))
			s.limit = 3
			all = append(all, s)
		}
		conn := sites(t, all...)
		for i := range 50 {
			if _, err := begin(conn).Read(t.Context(), "k", nil); err != nil {
				t.Errorf("read %d: %v", i, err)
			}
			if o := begin(conn).Commit(t.Context(), write).Outcome; o.Verdict != store.Committed {
				t.Errorf("commit %d is %+v", i, o)
			}
		}
		conn.Close()
		for i, s := range all {
			if n := s.streams.Load(); n < 10 {
				t.Errorf("site %d: there were %d streams", i, n)
			}
			s.stop(t)
		}
	})
}

// TestSilentMachine: a machine that takes calls and says nothing, as one that is stopped does, gets
// no more than a number of them, and they are taken back when nobody waits for them any more, so
// that it has little to do when it goes on.
func TestSilentMachine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var taken, cancelled, ended atomic.Int64
		silent := newSite(t, func(msg store.Message) store.Message {
			switch msg.(type) {
			case gate.Cancel:
				cancelled.Add(1)
			default:
				taken.Add(1)
			}
			return nil
		})
		silent.Observe = func(string) func(any, error) {
			return func(_ any, err error) {
				if status.Code(err) == codes.Canceled {
					ended.Add(1)
				}
			}
		}
		all := []*site{newSite(t, agree(nil)), newSite(t, agree(nil)), silent}
		conn := sites(t, all...)
		const each, seconds = 100, 60
		for range seconds {
			for range each {
				if o := begin(conn).Commit(t.Context(), write).Outcome; o.Verdict != store.Committed {
					t.Fatalf("a commit is %+v", o)
				}
			}
			time.Sleep(time.Second)
		}
		if n := silent.streams.Load(); n < 2 || n > seconds/int64(leastStuck/time.Second) {
			t.Errorf("there were %d streams to a machine that is silent for %d s", n, seconds)
		}
		if left := taken.Load() - cancelled.Load(); left > maxOpen/2 {
			t.Errorf("of %d calls %d are taken back", taken.Load(), cancelled.Load())
		}
		conn.Close()
		synctest.Wait()
		if taken.Load() != cancelled.Load() {
			t.Errorf("of %d calls %d are taken back when the client has gone", taken.Load(), cancelled.Load())
		}
		if ended.Load() != cancelled.Load() {
			t.Errorf("%d calls are taken back, %d end as canceled", cancelled.Load(), ended.Load())
		}
		for _, s := range all {
			s.stop(t)
		}
	})
}

// TestMachineStops: a machine that stops answers what it has been asked, and ends the stream then.
func TestMachineStops(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		asked := make(chan gate.Commit, 1)
		stopping := make(chan struct{})
		slow := newSite(t, func(msg store.Message) store.Message {
			if m, ok := msg.(gate.Commit); ok {
				asked <- m
			}
			return nil
		})
		slow.Stopping = stopping
		refuse := errors.New("refused")
		conn := threeSites(t, func(ctx context.Context, address string) (net.Conn, error) {
			if address == "a:2" {
				return slow.dial(ctx)
			}
			return nil, refuse
		})
		done := make(chan client.Decision, 1)
		go func() { done <- begin(conn).Commit(t.Context(), write) }()
		m := <-asked
		close(stopping)
		stopped := make(chan struct{})
		go func() {
			slow.grpc.GracefulStop()
			close(stopped)
		}()
		synctest.Wait()
		select {
		case <-stopped:
			t.Error("the machine stopped while a call waited")
		default:
		}
		slow.Receive(gate.CommitDone{Ref: m.Ref, Known: true, Decided: store.Decided{ID: m.Txn.ID, Verdict: store.Committed}})
		<-stopped
		if d := <-done; d.Outcome.Verdict != store.Committed {
			t.Errorf("the commit is %+v", d.Outcome)
		}
		conn.Close()
		if err := <-slow.done; err != nil {
			t.Error(err)
		}
	})
}

// TestCallsThatMakeNoSense: a stream answers each call by itself, and goes on.
func TestCallsThatMakeNoSense(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t, func(msg store.Message) store.Message {
			if m, ok := msg.(gate.Read); ok && m.Key == "full" {
				return gate.Refused{Ref: m.Ref, Full: true, Detail: "no room"}
			}
			return agree([]byte("v"))(msg)
		})
		conn := sites(t, s, s, s)
		stream, err := conn.machines[conn.cfg.Topology.Sites[0].CoordinatorID(0)].stub.Calls(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		read := func(number, epoch uint64, key string) *pb.Call {
			return &pb.Call{Number: number, Request: &pb.Call_Read{Read: &pb.ReadRequest{Key: []byte(key), Epoch: epoch}}}
		}
		calls := []*pb.Call{read(1, 1, "k"), read(2, 9, "k"), {Number: 3}, read(4, 1, "full"),
			{Number: 5, Request: &pb.Call_Commit{}}, nil}
		if err := stream.Send(&pb.CallBatch{Calls: calls}); err != nil {
			t.Fatal(err)
		}
		want := map[uint64]codes.Code{1: codes.OK, 2: codes.FailedPrecondition, 3: codes.Unimplemented,
			4: codes.ResourceExhausted, 5: codes.FailedPrecondition, 0: codes.Unimplemented}
		for len(want) > 0 {
			batch, err := stream.Recv()
			if err != nil {
				t.Fatalf("%v; no answers to %v", err, want)
			}
			for _, a := range batch.GetAnswers() {
				_, err := fromAnswer(a)
				if code, ok := want[a.GetNumber()]; !ok || status.Code(err) != code {
					t.Errorf("call %d is answered with %v, want %v", a.GetNumber(), err, code)
				}
				delete(want, a.GetNumber())
			}
		}
		conn.Close()
		s.stop(t)
	})
}
