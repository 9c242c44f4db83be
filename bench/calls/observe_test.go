package calls

import (
	"context"
	"fmt"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	"github.com/foresay/foresay/bench"
	"github.com/foresay/foresay/control"

	benchv1 "github.com/foresay/foresay/api/foresay/bench/v1"
	"github.com/foresay/foresay/observe"
	"github.com/foresay/foresay/predict"
	"github.com/foresay/foresay/specgrpc"
)

// BenchmarkObservedCall measures what observing adds to calls that take no time:
// what observe-overhead measures as a ratio, where the machine is not calm. With
// calls=n there are that many in a request, otherwise they belong to none.
func BenchmarkObservedCall(b *testing.B) {
	for _, o := range observers() {
		for _, size := range []int{payloadBytes, 4096} {
			for _, calls := range []int{0, 1, chainCalls} {
				b.Run(fmt.Sprintf("%s/%d/calls=%d", o.name, size, calls), func(b *testing.B) {
					benchmarkObserved(b, o, size, calls)
				})
			}
		}
	}
}

func benchmarkObserved(b *testing.B, o observer, size, calls int) {
	collector, err := observe.NewCollector(observe.Config{})
	if err != nil {
		b.Fatal(err)
	}
	ctl, err := control.New(control.Config{OnRequest: []func(*control.RequestRecord){collector.Record}})
	if err != nil {
		b.Fatal(err)
	}
	site := control.CallSiteConfig{Name: benchv1.Bench_Work_FullMethodName, Mode: o.mode}
	if o.predictor {
		site.Predictors = []control.Predictor{predict.LastValue(func(r *benchv1.WorkRequest) string {
			return string(r.GetPayload()[:8])
		}, 10_000)}
	}
	intercept, err := specgrpc.ObserveInterceptor(specgrpc.WithControl(ctl), specgrpc.WithCallSites(site))
	if err != nil {
		b.Fatal(err)
	}
	var requests []*benchv1.WorkRequest
	for i := range uint64(64) {
		requests = append(requests, &benchv1.WorkRequest{Payload: sizedPayload(i, size)})
	}
	res := &benchv1.WorkResponse{Payload: sizedPayload(1, size)}
	called := func(context.Context, string, any, any, *grpc.ClientConn, ...grpc.CallOption) error { return nil }
	call := func(ctx context.Context, req proto.Message) {
		if err := intercept(ctx, benchv1.Bench_Work_FullMethodName, req, res, nil, called); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		if calls == 0 {
			call(b.Context(), requests[i%len(requests)])
			continue
		}
		ctx, r := ctl.Begin(b.Context(), "GET /bench", "")
		for at := range calls {
			call(ctx, requests[(i+at)%len(requests)])
		}
		r.End(nil)
	}
}

// TestSizedChain: a chain with larger payloads has the answer of the usual one.
func TestSizedChain(t *testing.T) {
	sys, err := openSystem(grpcStack(), bench.Real, topology{servers: 1, shared: true}, 1)
	defer sys.close()
	if err != nil {
		t.Fatal(err)
	}
	before := sys.net.bytes.Load()
	r := request{seed: 7, guesses: make([]guess, 3)}
	got, err := sizedChain(4096)(t.Context(), sys.callers[0], ask{}, r)
	if err != nil || string(got) != string(lastAnswer(7, 3)) {
		t.Errorf("got %x, %v, want %x", got, err, lastAnswer(7, 3))
	}
	if n := sys.net.bytes.Load() - before; n < 6*4096 {
		t.Errorf("%d bytes were sent", n)
	}
}
