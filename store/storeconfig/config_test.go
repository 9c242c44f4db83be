package storeconfig

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/foresay/foresay/internal/cli/configfile"
)

func write(t *testing.T, dir, name, text string) string {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestExamplesCanBeRead(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "store.json", Example())
	write(t, dir, "store-oregon.json", strings.ReplaceAll(Example(), "10.1.0.1", "localhost"))
	m, err := ReadMachine(write(t, dir, "machine.json", MachineExample()))
	if err != nil {
		t.Fatal(err)
	}
	if m.SiteName() != "oregon" || m.Listen.Client != "0.0.0.0:7401" || m.Data != filepath.Join(dir, "data-oregon") ||
		m.TLS.CA != filepath.Join(dir, "ca.pem") {
		t.Errorf("the machine's example means %+v", m)
	}
	if s := m.Store; s.RoundTripTime() != 250*time.Millisecond || s.RetainTime() != time.Minute ||
		s.MaxAheadTime() != time.Minute || len(s.Topology().Sites) != 3 {
		t.Errorf("the store's example means %+v", s)
	}
	name := write(t, dir, "client.json", ClientExample())
	for site, want := range map[string]string{"": "10.1.0.1:7401", "oregon": "localhost:7401"} {
		c, err := ReadClient(name, site)
		if err != nil {
			t.Fatal(err)
		}
		if got := c.Store.Sites[0].Machines[0].Client; got != want || c.StorePath() != filepath.Join(dir, "store.json") {
			t.Errorf("at site %q oregon is at %s, want %s", site, got, want)
		}
	}
	if _, err := ReadClient(name, "mars"); err == nil ||
		!strings.Contains(err.Error(), `client.json:5: views: there is none for the site "mars"`) {
		t.Errorf("a client at a site without a view: %v", err)
	}
}

const (
	storeStart = "{\"cluster\": \"c\", \"epoch\": 1, \"shards\": 2,\n"
	siteA      = `{"name": "a", "number": 1, "machines": [{"name": "a", "peers": "h:1", "client": "h:2"}]}`
)

func TestMistakesInAStore(t *testing.T) {
	for _, tc := range []struct{ text, want string }{
		{`{"cluster": ""}`, `f:1: cluster: it is missing`},
		{`{"cluster": "c"}`, `f: epoch: it is missing`},
		{`{"cluster": "c", "id": "a b"}`, `f:1: id: "a b" is none: letters`},
		{"{\"cluster\": \"c\",\n\"epoch\": 1}", `f: shards: it is missing`},
		{`{"colour": 1}`, `f:1: colour: there is no such field`},
		{storeStart + `"sites": []}`, `f:2: sites: there are none`},
		{storeStart + `"retain": "long", "sites": [` + siteA + `]}`, `f:2: retain: "long" is no duration such as 250ms`},
		{storeStart + `"max_offset": "5ms", "sites": [` + siteA + `]}`,
			`f:2: max_offset: the protocol replicatedcommit does not rely on clocks`},
		{storeStart + `"order": "arrival", "sites": [` + siteA + `]}`,
			`f:2: order: the protocol replicatedcommit handles requests as they come`},
		{storeStart + `"protocol": "carousel", "order": "age", "sites": [` + siteA + `]}`,
			`f:2: order: unknown order "age" (want arrival, or none)`},
		{storeStart + `"protocol": "str", "speculate": "9", "sites": [` + siteA + `]}`,
			`f:2: speculate: unknown degree "9" (want tuned, off, reads, 1, 2, 3, 4, 5, 6, 7, 8)`},
		{storeStart + `"protocol": "str", "mode": "clocksi-rep", "speculate": "off", "sites": [` + siteA + `]}`,
			`f:2: speculate: transactions of str in mode clocksi-rep build on nothing that is not final`},
		{storeStart + `"readers": 2, "sites": [` + siteA + `]}`,
			`f:2: readers: in a store of the protocol replicatedcommit copies that serve reads are not told from others`},
		{storeStart + `"protocol": "str", "readers": -1, "sites": [` + siteA + `]}`,
			`f:2: readers: it is -1; want at least 2 (or 0 for all copies)`},
		{storeStart + `"protocol": "str", "readers": 2, "sites": [` + siteA + `]}`,
			`f:2: readers: it is 2, and a shard has no more than 1 copies`},
		{storeStart + `"protocol": "carousel", "max_offset": "no", "sites": [` + siteA + `]}`,
			`f:2: max_offset: "no" is no duration such as 250ms`},
		{storeStart + `"protocol": "carousel", "round_trip": "60ms", "max_offset": "241ms", "sites": [` + siteA + `]}`,
			`f:2: max_offset: it is 241ms; want at most 240ms, which with a round_trip of 60ms is 4 of those: commits wait`},
		{storeStart + `"protocol": "carousel", "max_offset": "1001ms", "sites": [` + siteA + `]}`,
			`f:2: max_offset: it is 1001ms; want at most 1s, which with a round_trip of 250ms is 4 of those`},
		{storeStart + `"round_trip": "1ns", "sites": [` + siteA + `]}`,
			`f:2: round_trip: it is 1ns; want 1ms to 1m0s: timeouts are multiples of it`},
		{storeStart + `"round_trip": "100h", "sites": [` + siteA + `]}`, `f:2: round_trip: it is 100h; want 1ms to 1m0s`},
		{storeStart + `"max_txns": -1, "sites": [` + siteA + `]}`, `f:2: max_txns: -1 is less than 0`},
		{storeStart + "\"sites\": [" + siteA + "],\n\"placement\": [[\"a\"], [\"a\"]]}",
			`f:3: placement: in a store of the protocol replicatedcommit all sites have all shards`},
		{storeStart + "\"protocol\": \"layered\", \"sites\": [" + siteA + "],\n\"placement\": [[\"a\"], [\"b\"]]}",
			`f:3: placement: store: the placement has shard 1 at "b", which is no site`},
		{storeStart + "\"sites\": [" + siteA + "],\n\"coordinating\": [[\"a\"]]}",
			`f:3: coordinating: the protocol replicatedcommit has no groups that only coordinate`},
		{storeStart + `"protocol": "carousel", "mode": "direct", "sites": [` + siteA + `]}`,
			`f: coordinating: it is missing: the sites of each of the groups`},
		{storeStart + "\"protocol\": \"carousel\", \"mode\": \"direct\", \"sites\": [" + siteA +
			"],\n\"coordinating\": [[\"b\"]]}",
			`f:3: coordinating: store: the list of groups that coordinate has shard 2 at "b", which is no site`},
		{storeStart + `"sites": [{"name": "../a"}]}`, `f:2: sites[0].name: "../a" is no name`},
		{storeStart + `"sites": [{"name": "a", "number": 99}]}`, `f:2: sites[0].number: it is 99; want 1 to 56`},
		{storeStart + `"sites": [{"name": "a", "number": 1}]}`, `f:2: sites[0].machines: there are none`},
		{storeStart + "\"sites\": [{\"name\": \"a\", \"number\": 1, \"machines\": [\n{\"name\": \"\"}]}]}",
			`f:3: sites[0].machines[0].name: "" is no name`},
		{
			storeStart + "\"sites\": [{\"name\": \"a\", \"number\": 1, \"machines\": [\n{\"name\": \"m\", \"peers\": \"h\"}]}]}",
			`f:3: sites[0].machines[0].peers: "h": missing port in address`,
		},
		{storeStart + `"sites": [` + strings.Replace(siteA, `"number": 1`, `"number": 1, "since": 2`, 1) + `]}`,
			`f:2: sites[0].since: it is 2, and the epoch is 1`},
		{
			storeStart + "\"sites\": [" + siteA + ",\n" + strings.Replace(siteA, `"a"`, `"b"`, 1) + `]}`,
			`f:3: sites[1].machines[0].peers: "h:1" is sites[0].machines[0].peers as well`,
		},
		{
			storeStart + "\"sites\": [" + siteA + ",\n" + strings.NewReplacer("h:", "g:", `"name": "a"`, `"name": "b"`).Replace(
				siteA) + `]}`,
			`f:2: sites: store: site "b": the number 1 is another site's`,
		},
	} {
		s := &Store{}
		err := configfile.Parse("f", []byte(tc.text), s, s.check)
		if err == nil || !strings.HasPrefix(err.Error(), tc.want) {
			t.Errorf("%s\ngives the error %v, want one that begins with %q", tc.text, err, tc.want)
		}
	}
}

func TestMistakesInAMachine(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "s.json", storeStart+`"sites": [`+siteA+`]}`)
	write(t, dir, "bad.json", "{\n\"epoch\": 0}")
	const start = "{\"store\": \"s.json\",\n\"machine\": \"a\""
	for _, tc := range []struct{ text, want string }{
		{`{}`, `m.json: store: it is missing`},
		{`{"store": "none.json"}`, `m.json: store: open ` + filepath.Join(dir, "none.json")},
		{`{"store": "bad.json"}`, `m.json: store: ` + filepath.Join(dir, "bad.json") + `: cluster: it is missing`},
		{`{"store": "s.json"}`, `m.json: machine: it is missing`},
		{"{\"store\": \"s.json\",\n\"machine\": \"b\"}", `m.json:2: machine: s.json has no machine "b"`},
		{start + `}`, `m.json: data: it is missing`},
		{start + `, "data": "d"}`, `m.json: tls: it is missing`},
		{start + `, "data": "d", "insecure": true, "tls": {"ca": "x"}}`, `m.json:2: insecure: it excludes tls`},
		{start + `, "data": "d", "insecure": true, "listen": {"peers": "x"}}`,
			`m.json:2: listen.peers: "x": missing port in address`},
		{start + `, "data": "d", "insecure": true, "metrics": "x"}`, `m.json:2: metrics: "x": missing port in address`},
		{start + `, "data": "d", "insecure": true, "cache_bytes": -1}`, `m.json:2: cache_bytes: -1 is less than 0`},
		{start + `, "data": "d", "insecure": true, "log": {"level": "loud"}}`, `m.json:2: log.level: "loud" is not one of`},
	} {
		_, err := ReadMachine(write(t, dir, "m.json", tc.text))
		if want := "config: " + filepath.Join(dir, tc.want); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s\ngives the error %v, want one that begins with %q", tc.text, err, want)
		}
	}
}

// TestLimitsOfTimes: what is just within them is taken, and so is what the default would be.
func TestLimitsOfTimes(t *testing.T) {
	for _, times := range []string{`"round_trip": "60ms", "max_offset": "240ms"`, `"max_offset": "1s"`,
		`"round_trip": "1ms", "max_offset": "10ms"`, `"round_trip": "1m"`} {
		s := &Store{}
		if err := configfile.Parse("f", []byte(storeStart+`"protocol": "carousel", `+times+`, "sites": [`+siteA+`]}`), s,
			s.check); err != nil {
			t.Errorf("%s: %v", times, err)
		}
	}
}

// TestExampleHasAllFields: who writes a file by hand finds all there is in the example.
func TestExampleHasAllFields(t *testing.T) {
	for f := range reflect.TypeFor[Store]().Fields() {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name != "" && !strings.Contains(Example(), `"`+name+`"`) {
			t.Errorf("the example has no %s", name)
		}
	}
}

// FuzzStore: whatever a file holds, reading it ends, and an error names a line of it.
func FuzzStore(f *testing.F) {
	f.Add(Example())
	f.Add(`{"sites": [{"name": "a", "machines": [{"shards": [-1]}]}, {}]}`)
	f.Fuzz(func(t *testing.T, text string) {
		s := &Store{}
		err := configfile.Parse("f", []byte(text), s, s.check)
		if at, ok := errors.AsType[*configfile.FileError](err); err != nil &&
			(!ok || at.Line < 0 || at.Line > 1+strings.Count(text, "\n")) {
			t.Errorf("the error %v of a file of %d lines", err, 1+strings.Count(text, "\n"))
		}
	})
}

// TestFragile: a store with too few sites, or a placement with too few replicas, is said to be one.
func TestFragile(t *testing.T) {
	few, enough := [][]string{{"a", "b", "c"}, {"b", "c"}}, [][]string{{"a", "b", "c"}, {"b", "c", "d"}}
	sites := []Site{{Name: "a"}, {Name: "b"}, {Name: "c"}, {Name: "d"}}
	for _, tc := range []struct {
		store Store
		want  string
	}{
		{Store{Sites: sites}, ""},
		{Store{Sites: sites, Placement: enough, Coordinating: enough}, ""},
		{Store{Sites: sites[:3]}, ""},
		{Store{Sites: sites[1:3]}, "all is away while one of the sites b and c is: a majority of two is both"},
		{Store{Sites: sites[1:3], Placement: few[1:]},
			"shard 0 is away while one of its sites is: it has copies at b, c only; with 3 it is not"},
		{Store{Sites: sites[:1]}, "nothing is replicated: all is at the site a, and lost with it"},
		{Store{Sites: sites, Placement: few},
			"shard 1 is away while one of its sites is: it has copies at b, c only; with 3 it is not"},
		{Store{Sites: sites, Placement: enough, Coordinating: few}, "the coordinating group 1 is away while"},
	} {
		if got := tc.store.Fragile(); !strings.HasPrefix(got, tc.want) || got != "" && tc.want == "" {
			t.Errorf("of %d sites, placement %v, coordinating %v: %q, want %q", len(tc.store.Sites), tc.store.Placement,
				tc.store.Coordinating, got, tc.want)
		}
	}
}
