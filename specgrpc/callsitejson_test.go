package specgrpc

import (
	"strings"
	"testing"
)

func TestParseCallSitesRefuses(t *testing.T) {
	site := func(fields string) string { return "{\"sites\": [\n{\"method\": \"/a.B/C\", " + fields + "}]}" }
	for _, c := range []struct{ file, want string }{
		{`{"sites":[]} ]`, "line 1"},
		{`{"sites":[]} {}`, "more after the first"},
		{`{"sites":[]`, "line 1"},
		{site(`"limits": {"Depth": 3}`), `line 2: field "sites": field "limits": field "Depth"`},
		{site(`"ordered": null`), `field "ordered": null`},
		{site(`"predictors": null`), `field "predictors": null`},
		{site(`"limits": null`), `field "limits": null`},
		{site(`"ordered": true, "ordered": false`), `"ordered" is repeated`},
		{site(`"ignore_metadata": ["x\nfoo"]`), "no metadata name"},
		{site(`"predictors": ["last"]`), "the program gave none"},
		{`{"sites": [{"method": "/ /C"}]}`, `"/ /C"`},
	} {
		if _, err := ParseCallSites([]byte(c.file), nil); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want one with %q", c.file, err, c.want)
		}
	}
}
