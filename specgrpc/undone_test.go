package specgrpc_test

import (
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/status"

	"github.com/foresay/foresay/specgrpc"
)

// The status of a call that is undone names the method, the call and its
// caller, and says why; but to the caller that undid it, it only says that.
func TestStatusesOfUndoneCallsNameThem(t *testing.T) {
	ends := map[string]struct {
		end func(h *halfPut)
		why string
	}{
		"silence": {func(*halfPut) { time.Sleep(15 * time.Second) }, "no word from the caller for the length of the lease"},
		"stop":    {func(h *halfPut) { specgrpc.GracefulStop(h.server, h.registrar) }, "the server is stopping"},
		"another": {func(h *halfPut) { h.send(confirmOf(h.id, 2)) }, "frame Confirm names another"},
	}
	for name, tt := range ends {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				h := halfOpenPut(w)
				tt.end(h)
				err := h.rawCall.end()
				prefix, why, found := strings.Cut(status.Convert(err).Message(), ": undone: ")
				if !found || !strings.HasPrefix(why, tt.why) {
					w.Errorf("got status %v; want %q", err, tt.why)
				}
				call, caller, _ := strings.Cut(prefix, " of ")
				if !strings.HasPrefix(call, "specgrpc: "+putMethod+", call ") || !strings.Contains(caller, "client") {
					w.Errorf("%q does not name the method, the call and the client", prefix)
				}
			})
		})
	}
	inWorld(t, func(w *world) {
		h := halfOpenPut(w)
		h.abort()
		if got, want := status.Convert(h.rawCall.end()).Message(), "the caller said Abort"; got != want {
			w.Errorf("the caller that said Abort got %q, want %q", got, want)
		}
	})
}
