package wan_test

import (
	"strings"
	"testing"
	"time"

	"github.com/foresay/foresay/wan"
)

func TestParse(t *testing.T) {
	m, err := wan.Parse("sites.json", []byte(`{
		"sites": ["a", "b"],
		"rtt_ms": [[1, 100], [100, 0.5]],
		"links": [
			{"from": "a", "to": "b", "jitter_ms": 2.5, "tail_ms": 1.5, "loss": 0.01, "rto_ms": 300, "bytes_per_second": 1000000},
			{"from": "b", "to": "a", "delay_ms": 80, "down": true}
		]
	}`))
	if err != nil {
		t.Fatal(err)
	}
	for p, want := range map[wan.Path]wan.Link{
		{From: "a", To: "a"}: {Delay: 500 * time.Microsecond},
		{From: "a", To: "b"}: {
			Delay: 50 * time.Millisecond, Jitter: 2500 * time.Microsecond, Tail: 1500 * time.Microsecond, Loss: 0.01,
			RTO: 300 * time.Millisecond, BytesPerSecond: 1_000_000,
		},
		{From: "b", To: "a"}: {Delay: 80 * time.Millisecond, Down: true},
		{From: "b", To: "b"}: {Delay: 250 * time.Microsecond},
	} {
		if got, _ := m.Link(p); got != want {
			t.Errorf("%v: %+v, want %+v", p, got, want)
		}
	}
	m, err = wan.Parse("sites.json", []byte(`{"sites": ["a", "b"], "delay_ms": [[0, 300], [40, 0]]}`))
	if err != nil {
		t.Fatal(err)
	}
	if l, _ := m.Link(wan.Path{From: "b", To: "a"}); l.Delay != 40*time.Millisecond ||
		m.RTT("a", "b") != 340*time.Millisecond {
		t.Errorf("b to a takes %v, the round trip %v", l.Delay, m.RTT("a", "b"))
	}
}

func TestParseErrorsNameWhatAndWhere(t *testing.T) {
	for _, test := range []struct{ data, want string }{
		{"{\n  \"sites\": [\"a\",, \"b\"]\n}", `wan: f.json:2:17: invalid character ',' looking for beginning of value`},
		{``, `wan: f.json:1:1: unexpected end of JSON input`},
		{"{}\nx", `wan: f.json:2:1: invalid character 'x' after top-level value`},
		{`[]`, `wan: f.json: want an object, got []`},
		{`{}`, `wan: f.json: sites: missing`},
		{`{"sites": "a"}`, `wan: f.json: sites: want an array, got "a"`},
		{`{"sites": null}`, `wan: f.json: sites: want an array, got null`},
		{`{"sites": ["a", 1]}`, `wan: f.json: sites[1]: want a string, got 1`},
		{`{"sites": ["a", null]}`, `wan: f.json: sites[1]: want a string, got null`},
		{`{"sites": ["a", "b", "a"]}`, `wan: f.json: sites[2]: site "a" is named twice`},
		{`{"sites": ["a", "b c"]}`, `wan: f.json: sites[1]: site name "b c": ' ' is not a letter, a digit, '.', '_' or '-'`},
		{`{"sites": [], "rtt": []}`, `wan: f.json: rtt: unknown field (want one of sites, rtt_ms, delay_ms, links; did you mean rtt_ms?)`},
		{`{"sites": [], "%d": []}`, `wan: f.json: %d: unknown field (want one of sites, rtt_ms, delay_ms, links)`},
		{`{"sites": [], "sites": []}`, `wan: f.json: sites: given twice`},
		{`{"sites": [], "rtt_ms": [], "delay_ms": []}`, `wan: f.json: delay_ms: rtt_ms is given already`},
		{`{"sites": ["a", "b"], "rtt_ms": [[0, 1]]}`, `wan: f.json: rtt_ms: 1 rows for 2 sites`},
		{`{"sites": ["a", "b"], "rtt_ms": [[0, 1], [1]]}`, `wan: f.json: rtt_ms[1]: 1 numbers for 2 sites`},
		{`{"sites": ["a", "b"], "rtt_ms": [[0, 1], [2, 0]]}`,
			`wan: f.json: rtt_ms[0][1]: 1ms, but 2ms in the other direction; one-way delays go into delay_ms`},
		{`{"sites": ["a"], "delay_ms": [["1"]]}`, `wan: f.json: delay_ms[0][0]: want a number of milliseconds, got "1"`},
		{`{"sites": ["a"], "delay_ms": [[-1]]}`, `wan: f.json: delay_ms[0][0]: -1 ms is not from 0 to a day`},
		{`{"sites": ["a"], "delay_ms": [[1e300]]}`, `wan: f.json: delay_ms[0][0]: 1e+300 ms is not from 0 to a day`},
		{`{"sites": ["a"], "links": {}}`, `wan: f.json: links: want an array, got {}`},
		{`{"sites": ["a"], "links": [1]}`, `wan: f.json: links[0]: want an object, got 1`},
		{`{"sites": ["a"], "links": [{}]}`, `wan: f.json: links[0].from: missing`},
		{`{"sites": ["a"], "links": [{"from": "a", "to": "b"}]}`,
			`wan: f.json: links[0].to: unknown site "b" (the sites are ["a"])`},
		{`{"sites": ["a"], "links": [{"from": 1, "to": "b"}]}`, `wan: f.json: links[0].from: want a string, got 1`},
		{`{"sites": ["a"], "links": [{"from": "a", "to": "a", "los": 1}]}`, `wan: f.json: links[0].los: unknown field ` +
			`(want one of from, to, delay_ms, jitter_ms, tail_ms, loss, rto_ms, bytes_per_second, down; did you mean loss?)`},
		{`{"sites": ["a"], "links": [{"from": "a", "to": "a", "loss": 1}]}`,
			`wan: f.json: links[0].loss: loss 1 is not in [0, 1)`},
		{`{"sites": ["a"], "links": [{"from": "a", "to": "a", "tail_ms": 600001}]}`,
			`wan: f.json: links[0].tail_ms: tail 10m0.001s is not from 0 to 10m0s`},
		{`{"sites": ["a"], "links": [{"from": "a", "to": "a", "bytes_per_second": 1.5}]}`,
			`wan: f.json: links[0].bytes_per_second: want a whole number, got 1.5`},
		{`{"sites": ["a"], "links": [{"from": "a", "to": "a", "down": "it is, very much so, and for a long time"}]}`,
			`wan: f.json: links[0].down: want true or false, got "it is, very much so, and for a long tim...`},
	} {
		if _, err := wan.Parse("f.json", []byte(test.data)); err == nil || err.Error() != test.want {
			t.Errorf("%s:\ngot  %v\nwant %s", test.data, err, test.want)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(`{"sites": ["a", "b"], "rtt_ms": [[0, 1], [1, 0]], "links": [{"from": "a", "to": "b", "loss": 0.5}]}`))
	f.Add([]byte(`{"sites": ["a"], "delay_ms": [[1]]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		m, err := wan.Parse("f.json", data)
		if err != nil {
			if !strings.HasPrefix(err.Error(), "wan: f.json:") {
				t.Errorf("error %q", err)
			}
			return
		}
		for p, l := range m.Links() {
			if err := l.Validate(); err != nil {
				t.Errorf("%v: %v", p, err)
			}
			if err := p.From.Validate(); err != nil {
				t.Error(err)
			}
		}
	})
}
