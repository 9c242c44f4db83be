package interop

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/stats"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/tap"

	"github.com/foresay/foresay"
	kvpb "github.com/foresay/foresay/api/foresay/testkv/v1"
)

// message shows that statuses carry more than ASCII.
const message = "kein Schlüssel: 鍵 ☂"

// kv is the service that the servers in Go serve: handlers that any gRPC server
// can have. testdata/store.py does the same in Python. Get of some keys does
// something of its own; keys that begin with ! are what the tests ask beside
// the calls under test, and are not in the log.
type kv struct {
	kvpb.UnimplementedTestKVServer

	mu      sync.Mutex
	changed chan struct{} // closed and replaced at each change
	values  map[string]*kvpb.GetResponse
	log     []string // what handlers did
	streams []string // the speculative streams that arrived, whoever handles them
	gated   bool
	blocked map[string]bool // Gets that have begun to wait for their end
	freed   map[string]bool // and those whose context ended
}

func newKV() *kv {
	s := &kv{changed: make(chan struct{})}
	s.reset("")
	return s
}

// reset begins anew. If gated, a key that begins with gate answers only when a
// speculative stream has arrived.
func (s *kv) reset(what string) {
	s.change(func() {
		s.values = make(map[string]*kvpb.GetResponse)
		for k, v := range map[string]string{"gate": "one", "one": "two", "two": "three", "predicting": "four",
			"predicting right": "five"} {
			s.values[k] = &kvpb.GetResponse{Value: v, Version: 1}
		}
		s.log, s.streams, s.gated = nil, nil, what == "gated"
		s.blocked, s.freed = make(map[string]bool), make(map[string]bool)
	})
}

// change makes a change and wakes those who wait for one.
func (s *kv) change(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f()
	close(s.changed)
	s.changed = make(chan struct{})
}

// await waits until done, which is asked under the mutex.
func (s *kv) await(ctx context.Context, done func() bool) error {
	for {
		s.mu.Lock()
		ok, changed := done(), s.changed
		s.mu.Unlock()
		if ok {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (s *kv) note(format string, args ...any) {
	s.change(func() { s.log = append(s.log, fmt.Sprintf(format, args...)) })
}

// options returns what a server of s is made with: it notes which speculative
// streams arrive, which also a server does that does not know them, and how
// requests are compressed.
func (s *kv) options() []grpc.ServerOption {
	return []grpc.ServerOption{
		grpc.InTapHandle(func(ctx context.Context, info *tap.Info) (context.Context, error) {
			if strings.HasSuffix(info.FullMethodName, ".spec") {
				s.change(func() { s.streams = append(s.streams, info.FullMethodName) })
			}
			return ctx, nil
		}),
		grpc.StatsHandler(encodings{}),
	}
}

// control does what the tests ask beside the calls under test.
func (s *kv) control(ctx context.Context, command string) (*kvpb.GetResponse, error) {
	verb, what, _ := strings.Cut(command, " ")
	r := new(kvpb.GetResponse)
	switch verb {
	case "!reset":
		s.reset(what)
	case "!log":
		s.change(func() { r.Value, s.log = strings.Join(s.log, "\n"), nil })
	case "!streams":
		s.change(func() { r.Value = strings.Join(s.streams, "\n") })
	case "!streamed":
		return r, s.await(ctx, func() bool { return len(s.streams) > 0 })
	case "!noted":
		return r, s.await(ctx, func() bool { return slices.Contains(s.log, what) })
	case "!blocked":
		return r, s.await(ctx, func() bool { return s.blocked[what] })
	case "!freed":
		return r, s.await(ctx, func() bool { return s.freed[what] })
	}
	return r, nil
}

func (s *kv) Get(ctx context.Context, r *kvpb.GetRequest) (*kvpb.GetResponse, error) {
	key := r.GetKey()
	if strings.HasPrefix(key, "!") {
		return s.control(ctx, key)
	}
	s.note("get %s", strings.TrimRight(key, " "))
	switch {
	case strings.HasPrefix(key, "gate"):
		if err := s.await(ctx, func() bool { return !s.gated || len(s.streams) > 0 }); err != nil {
			return nil, err
		}
		return s.read(key), nil
	case strings.HasPrefix(key, "block"):
		s.change(func() { s.blocked[key] = true })
		<-ctx.Done()
		s.change(func() { s.freed[key] = true })
		return nil, ctx.Err()
	case key == "big":
		return &kvpb.GetResponse{Value: strings.Repeat("x", 3<<20)}, nil
	case key == "metadata":
		return aboutMetadata(ctx)
	case strings.HasPrefix(key, "encoding"):
		return &kvpb.GetResponse{Value: encodingOf(ctx)}, nil
	case key == "time left":
		return timeLeft(ctx), nil
	case key == "predicting":
		return s.read(key), foresay.Predict(ctx, &kvpb.GetResponse{Value: "an early answer"})
	case key == "predicting right":
		return s.read(key), foresay.Predict(ctx, s.read(key))
	case key == "missing", key == "after headers", key == "no status", key == "own deadline":
		return nil, failure(ctx, key)
	}
	return s.read(key), nil
}

func (s *kv) read(key string) *kvpb.GetResponse {
	s.mu.Lock()
	defer s.mu.Unlock()
	v := s.values[key]
	return &kvpb.GetResponse{Value: v.GetValue(), Version: v.GetVersion()}
}

func (s *kv) write(key, value string, add bool) (r *kvpb.GetResponse) {
	s.change(func() {
		v := s.values[key]
		if add {
			value = v.GetValue() + value
		}
		r = &kvpb.GetResponse{Value: value, Version: v.GetVersion() + 1}
		s.values[key] = r
	})
	return r
}

func (s *kv) Put(_ context.Context, r *kvpb.PutRequest) (*kvpb.PutResponse, error) {
	s.note("put %s=%s", r.GetKey(), r.GetValue())
	return &kvpb.PutResponse{Version: s.write(r.GetKey(), r.GetValue(), false).GetVersion()}, nil
}

// Append may be declared to stage its effect: it waits until its caller is known
// to be right. Served plainly it does not wait.
func (s *kv) Append(ctx context.Context, r *kvpb.AppendRequest) (*kvpb.AppendResponse, error) {
	if err := foresay.Barrier(ctx); err != nil {
		return nil, err
	}
	s.note("append %s+=%s", r.GetKey(), r.GetValue())
	v := s.write(r.GetKey(), r.GetValue(), true)
	return &kvpb.AppendResponse{Value: v.GetValue(), Version: v.GetVersion()}, nil
}

// failure returns what Get of some keys fails with.
func failure(ctx context.Context, key string) error {
	switch key {
	case "missing":
		st, err := status.New(codes.NotFound, message).WithDetails(&kvpb.Failure{Code: uint32(codes.NotFound),
			Message: message})
		if err != nil {
			return err
		}
		return st.Err()
	case "after headers":
		if err := grpc.SendHeader(ctx, metadata.Pairs("x-header", "sent")); err != nil {
			return err
		}
		if err := grpc.SetTrailer(ctx, metadata.Pairs("x-trailer", "last")); err != nil {
			return err
		}
		return status.Error(codes.Aborted, "after the headers")
	case "own deadline":
		return fmt.Errorf("asking the backend: %w", context.DeadlineExceeded)
	default:
		return errors.New("the disk is on fire")
	}
}

// aboutMetadata answers with the request's metadata, and sets the response's.
func aboutMetadata(ctx context.Context) (*kvpb.GetResponse, error) {
	if err := grpc.SetHeader(ctx, metadata.Pairs("x-header", "h", "x-header-bin", "\x00\xff\x80")); err != nil {
		return nil, err
	}
	if err := grpc.SetTrailer(ctx, metadata.Pairs("x-trailer", "t", "x-trailer-bin", "\x00\xff\x81")); err != nil {
		return nil, err
	}
	md, _ := metadata.FromIncomingContext(ctx)
	return &kvpb.GetResponse{Value: pairs(md)}, nil
}

// pairs writes the metadata that begin with x- down.
func pairs(md metadata.MD) string {
	var out []string
	for key, values := range md {
		for _, v := range values {
			if strings.HasSuffix(key, "-bin") {
				v = hex.EncodeToString([]byte(v))
			}
			if strings.HasPrefix(key, "x-") {
				out = append(out, key+"="+v)
			}
		}
	}
	slices.Sort(out)
	return strings.Join(out, " ")
}

// timeLeft reports whether the call has the half minute that its client gave it.
func timeLeft(ctx context.Context) *kvpb.GetResponse {
	deadline, ok := ctx.Deadline()
	left := time.Until(deadline)
	ok = ok && left > 20*time.Second && left <= 31*time.Second // Python rounds up
	return &kvpb.GetResponse{Value: fmt.Sprint("about half a minute: ", ok)}
}

// encodings keeps how a call's request was compressed in the call's context.
type encodings struct{}

type encodingKey struct{}

type encoding struct {
	mu          sync.Mutex
	name        string
	sent, plain int // bytes of the request
}

func encodingOf(ctx context.Context) string {
	e, ok := ctx.Value(encodingKey{}).(*encoding)
	if !ok {
		return "unknown"
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	return fmt.Sprintf("%s, smaller: %t", e.name, e.sent < e.plain)
}

func (encodings) TagRPC(ctx context.Context, _ *stats.RPCTagInfo) context.Context {
	return context.WithValue(ctx, encodingKey{}, new(encoding))
}

func (encodings) HandleRPC(ctx context.Context, s stats.RPCStats) {
	e, ok := ctx.Value(encodingKey{}).(*encoding)
	if !ok {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	switch s := s.(type) {
	case *stats.InHeader:
		e.name = s.Compression
	case *stats.InPayload:
		e.sent, e.plain = s.CompressedLength, s.Length
	}
}

func (encodings) TagConn(ctx context.Context, _ *stats.ConnTagInfo) context.Context { return ctx }

func (encodings) HandleConn(context.Context, stats.ConnStats) {}
