package specgrpc

import (
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
)

// TestHeaderAfterSend: as with grpc, a header that was sent stays as it is.
func TestHeaderAfterSend(t *testing.T) {
	ctx, b := withBuffer(t.Context(), "/a.B/C")
	if err := grpc.SendHeader(ctx, metadata.Pairs("a", "1")); err != nil {
		t.Fatal(err)
	}
	if grpc.SetHeader(ctx, metadata.Pairs("b", "2")) == nil {
		t.Error("SetHeader after SendHeader returned nil")
	}
	if grpc.SendHeader(ctx, metadata.Pairs("c", "3")) == nil {
		t.Error("a second SendHeader returned nil")
	}
	if md := b.all(); md.Len() != 1 {
		t.Errorf("the header is %v, want only a", md)
	}
}
