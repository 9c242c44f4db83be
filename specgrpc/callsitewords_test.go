package specgrpc_test

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/foresay/foresay/control"
	"github.com/foresay/foresay/specgrpc"
)

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
