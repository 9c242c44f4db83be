package specgrpc_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/foresay/foresay/control"

	kvpb "github.com/foresay/foresay/api/foresay/testkv/v1"
	"github.com/foresay/foresay/specgrpc"
)

func dialCase(t testing.TB, opts ...grpc.DialOption) *specgrpc.ClientConn {
	cc, err := specgrpc.NewClient("passthrough:///x",
		append(opts, grpc.WithTransportCredentials(insecure.NewCredentials()))...)
	if err != nil {
		t.Fatal(err)
	}
	return cc
}

// A call on a closed connection, of a method that was not called before, must not
// leave a site in the Control of the process.
func TestCallSiteAfterClose(t *testing.T) {
	ctl, err := control.New(control.Config{})
	if err != nil {
		t.Fatal(err)
	}
	cc := dialCase(t, specgrpc.WithControl(ctl))
	cc.Close()
	cc.Close()
	_, err = kvpb.NewTestKVClient(cc).Get(t.Context(), &kvpb.GetRequest{})
	if err == nil {
		t.Fatal("no error")
	}
	if n := len(ctl.CallSites()); n != 0 {
		t.Errorf("%d sites are left", n)
	}
}

// What was wrong with a closed connection's file is not wrong any more.
func TestProblemAfterClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctl, err := control.New(control.Config{})
		if err != nil {
			t.Fatal(err)
		}
		file := filepath.Join(t.TempDir(), "sites.json")
		if err := os.WriteFile(file, []byte(`{"sites": []}`), 0o600); err != nil {
			t.Fatal(err)
		}
		cc := dialCase(t, specgrpc.WithControl(ctl), specgrpc.WithCallSiteFile(file, nil))
		if err := os.WriteFile(file, []byte(`{`), 0o600); err != nil {
			t.Fatal(err)
		}
		time.Sleep(3 * time.Second)
		if len(ctl.Status().Problems) != 1 {
			t.Fatal("no problem")
		}
		cc.Close()
		if p := ctl.Status().Problems; len(p) != 0 {
			t.Errorf("the connection is closed, and there is still %v", p)
		}
	})
}

// A proxy hands on whatever method its callers name.
func TestMethodsAreBounded(t *testing.T) {
	ctl, err := control.New(control.Config{})
	if err != nil {
		t.Fatal(err)
	}
	observe, err := specgrpc.ObserveInterceptor(specgrpc.WithControl(ctl))
	if err != nil {
		t.Fatal(err)
	}
	ok := func(context.Context, string, any, any, *grpc.ClientConn, ...grpc.CallOption) error { return nil }
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	const n = 5000
	start := time.Now()
	for i := range n {
		if err := observe(t.Context(), fmt.Sprintf("/attacker.S/m%d", i), &kvpb.GetRequest{}, &kvpb.GetResponse{}, nil,
			ok); err != nil {
			t.Fatal(err)
		}
	}
	took := time.Since(start)
	runtime.GC()
	runtime.ReadMemStats(&after)
	if sites := len(ctl.CallSites()); sites > 2000 {
		t.Errorf("%d sites, %d MB after %v", sites, (after.HeapAlloc-before.HeapAlloc)>>20, took)
	}
}
