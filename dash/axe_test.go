package dash_test

import (
	"compress/gzip"
	"fmt"
	"io"
	"os"
	"testing"
	"time"

	"github.com/foresay/foresay/control"
	"github.com/foresay/foresay/dash"
	"github.com/foresay/foresay/observe"
)

// axe is axe-core's script: see testdata/README.md.
func axe(t *testing.T) string {
	t.Helper()
	f, err := os.Open("testdata/axe.min.js.gz")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	script, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	return string(script)
}

// browseAccessible has axe look at the page in its states, in both themes and at two widths.
func browseAccessible(t *testing.T, b *browser) {
	collector, err := observe.NewCollector(observe.Config{})
	if err != nil {
		t.Fatal(err)
	}
	s := newShop(t, control.Config{RecentEvery: -1, OnRequest: []func(*control.RequestRecord){collector.Record}})
	for i := range 20 {
		ctx, r := s.control.Begin(t.Context(), "GET /page", "")
		s.task(t, ctx, "", i%4 > 0, time.Millisecond)
		r.End(nil)
	}
	s.control.SetProblem("site file sites.json", "line 3: no")
	addr, _ := sockets(t, "127.0.0.1:0", dash.Handler(dash.Config{Control: s.control, Collector: collector, Name: "shop",
		Authorize: mayAll}))
	script := axe(t)
	// What axe finds hangs on the colours or on the layout, not on how the two are combined.
	for i, theme := range []string{"light", "dark"} {
		width := []int{1440, 390}[i]
		b.shape(width, 900, theme)
		b.open(page(addr))
		b.until(`document.querySelector(".verdicts .verdict") && document.querySelector("#task-view .line.run") && document.querySelector("#banners .problems") && document.querySelector("select.mode")`)
		// Tasks are named after the request that they are made for.
		b.until(`document.querySelector("#task-list .name").textContent === "GET /page"`)
		b.eval(script + ";0")
		look := func(state string) {
			t.Helper()
			const found = `axe.run(document, { resultTypes: ["violations"] }).then((r) => r.violations.map((v) => v.id + " (" + v.help + "): " + v.nodes.slice(0, 3).map((n) => n.target.join(" ") + " " + n.failureSummary.replace(/\s+/g, " ")).join("; ")))`
			for _, v := range b.eval(found).([]any) {
				t.Errorf("%s, %s, %d px: %v", state, theme, width, v)
			}
		}
		look("the page")
		b.eval(`(() => { const m = document.querySelector("select.mode"); m.value = "observe"; m.dispatchEvent(new Event("change")); })()`)
		look("a mode is chosen")
		b.eval(`document.querySelector(".apply button").click()`)
		b.until(`document.getElementById("confirm").open`)
		look("the dialog")
		b.eval(`document.getElementById("confirm-yes").click()`)
		b.until(`document.querySelector("#notice button")`)
		look("the notice")
		b.eval(`document.querySelector("#notice button").click()`)
		b.until(`document.getElementById("notice").textContent.includes("Taken back")`)
		b.eval(`(() => { const o = document.getElementById("tasks-order"); o.value = "failed"; o.dispatchEvent(new Event("change")); })()`)
		b.until(`!document.querySelector("#task-list [role=option]")`)
		look("the task that is shown is not in the list")
	}
	b.shape(1440, 900, "light")
	if n := b.eval(fmt.Sprintf(`axe.run(document, { runOnly: ["%s"] }).then((r) => r.passes.length)`,
		"color-contrast")); n != 1.0 {
		t.Errorf("axe saw no colours: %v", n)
	}
	b.clean()
}
