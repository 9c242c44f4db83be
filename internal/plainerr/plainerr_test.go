package plainerr_test

import (
	"errors"
	"fmt"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/foresay/foresay/internal/plainerr"
)

// TestText: what gRPC adds is gone, and nothing else.
func TestText(t *testing.T) {
	refused := `connection error: desc = "transport: Error while dialing: dial tcp 127.0.0.1:1: connect: connection refused"`
	for _, tc := range []struct {
		err  error
		want string
	}{
		{status.Error(codes.Unavailable, refused), "dial tcp 127.0.0.1:1: connect: connection refused"},
		{fmt.Errorf("transport: member 7 at b:1: %w", status.Error(codes.Unavailable, refused)),
			"dial tcp 127.0.0.1:1: connect: connection refused"},
		{status.Error(codes.Unavailable, "last connection error: "+refused),
			"dial tcp 127.0.0.1:1: connect: connection refused"},
		{status.Error(codes.Unavailable, `connection error: desc = "transport: authentication handshake failed: tls: \"x\""`),
			`tls: "x"`},
		{status.Error(codes.Unavailable, `connection error: desc = "no end`), `connection error: desc = "no end`},
		{status.Error(codes.FailedPrecondition, "it is of epoch 7"), "it is of epoch 7"},
		{errors.New("disk: full"), "disk: full"},
	} {
		if got := plainerr.Text(tc.err); got != tc.want {
			t.Errorf("%v: %q, want %q", tc.err, got, tc.want)
		}
	}
}
