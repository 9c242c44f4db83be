package specgrpc_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/foresay/foresay"
	"github.com/foresay/foresay/control"

	kvpb "github.com/foresay/foresay/api/foresay/testkv/v1"
	"github.com/foresay/foresay/specgrpc"
)

// A site file that changes is in force within two seconds, as far as it can be;
// one with errors changes nothing and shows in the status.
func TestCallSiteFileIsReadAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		file := filepath.Join(t.TempDir(), "sites.json")
		write := func(text string) {
			t.Helper()
			if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		one := func(rest string) string { return `{"sites": [{"method": "` + getMethod + `", ` + rest + `}]}` }
		write(one(`"mode": "canary", "share": 0.25`))
		cc, err := specgrpc.NewClient("passthrough:///x", grpc.WithTransportCredentials(insecure.NewCredentials()),
			specgrpc.WithCallSites(control.CallSiteConfig{Name: getMethod, Mode: control.ModeOff}),
			specgrpc.WithCallSiteFile(file, nil))
		if err != nil {
			t.Fatal(err)
		}
		defer cc.Close()
		expect := func(step string, want control.Mode, share float64, origin control.Origin, problem string) {
			t.Helper()
			time.Sleep(2 * time.Second)
			synctest.Wait()
			st := cc.Control().Status()
			if len(st.CallSites) != 1 {
				t.Fatalf("%s: %d sites", step, len(st.CallSites))
			}
			if s := st.CallSites[0]; s.Mode != want || s.Share != share || s.Origin != origin {
				t.Errorf("%s: mode %v, share %v from %s, want %v, %v from %s", step, s.Mode, s.Share, s.Origin, want, share, origin)
			}
			if got := st.Problems["site file "+file]; (got == "") != (problem == "") || !strings.Contains(got, problem) {
				t.Errorf("%s: problem %q, want %q", step, got, problem)
			}
		}
		expect("start", control.ModeCanary, 0.25, "file", "")
		write(one(`"mode": "on"`))
		expect("changed", control.ModeOn, 0, "file", "")
		write(one(`"mode": "onn"`))
		expect("wrong", control.ModeOn, 0, "file", `"onn"`)
		if err := os.Remove(file); err != nil {
			t.Fatal(err)
		}
		expect("gone", control.ModeOn, 0, "file", "no such file")
		if err := cc.Control().SetMode(getMethod, control.ModeShadow, 0.5); err != nil {
			t.Fatal(err)
		}
		write(one(`"mode": "observe"`))
		expect("set at run time", control.ModeShadow, 0.5, "runtime", "")
		if err := cc.Control().SetMode(getMethod, control.ModeDefault, 0); err != nil {
			t.Fatal(err)
		}
		expect("taken back", control.ModeObserve, 0, "file", "")
		write(`{"sites": []}`)
		expect("left out", control.ModeOff, 0, "code", "")
		write(`{"sites": [{"method": "` + putMethod + `", "mode": "off"}]}`)
		time.Sleep(2 * time.Second)
		if mode, _ := cc.CallSite(putMethod).Mode(); mode != control.ModeOff {
			t.Errorf("a method that the file did not name before is in mode %v", mode)
		}
	})
}

func TestCallSiteFileShares(t *testing.T) {
	for text, want := range map[string]string{
		`"mode": "canary"`:                "needs the share",
		`"mode": "on", "share": 0.5`:      "modes canary and shadow",
		`"mode": "canary", "share": 1.5`:  "1.5",
		`"mode": "canary", "share": "10"`: "share",
	} {
		_, err := specgrpc.ParseCallSites([]byte(`{"sites": [{"method": "`+getMethod+`", `+text+`}]}`), nil)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want it to say %s", text, err, want)
		}
	}
}

// A predictor that a file describes predicts, without code.
func TestPredictorsOfAFile(t *testing.T) {
	inWorld(t, func(w *world) {
		file := filepath.Join(w.TempDir(), "sites.json")
		if err := os.WriteFile(file, []byte(`{"sites": [{"method": "`+getMethod+
			`", "mode": "on", "predictors": [{"kind": "last", "key_fields": ["key"]}]}]}`), 0o600); err != nil {
			w.Fatal(err)
		}
		_, _, addr := w.kv("a", &kvServer{})
		cc := w.dial(addr, specgrpc.WithCallSiteFile(file, nil))
		c := kvpb.NewTestKVClient(cc)
		for i, want := range []time.Duration{2 * rtt, rtt} {
			start := time.Now()
			_, err := foresay.Do(w.Context(), func(ctx context.Context) (string, error) {
				if _, err := c.Get(ctx, &kvpb.GetRequest{Key: "a"}); err != nil {
					return "", err
				}
				r, err := c.Get(ctx, &kvpb.GetRequest{Key: "b"})
				return r.GetValue(), err
			})
			if took := time.Since(start).Round(time.Millisecond); err != nil || i > 0 && took != want {
				w.Errorf("task %d: took %v, %v, want %v", i, took, err, want)
			}
		}
	})
}
