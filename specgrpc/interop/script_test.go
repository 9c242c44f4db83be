package interop

import (
	"context"
	"crypto/sha256"
	"fmt"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/encoding/gzip"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/prototext"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/foresay/foresay"
	kvpb "github.com/foresay/foresay/api/foresay/testkv/v1"
)

// script is straight-line code that a plain client and a task run alike.
type script struct {
	name string
	// parallel: the order of the calls at the server is not determined.
	parallel bool
	// mayMiss is what a server may or may not have done: a deadline may pass
	// before the request arrives.
	mayMiss string
	run     func(ctx context.Context, s *steps)
}

// scripts all begin with the same two calls, see steps.begin.
func scripts() []script {
	return []script{
		{name: "chain", run: chain},
		{name: "effects", run: effects},
		{name: "errors", run: failures},
		{name: "metadata", run: perCallMetadata},
		{name: "header and trailer", run: observer},
		{name: "deadline", run: deadline, mayMiss: "get block until the deadline"},
		{name: "large and compressed", run: large},
		{name: "fan-out", run: fanOut, parallel: true},
	}
}

func chain(ctx context.Context, s *steps) {
	next := "one"
	for range 3 {
		next = s.get(ctx, next)
	}
	s.put(ctx, "result", next)
}

func effects(ctx context.Context, s *steps) {
	s.append(ctx, "list", "a")
	s.append(ctx, "list", s.get(ctx, "one"))
	before := s.get(ctx, "list")
	s.put(ctx, "list", before+"!")
	s.get(ctx, "list")
	s.append(ctx, "list", "a")
	s.append(ctx, "list", "a")
	s.put(ctx, "copy", s.get(ctx, "list"))
}

func failures(ctx context.Context, s *steps) {
	s.get(ctx, "missing")
	s.append(ctx, "list", "after an error")
	s.get(ctx, "after headers")
	s.get(ctx, "one")
}

func perCallMetadata(ctx context.Context, s *steps) {
	s.get(metadata.AppendToOutgoingContext(ctx, "x-text", "one", "x-text", "two"), "metadata")
	s.get(metadata.AppendToOutgoingContext(ctx, "x-text", "three", "x-raw-bin", "\x00\x01\xfe\xff"), "metadata")
	s.put(metadata.AppendToOutgoingContext(ctx, "x-text", "four"), "k", "v")
}

func observer(ctx context.Context, s *steps) {
	var header, trailer metadata.MD
	s.get(ctx, "metadata", grpc.Header(&header), grpc.Trailer(&trailer))
	s.say("header %s trailer %s", pairs(header), pairs(trailer))
	s.get(ctx, "after headers", grpc.Header(&header), grpc.Trailer(&trailer))
	s.say("header %s trailer %s", pairs(header), pairs(trailer))
	s.append(ctx, "list", pairs(trailer))
}

func deadline(ctx context.Context, s *steps) {
	short, cancel := context.WithTimeout(ctx, 40*time.Millisecond)
	defer cancel()
	s.get(short, "block until the deadline")
	s.append(ctx, "list", "after the deadline")
	s.get(ctx, "one")
}

func large(ctx context.Context, s *steps) {
	b := s.get(ctx, "big")
	s.put(ctx, "copy", b[:len(b)/8], grpc.UseCompressor(gzip.Name))
	s.get(ctx, "copy", grpc.UseCompressor(gzip.Name))
}

func fanOut(ctx context.Context, s *steps) {
	g := foresay.NewGroup(ctx)
	parts := make([]*steps, 4)
	for i := range parts {
		parts[i] = s.fork()
		g.Go(func(ctx context.Context) error {
			p, list := parts[i], fmt.Sprintf("list %d", i)
			p.append(ctx, list, p.get(ctx, p.get(ctx, "one")))
			p.append(ctx, list, "!")
			p.get(ctx, list)
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		s.say("the group failed: %v", err)
	}
	for i, p := range parts {
		s.say("%s", p.out.String())
		s.get(ctx, fmt.Sprintf("list %d", i))
	}
}

// steps makes a script's calls, and writes down what they return. One value is
// for one run: that of a plain client, of which it records the responses, or one
// of a task, for which it offers predictions made of what the plain client saw.
type steps struct {
	client kvpb.TestKVClient
	seen   *responses
	guess  guess // nil for none
	path   string
	made   int
	out    strings.Builder
}

// responses are a plain client's, by the place of the call in the script.
type responses struct {
	mu      sync.Mutex
	keep    bool
	byPlace map[string]proto.Message
}

// guess makes predictions of what is the right one.
type guess func(right proto.Message) []any

// begin makes the first two calls of every script: the second one depends on the
// first, and goes to the server while that is still open if there is a guess.
func (s *steps) begin(ctx context.Context) {
	s.get(ctx, s.get(ctx, "gate"))
}

// next returns the place of the next call.
func (s *steps) next() string {
	s.made++
	return fmt.Sprintf("%s/%d", s.path, s.made)
}

// fork returns steps for a goroutine of the run.
func (s *steps) fork() *steps {
	return &steps{client: s.client, seen: s.seen, guess: s.guess, path: s.next()}
}

func (s *steps) say(format string, args ...any) { fmt.Fprintf(&s.out, format+"\n", args...) }

func (s *steps) get(ctx context.Context, key string, opts ...grpc.CallOption) string {
	r, _ := do(ctx, s, s.client.Get, &kvpb.GetRequest{Key: key}, opts)
	return r.GetValue()
}

func (s *steps) put(ctx context.Context, key, value string, opts ...grpc.CallOption) {
	_, _ = do(ctx, s, s.client.Put, &kvpb.PutRequest{Key: key, Value: value}, opts)
}

func (s *steps) append(ctx context.Context, key, value string, opts ...grpc.CallOption) {
	_, _ = do(ctx, s, s.client.Append, &kvpb.AppendRequest{Key: key, Value: value}, opts)
}

// do makes a call, and writes its outcome down: a script goes on after an error.
func do[Q, R proto.Message](
	ctx context.Context, s *steps, f func(context.Context, Q, ...grpc.CallOption) (R, error), req Q,
	opts []grpc.CallOption,
) (R, error) {
	place := s.next()
	var none R
	if s.guess != nil {
		ctx = foresay.Predicting(ctx, s.guess(s.seen.at(place, none.ProtoReflect().New().Interface()))...)
	}
	r, err := f(ctx, req, opts...)
	if err != nil {
		s.say("%T: %s", req, describeError(err))
		return r, err
	}
	s.seen.put(place, r)
	s.say("%T: %s", req, describe(r))
	return r, nil
}

// at returns what a plain client saw, or, where it saw an error, an empty response.
func (r *responses) at(place string, empty proto.Message) proto.Message {
	r.mu.Lock()
	defer r.mu.Unlock()
	if m, ok := r.byPlace[place]; ok {
		return m
	}
	return empty
}

func (r *responses) put(place string, m proto.Message) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.keep {
		r.byPlace[place] = m
	}
}

func describe(m proto.Message) string {
	if n := proto.Size(m); n > 1000 {
		b, err := proto.MarshalOptions{Deterministic: true}.Marshal(m)
		return fmt.Sprintf("%d bytes %x %v", n, sha256.Sum256(b), err)
	}
	return prototext.MarshalOptions{}.Format(m)
}

func describeError(err error) string {
	st := status.Convert(err)
	if st.Code() == codes.DeadlineExceeded {
		return st.Code().String() // its message tells which side was the first to notice
	}
	s := fmt.Sprintf("%v %q", st.Code(), st.Message())
	for _, d := range st.Details() {
		s += fmt.Sprintf(" %T(%v)", d, d)
	}
	return s
}

func right(m proto.Message) []any { return []any{m} }

func wrong(m proto.Message) []any { return []any{perturbed(m, " (a wrong guess)")} }

func several(m proto.Message) []any {
	return []any{perturbed(m, " (a wrong guess)"), perturbed(m, " (another)"), m}
}

// perturbed returns a response that differs from m in every field.
func perturbed(m proto.Message, by string) proto.Message {
	out := proto.Clone(m)
	r := out.ProtoReflect()
	fields := r.Descriptor().Fields()
	for i := range fields.Len() {
		switch f := fields.Get(i); f.Kind() {
		case protoreflect.StringKind:
			r.Set(f, protoreflect.ValueOfString(r.Get(f).String()+by))
		case protoreflect.Uint64Kind:
			r.Set(f, protoreflect.ValueOfUint64(r.Get(f).Uint()+uint64(len(by))))
		}
	}
	return out
}
