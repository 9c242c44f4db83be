package specgrpc_test

import (
	"bytes"
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/foresay/foresay"
	kvpb "github.com/foresay/foresay/api/foresay/testkv/v1"
	"github.com/foresay/foresay/control"
	"github.com/foresay/foresay/specgrpc"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
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

// A site of code is refused as one of a file is: for a method that its service does
// not have, under the name of a stream, twice.
func TestCallSitesOfNoMethod(t *testing.T) {
	for name, tt := range map[string]struct {
		methods []string
		want    string
	}{
		"no such method":       {[]string{"/foresay.testkv.v1.TestKV/Gett"}, "it has: "},
		"an unknown service":   {[]string{"/foresay.testkv.v1.Other/Gett"}, ""},
		"a misspelt service":   {[]string{"/foresay.testkv.v1.TestVK/Get"}, "did you mean foresay.testkv.v1.TestKV?"},
		"a speculative stream": {[]string{getMethod + ".spec"}, "name the method itself"},
		"twice":                {[]string{getMethod, getMethod}, "configured twice"},
		"no method":            {[]string{"Get"}, "/pkg.Service/Method"},
	} {
		t.Run(name, func(t *testing.T) {
			var sites []control.CallSiteConfig
			for _, m := range tt.methods {
				sites = append(sites, control.CallSiteConfig{Name: m})
			}
			cc, err := specgrpc.NewClient("passthrough:///nobody", grpc.WithTransportCredentials(insecure.NewCredentials()),
				specgrpc.WithCallSites(sites...))
			if err == nil {
				cc.Close()
			}
			if got := err == nil; got != (tt.want == "") || !got && (!strings.Contains(err.Error(), tt.want)) {
				t.Errorf("got %v, want an error that says %q", err, tt.want)
			}
		})
	}
}

// TestCallSiteFileErrorsHelp: errors name the line, and what will have been meant.
func TestCallSiteFileErrorsHelp(t *testing.T) {
	for text, want := range map[string]string{
		"{\"sites\": [\n{\"method\": \"" + getMethod +
			"\",\n\"modes\": \"on\"}]}": `line 3: method ` + getMethod + `: field "modes": unknown; did you mean mode?`,
		"{\"sites\": [\n{\"method\": \"" + getMethod + "\"},\n\n{\"method\": \"" + putMethod +
			"\", \"predictor\": []}]}": `line 4: method ` + putMethod + `: field "predictor": unknown; did you mean predictors?`,
		"{\"sites\": [{\"method\": 5}]}": `line 1: site 1: field "method": want a string, not a number`,
		"{\"sites\": [{\"method\": \"" + getMethod +
			"\",\n \"mode\": 3}]}": `line 2: method ` + getMethod + `: field "mode": want a string, not a number`,
		"{\"sites\": [{\"method\": \"" + getMethod +
			"\",\n \"share\": \"0.5\"}]}": `field "share": want a number, not a string`,
		"{\"sites\": [{\"method\": \"" + getMethod +
			"\",\n \"ordered\": \"yes\"}]}": `field "ordered": want true or false, not a string`,
		"{\"sites\": [{\"method\": \"" + getMethod +
			"\",\n \"limits\": {\"depth\": \"x\"}}]}": `line 2: method ` + getMethod +
			`: field "limits": "depth": want a whole number, not a string`,
		"{\"sites\": [{\"method\": \"" + getMethod +
			"\",\n \"limits\": {\"depth\": 1.5}}]}": `"depth": want a whole number, not 1.5`,
		"{\"sites\": [{\"method\": \"" + getMethod +
			"\",\n \"predictors\": \"last\"}]}": `field "predictors": want a list, not a string`,
		"{\"sites\": [{\"method\": \"" + getMethod +
			"\", \"predictors\": [{\"kind\": \"last\",\n\"entries\": true}]}]}": `"entries": want a whole number, not true or false`,
		"{\"sites\": {}}":    `line 1: "sites": want a list, not an object`,
		"[]":                 `line 1: want an object, not a list`,
		"{\n\n\"site\": []}": `line 3: unknown field "site"; did you mean sites?`,
		"{\"sites\": [{\"method\": \"" + getMethod +
			"\",\n \"limits\": {\"dept\": 1}}]}": `line 2: method ` + getMethod +
			`: field "limits": unknown field "dept"; did you mean depth?`,
		"{\"sites\": [{\"method\": \"" + getMethod +
			"\",\n \"predictors\": [{\"kind\": \"last\", \"byte\": 1}]}]}": `line 2: method ` + getMethod +
			`: field "predictors": predict: config: unknown field "byte"; did you mean bytes?`,
		"{\"sites\": [\n\n{\"name\": \"/a.B/C\"}]}": `line 3: site 1: field "method": it is missing: want a full name such as ` +
			`/pkg.Service/Method; the fields here are ["name"]`,
		"{\"sites\": {\n\"/a.B/C\": {\"mode\": \"on\"}}}": `line 2: field "sites": field "/a.B/C" is unknown: "sites" is a list`,
		"{\"sites\": [{\"method\": \"" + getMethod + "\"},\n {\n\"method\": \"" + getMethod +
			"\"}]}": `line 3: method ` + getMethod + `: configured twice`,
		"{\"sites\": [{\"method\": \"" + getMethod +
			"\",\n\n\"mode\":\n\"of\"}]}": `line 3: method ` + getMethod +
			`: field "mode": "of" is not one of off, observe, shadow, canary, on; did you mean off?`,
		"{\"sites\": [{\"method\": \"" + getMethod +
			"\",\n \"effect\": \"stagd\"}]}": `field "effect": "stagd" is not one of unknown, none, staged, immediate; did you mean staged?`,
		"{\"sites\": [{\"method\": \"" + getMethod +
			"\",\n \"predictors\": [{\"kind\": \"lats\"}]}]}": `"lats" is not one of last, table, constant, chain; did you mean last?`,
	} {
		if _, err := specgrpc.ParseCallSites([]byte(text), nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s:\n%v\nwant %s", text, err, want)
		}
	}
}

// said is a log that may be written to by several.
type said struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (s *said) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.Write(b)
}

func (s *said) count(text string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.Count(s.text.String(), text)
}

// TestCallSiteFileOfManyConnections: what is wrong with a file, or waits for new connections, is
// logged once, and stands in the status until it is so no longer.
func TestCallSiteFileOfManyConnections(t *testing.T) {
	file := filepath.Join(t.TempDir(), "sites.json")
	write := func(site string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(`{"sites": [{"method": "`+getMethod+`", `+site+`}]}`), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	synctest.Test(t, func(t *testing.T) {
		var log said
		ctl, err := control.New(control.Config{Logger: slog.New(slog.NewTextHandler(&log, nil))})
		if err != nil {
			t.Fatal(err)
		}
		dial := func() *specgrpc.ClientConn {
			t.Helper()
			cc, err := specgrpc.NewClient("passthrough:///x", grpc.WithTransportCredentials(insecure.NewCredentials()),
				specgrpc.WithControl(ctl), specgrpc.WithCallSiteFile(file, nil))
			if err != nil {
				t.Fatal(err)
			}
			return cc
		}
		const last, table = `"mode": "observe", "predictors": [{"kind": "last"}]`,
			`"mode": "observe", "predictors": [{"kind": "table"}]`
		write(last)
		var conns []*specgrpc.ClientConn
		for range 5 {
			conns = append(conns, dial())
		}
		problem := func() string { return ctl.Status().Problems["site file "+file] }
		waiting := func() string { return ctl.Status().Problems["site file "+file+" has changed"] }
		write(`"moode": 1`)
		time.Sleep(5 * time.Second)
		if n := log.count("level=ERROR"); n != 1 || !strings.Contains(problem(), "did you mean mode?") {
			t.Errorf("logged %d times: %s", n, problem())
		}
		conns[0].Close() // the others still see it
		time.Sleep(5 * time.Second)
		if n := log.count("level=ERROR"); n != 1 || problem() == "" {
			t.Errorf("with a connection less: logged %d times: %s", n, problem())
		}
		write(table)
		time.Sleep(5 * time.Second)
		if n := log.count("site file read again"); n != 1 {
			t.Errorf("logged %d times that the file was read again, want once for its change", n)
		}
		if n := log.count("level=WARN"); n != 1 || problem() != "" ||
			waiting() != "waiting until the connection is made anew: "+getMethod+": predictors" {
			t.Errorf("logged %d times: %q, %q", n, problem(), waiting())
		}
		for i := 1; i < 5; i++ {
			conns[i].Close()
		}
		defer dial().Close()
		time.Sleep(5 * time.Second)
		if waiting() != "" {
			t.Errorf("with new connections it still waits: %s", waiting())
		}
	})
}
