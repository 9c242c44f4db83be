package predict

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

func BenchmarkPredictors(b *testing.B) {
	request, response := wrapperspb.String("key"), wrapperspb.String("response")
	key := func(r *wrapperspb.StringValue) string { return r.GetValue() }
	table, err := NewTable(TableConfig[*wrapperspb.StringValue]{Key: key})
	if err != nil {
		b.Fatal(err)
	}
	public, err := NewLast(LastConfig[*wrapperspb.StringValue]{Key: key, Public: true})
	if err != nil {
		b.Fatal(err)
	}
	plain := b.Context()
	credited := metadata.AppendToOutgoingContext(plain, "authorization", "Bearer "+strings.Repeat("x", 800),
		"x-request-id", "7")
	for _, tt := range []struct {
		name string
		p    Predictor
		ctx  context.Context
	}{
		{"Constant", Constant(response), plain}, {"LastValue", LastValue(key, 10), plain}, {"Table", table, plain},
		{"LastValue/credentials", LastValue(key, 10), credited}, {"LastValue/public", public, credited},
	} {
		tt.p.Learn(tt.ctx, request, response)
		b.Run(tt.name+"/Predict", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				tt.p.Predict(tt.ctx, request)
			}
		})
		b.Run(tt.name+"/Learn", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				tt.p.Learn(tt.ctx, request, response)
			}
		})
	}
}

// BenchmarkParallel has all processors ask and teach one predictor.
func BenchmarkParallel(b *testing.B) {
	l := LastValue(identity, 1000)
	keys := make([]string, 500)
	for i := range keys {
		keys[i] = fmt.Sprint(i)
		l.Learn(b.Context(), keys[i], i)
	}
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for i := 0; pb.Next(); i++ {
			l.Predict(b.Context(), keys[i%len(keys)])
			l.Learn(b.Context(), keys[i%len(keys)], i%len(keys))
		}
	})
}
