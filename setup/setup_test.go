package setup_test

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/test/bufconn"

	"github.com/foresay/foresay/control"

	kvpb "github.com/foresay/foresay/api/foresay/testkv/v1"
	"github.com/foresay/foresay/dash"
	"github.com/foresay/foresay/observe"
	"github.com/foresay/foresay/setup"
)

// serveKV serves answers without content, and says how to reach them.
func serveKV(t *testing.T, opts ...grpc.ServerOption) []grpc.DialOption {
	t.Helper()
	lis := bufconn.Listen(1 << 16)
	server := grpc.NewServer(opts...)
	kvpb.RegisterTestKVServer(server, kv{})
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = server.Serve(lis) // ends with Stop
	}()
	t.Cleanup(func() {
		server.Stop()
		<-ended
	})
	return []grpc.DialOption{
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return lis.DialContext(ctx) }),
	}
}

type kv struct{ kvpb.UnimplementedTestKVServer }

func (kv) Get(context.Context, *kvpb.GetRequest) (*kvpb.GetResponse, error) {
	return &kvpb.GetResponse{}, nil
}

// TestProcess: calls of the process's connections, and of others with its interceptor, belong to
// the HTTP and gRPC requests that they are made for; sites are as the file says; the debug endpoint
// reads and switches.
func TestProcess(t *testing.T) {
	file := filepath.Join(t.TempDir(), "sites.json")
	sites := `{"sites": [{"method": "` + kvpb.TestKV_Get_FullMethodName + `", "mode": "canary", "share": 0.1}]}`
	if err := os.WriteFile(file, []byte(sites), 0o600); err != nil {
		t.Fatal(err)
	}
	told := 0
	debug := http.NewServeMux()
	process, err := setup.New(debug, setup.Config{
		Name: "shop", CallSiteFile: file, Authorize: func(*http.Request) error { return nil },
		Control: control.Config{OnRequest: []func(*control.RequestRecord){func(*control.RequestRecord) { told++ }}},
	})
	if err != nil {
		t.Fatal(err)
	}
	conn, err := process.NewClient("passthrough:///kv", serveKV(t, process.ServerOptions()...)...)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	observer, err := process.Observer()
	if err != nil {
		t.Fatal(err)
	}
	other, err := grpc.NewClient("passthrough:///other", append(serveKV(t), grpc.WithChainUnaryInterceptor(observer))...)
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()

	mux := http.NewServeMux()
	mux.HandleFunc("GET /page", func(_ http.ResponseWriter, r *http.Request) {
		for _, c := range []grpc.ClientConnInterface{conn, other} {
			if _, err := kvpb.NewTestKVClient(c).Get(r.Context(), &kvpb.GetRequest{}); err != nil {
				t.Error(err)
			}
		}
	})
	process.Handler(mux).ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/page", nil))

	calls := make(map[string]int64)
	for _, q := range process.Collector().Report(process.Control()).Requests {
		calls[q.Name] = 0
		for _, m := range q.Methods {
			calls[q.Name] += m.Calls
		}
	}
	if calls["GET /page"] != 2 || len(calls) != 2 || told != 2 {
		t.Errorf("calls by request %v, %d told of: want 2 in GET /page, and one request for the gRPC server's call", calls,
			told)
	}
	if s := process.Control().Status().CallSites[0]; s.Mode != control.ModeCanary || s.Share != 0.1 {
		t.Errorf("the site file is not in force: %v %v", s.Mode, s.Share)
	}
	r := httptest.NewRequest(http.MethodPost, dash.Path+"kill", strings.NewReader(`{"killed": true}`))
	r.Header.Set("Content-Type", "application/json")
	w := httptest.NewRecorder()
	if debug.ServeHTTP(w, r); w.Code != http.StatusNoContent || !process.Control().Killed() {
		t.Errorf("kill: %d %s", w.Code, w.Body)
	}
}

// TestErrors: what is wrong is named, and a process without a debug mux is one.
func TestErrors(t *testing.T) {
	for want, cfg := range map[string]setup.Config{
		"setup: Control: ":   {Control: control.Config{Window: -1}},
		"setup: Collector: ": {Collector: observe.Config{MaxMethods: -1}},
	} {
		if _, err := setup.New(nil, cfg); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%v: want %q", err, want)
		}
	}
	process, err := setup.New(nil, setup.Config{CallSiteFile: filepath.Join(t.TempDir(), "none")})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := process.NewClient("passthrough:///x",
		grpc.WithTransportCredentials(insecure.NewCredentials())); err == nil {
		t.Error("a site file that is not there is no error")
	}
}
