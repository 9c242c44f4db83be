package main

import (
	"context"
	"hash/fnv"
	"math"
	"math/rand/v2"
	"time"

	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/proto"

	bffv1 "github.com/foresay/foresay/api/foresay/bff/v1"
)

// requestIDKey is the metadata in which a request's ID goes from service to service.
const requestIDKey = "x-request-id"

// medians are what the services' methods usually take.
func medians() map[string]time.Duration {
	return map[string]time.Duration{
		bffv1.Users_GetUser_FullMethodName:     20 * time.Millisecond,
		bffv1.Permissions_Check_FullMethodName: 20 * time.Millisecond,
		bffv1.Pricing_Quote_FullMethodName:     20 * time.Millisecond,
		bffv1.Stock_GetLevel_FullMethodName:    12 * time.Millisecond,
		bffv1.Users_RecordView_FullMethodName:  3 * time.Millisecond, // one append to a log
	}
}

const (
	spread  = 0.2  // the standard deviation of a latency's logarithm
	hiccups = 0.04 // the share of calls that take up to four times as long
)

// latency tells how long a method takes. It depends on nothing but the seed, the
// request for which the call is made, and what it asks for.
func latency(seed uint64, method, requestID string, req proto.Message) time.Duration {
	h := fnv.New64a()
	body, _ := proto.MarshalOptions{Deterministic: true}.Marshal(req) // an empty one would do as well
	for _, part := range [][]byte{[]byte(method), []byte(requestID), body} {
		h.Write(part)
		h.Write([]byte{0})
	}
	rng := rand.New(rand.NewPCG(seed, h.Sum64()))
	d := float64(medians()[method]) * math.Exp(spread*rng.NormFloat64())
	if rng.Float64() < hiccups {
		d *= 1 + 3*rng.Float64()
	}
	return time.Duration(d)
}

// requestIDOf returns the ID of the request for which a call is served.
func requestIDOf(ctx context.Context) string {
	md, _ := metadata.FromIncomingContext(ctx)
	if ids := md.Get(requestIDKey); len(ids) > 0 {
		return ids[0]
	}
	return ""
}

// pause waits for d, or until ctx ends.
func pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
