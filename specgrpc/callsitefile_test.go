package specgrpc_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/foresay/foresay"
	"github.com/foresay/foresay/control"

	kvpb "github.com/foresay/foresay/api/foresay/testkv/v1"
	"github.com/foresay/foresay/specgrpc"
)

// constant predicts one value.
type constant struct{ value any }

func (c constant) Predict(context.Context, any) []any { return []any{c.value} }
func (constant) Learn(context.Context, any, any)      {}

func predictors() map[string]control.Predictor {
	return map[string]control.Predictor{"constant": constant{&kvpb.GetResponse{Value: "c"}}, "other": constant{}}
}

func TestParseCallSites(t *testing.T) {
	sites, err := specgrpc.ParseCallSites([]byte(`{"sites": [
		{"method": "`+getMethod+`", "mode": "off", "effect": "none", "predictors": ["other", "constant"],
		 "equal_ignoring": ["version"], "key_fields": ["key"], "ignore_metadata": ["attempt"], "ordered": true, "server_predictions": true},
		{"method": "`+putMethod+`", "effect": "staged", "conflict_fields": ["key"]},
		{"method": "/un.Known/Method", "mode": "on"}
	]}`), predictors())
	if err != nil {
		t.Fatal(err)
	}
	get, put := sites[0], sites[1]
	if get.Name != getMethod || get.Mode != control.ModeOff || get.Effect != control.EffectNone ||
		len(get.Predictors) != 2 ||
		len(get.IgnoreMetadata) != 1 || !get.Ordered || !get.ServerPredictions {
		t.Errorf("got %+v", get)
	}
	a, b := &kvpb.GetResponse{Value: "v", Version: 1}, &kvpb.GetResponse{Value: "v", Version: 2}
	if !get.Equal(a, b) || get.Equal(a, &kvpb.GetResponse{Value: "w", Version: 1}) || a.GetVersion() != 1 {
		t.Error("Equal should ignore the version, and nothing else")
	}
	if k := get.Key(&kvpb.GetRequest{Key: "k"}); string(k) != string(get.Key(&kvpb.GetRequest{Key: "k"})) ||
		string(k) == string(get.Key(&kvpb.GetRequest{Key: "l"})) {
		t.Error("Key should be the field")
	}
	conflict := func(key, value string) string { return put.ConflictKey(&kvpb.PutRequest{Key: key, Value: value}) }
	if conflict("a", "1") != conflict("a", "2") || conflict("a", "1") == conflict("b", "1") {
		t.Error("ConflictKey should depend on the key alone")
	}
	if conflict("", "1") != "" {
		t.Error("without the field the call should conflict with all")
	}
	if put.Effect != control.EffectStaged {
		t.Errorf("got %v", put.Effect)
	}
}

func TestNestedFieldPaths(t *testing.T) {
	const method = kvpb.TestKV_RelayRead_FullMethodName
	sites, err := specgrpc.ParseCallSites([]byte(`{"sites": [{"method": "`+method+
		`", "key_fields": ["name", "operations"]}]}`), nil)
	if err != nil {
		t.Fatal(err)
	}
	relay := func(name, key string) *kvpb.RelayRequest {
		return &kvpb.RelayRequest{Name: name, Operations: []*kvpb.Operation{
			{Operation: &kvpb.Operation_Get{Get: &kvpb.GetRequest{Key: key}}}}}
	}
	key := sites[0].Key
	once, again := string(key(relay("n", "a"))), string(key(relay("n", "a")))
	if once != again || once == string(key(relay("n", "b"))) {
		t.Error("the key should depend on all that is named")
	}
}

func TestParseCallSitesErrors(t *testing.T) {
	site := func(fields string) string { return `{"sites": [{"method": "` + getMethod + `", ` + fields + `}]}` }
	tests := map[string][]string{
		`{`:                              {"unexpected EOF"},
		`{} {}`:                          {"more after"},
		`{"site": []}`:                   {`"site"`},
		`{"sites": [{"mode": "on"}]}`:    {"site 1", `"method"`},
		`{"sites": [{"method": "Get"}]}`: {"site 1", `"method"`, "/pkg.Service/Method"},
		`{"sites": [{"method": 7}]}`:     {"site 1", `"method"`},
		`{"sites": [{"method": "` + getMethod + `.spec"}]}`:                             {".spec"},
		`{"sites": [{"method": "` + getMethod + `"}, {"method": "` + getMethod + `"}]}`: {getMethod, "twice"},
		site(`"mode": "maybe"`): {getMethod, `"mode"`, `"maybe"`,
			"off, observe, shadow, canary, on"},
		site(`"effect": "some"`):       {getMethod, `"effect"`, "immediate"},
		site(`"effect": 1`):            {getMethod, `"effect"`},
		site(`"ordered": "yes"`):       {getMethod, `"ordered"`},
		site(`"ignore_metadata": [1]`): {getMethod, `"ignore_metadata"`},
		site(`"metadata": ["tenant"]`): {getMethod,
			`"metadata": all outgoing metadata belong to a call now`, `"ignore_metadata"`},
		site(`"predictors": ["crystal ball"]`): {getMethod, `"predictors"`, "crystal ball",
			"constant, other"},
		site(`"equal_ignoring": ["versoin"]`): {getMethod, `"equal_ignoring"`, "GetResponse",
			"versoin"},
		site(`"key_fields": ["key.x"]`):                               {getMethod, `"key_fields"`, "key.x"},
		site(`"key_fields": []`):                                      {getMethod, `"key_fields"`, "no field"},
		site(`"limits": {"dept": 1}`):                                 {getMethod, `"limits"`, "dept"},
		site(`"limits": {"depth": -1}`):                               {getMethod, `"limits"`, `"depth" is -1`},
		site(`"limits": {"pending": "many"}`):                         {getMethod, `"limits"`, "pending"},
		site(`"limits": {"min_saving": "2"}`):                         {getMethod, `"limits"`, `"min_saving"`, "2ms"},
		site(`"predictors": [{"kind": "lst"}]`):                       {getMethod, `"predictors"`, `"lst"`, "last"},
		site(`"predictors": [{"kind": "last", "key_fields": ["x"]}]`): {getMethod, `"predictors"`, `"x"`},
		site(`"colour": "red"`):                                       {getMethod, `"colour"`, "unknown"},
		`{"sites": [{"method": "/un.Known/M", "key_fields": ["a"]}]}`: {"/un.Known/M", `"key_fields"`, "link"},
	}
	for text, wants := range tests {
		_, err := specgrpc.ParseCallSites([]byte(text), predictors())
		for _, want := range wants {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s:\ngot %v, want it to say %s", text, err, want)
			}
		}
	}
}

// What a file says of limits leaves the others alone.
func TestLimitsOfACallSite(t *testing.T) {
	file := filepath.Join(t.TempDir(), "sites.json")
	if err := os.WriteFile(file, []byte(`{"sites": [{"method": "`+getMethod+
		`", "limits": {"pending": 3, "depth": 2, "min_saving": "2ms"}}]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	cc, err := specgrpc.NewClient("passthrough:///x", grpc.WithTransportCredentials(insecure.NewCredentials()),
		specgrpc.WithCallSites(control.CallSiteConfig{Name: getMethod, Limits: control.CallSiteLimits{Depth: 7, Width: 1}}),
		specgrpc.WithCallSiteFile(file, nil))
	if err != nil {
		t.Fatal(err)
	}
	defer cc.Close()
	want := control.CallSiteLimits{Pending: 3, Depth: 2, Width: 1, MinSaving: 2 * time.Millisecond}
	if got := cc.CallSite(getMethod).Config().Limits; got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

// Over real connections: a site's calls that stand too deep are not sent, those
// beyond the number of pending ones wait for their results.
func TestLimitedCallSites(t *testing.T) {
	for name, tt := range map[string]struct {
		limits    control.CallSiteLimits
		took      time.Duration
		predicted int64
	}{
		"none":    {took: rtt, predicted: 4},
		"depth":   {control.CallSiteLimits{Depth: 1}, 3 * rtt, 3},
		"pending": {control.CallSiteLimits{Pending: 3}, rtt, 3},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				r, _, addr := w.kv("a", &kvServer{})
				cc := w.dial(addr, specgrpc.WithCallSites(control.CallSiteConfig{Name: getMethod, Limits: tt.limits}))
				c := kvpb.NewTestKVClient(cc)
				if _, err := c.Get(w.Context(), &kvpb.GetRequest{}); err != nil {
					w.Fatal(err)
				}
				start := time.Now()
				_, err := foresay.Do(w.Context(), func(ctx context.Context) (int, error) {
					for _, key := range []string{"a", "b", "c", "d"} {
						if _, err := guessed(ctx, c, key, value(key)); err != nil {
							return 0, err
						}
					}
					return 0, nil
				})
				if err != nil {
					w.Error(err)
				}
				if took, s := time.Since(start), cc.CallSite(getMethod).Stats(); took.Round(time.Millisecond) != tt.took ||
					s.Predicted != tt.predicted {
					w.Errorf("took %v, want %v; %+v, want %d predicted", took, tt.took, s, tt.predicted)
				}
				w.quiet(cc, r)
			})
		})
	}
}

func TestNewClientOptions(t *testing.T) {
	file := filepath.Join(t.TempDir(), "sites.json")
	if err := os.WriteFile(file, []byte(`{"sites": [{"method": "`+getMethod+`", "mode": "off"}]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	creds := grpc.WithTransportCredentials(insecure.NewCredentials())
	cc, err := specgrpc.NewClient("passthrough:///x", creds,
		specgrpc.WithCallSites(control.CallSiteConfig{Name: getMethod, Ordered: true}), specgrpc.WithCallSiteFile(file, nil))
	if err != nil {
		t.Fatal(err)
	}
	defer cc.Close()
	if mode, _ := cc.CallSite(getMethod).Mode(); mode != control.ModeOff {
		t.Errorf("mode %v: the file should go before the code", mode)
	}
	if got := cc.CallSite(getMethod).Config(); !got.Ordered || got.Effect != control.EffectNone {
		t.Errorf("got %+v: the file should go before the code, the code before the .proto", got)
	}
	if got := cc.CallSite(putMethod).Config(); got.Effect != control.EffectImmediate || got.Name != putMethod {
		t.Errorf("got %+v", got)
	}
	if cc.Target() != "passthrough:///x" || cc.CanonicalTarget() != "passthrough:///x" {
		t.Errorf("target %s, %s", cc.Target(), cc.CanonicalTarget())
	}
	if err := os.WriteFile(file, []byte(`{"sites": [{"method": "`+getMethod+`", "mode": "of"}]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		opt   grpc.DialOption
		wants []string
	}{
		"file":    {specgrpc.WithCallSiteFile(file, nil), []string{file, getMethod, `"mode"`}},
		"no file": {specgrpc.WithCallSiteFile(file+"x", nil), []string{file + "x"}},
		"name":    {specgrpc.WithCallSites(control.CallSiteConfig{Name: "Get"}), []string{`"Get"`}},
		"twice": {specgrpc.WithCallSites(control.CallSiteConfig{Name: getMethod}, control.CallSiteConfig{Name: getMethod}),
			[]string{getMethod, "twice"}},
		"site": {specgrpc.WithCallSites(control.CallSiteConfig{Name: getMethod, Mode: 99}),
			[]string{getMethod, "mode"}},
		"lease":          {specgrpc.WithLease(0), []string{"lease"}},
		"half-open":      {specgrpc.WithMaxHalfOpen(-1), []string{"half-open"}},
		"request's size": {specgrpc.WithMaxSpeculativeRequest(-1), []string{"size"}},
		"logger":         {specgrpc.WithLogger(nil), []string{"logger"}},
	} {
		_, err := specgrpc.NewClient("passthrough:///x", creds, tt.opt)
		for _, want := range tt.wants {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: got %v, want it to say %s", name, err, want)
			}
		}
	}
	if _, err := specgrpc.NewClient("passthrough:///x"); err == nil {
		t.Error("without credentials NewClient should fail as grpc's does")
	}
}

// A misspelt method of a service that is linked in is an error, not a site that nobody calls.
func TestMisspeltMethod(t *testing.T) {
	_, err := specgrpc.ParseCallSites([]byte(`{"sites": [{"method": "/foresay.testkv.v1.TestKV/Gett", "mode": "on"}]}`),
		nil)
	for _, want := range []string{"Gett", "TestKV", "Get, Put"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want it to say %s", err, want)
		}
	}
	if _, err := specgrpc.ParseCallSites([]byte(`{"sites": [{"method": "/elsewhere.v1.Any/Thing", "mode": "on"}]}`),
		nil); err != nil {
		t.Errorf("a service that is not linked in: %v", err)
	}
}
