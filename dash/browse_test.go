package dash_test

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/foresay/foresay/control"
	"github.com/foresay/foresay/dash"
	"github.com/foresay/foresay/observe"
)

// sockets serves a handler where a browser reaches it, at the address or a free
// one, until close is called or the test ends.
func sockets(t *testing.T, addr string, h http.Handler) (address string, stop func()) {
	t.Helper()
	lis, err := net.Listen("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	s := &http.Server{Handler: h}
	served := make(chan struct{})
	go func() {
		defer close(served)
		_ = s.Serve(lis)
	}()
	stop = func() {
		s.Close()
		<-served
	}
	t.Cleanup(stop)
	return lis.Addr().String(), stop
}

func page(addr string) string { return "http://" + addr + dash.Path }

// busy has the shop's tasks run, every so often, until the test ends.
func (s *shop) busy(t *testing.T, every time.Duration) {
	ctx, cancel := context.WithCancel(t.Context())
	var all sync.WaitGroup
	all.Go(func() {
		ticker := time.NewTicker(every)
		defer ticker.Stop()
		for i, start := 0, time.Now(); ; {
			select {
			case <-ctx.Done():
				return
			case <-ticker.C: // which may leave some out
				for ; time.Duration(i)*every < time.Since(start); i++ {
					n := i
					all.Go(func() { s.task(t, ctx, fmt.Sprint("task ", n), n%4 > 0, 5*time.Millisecond) })
				}
			}
		}
	})
	t.Cleanup(func() {
		cancel()
		all.Wait()
	})
}

// TestBrowser looks at the page as people do.
func TestBrowser(t *testing.T) {
	browse(t, []view{{"nothing yet", browseNothing}, {"read-only", browseReadOnly}, {"switch", browseSwitch},
		{"lost", browseLost}, {"several services", browseServices}, {"report", browseReport},
		{"break-even", browseBreakEven}, {"fast", browseFast}})
}

// TestBrowserOfMany looks at what takes a browser longest, at the same time as TestBrowser.
func TestBrowserOfMany(t *testing.T) {
	browse(t, []view{{"accessible", browseAccessible}, {"many sites", browseMany}})
}

// view is a page that a browser looks at.
type view struct {
	name string
	run  func(*testing.T, *browser)
}

// browse looks at pages, one after the other, with a browser of its own.
func browse(t *testing.T, views []view) {
	t.Parallel()
	b := startBrowser(t)
	b.shape(1440, 900, "light")
	for _, test := range views {
		t.Run(test.name, func(t *testing.T) {
			mine := b.in(t)
			defer mine.open("about:blank") // before the servers go, which the page would complain about
			test.run(t, mine)
		})
	}
}

func browseNothing(t *testing.T, b *browser) {
	c, err := control.New(control.Config{})
	if err != nil {
		t.Fatal(err)
	}
	addr, _ := sockets(t, "127.0.0.1:0", dash.Handler(dash.Config{Control: c, Name: "empty"}))
	b.open(page(addr))
	b.until(`document.body.innerText.includes("No site yet") && document.body.innerText.includes("No task kept yet") && !document.body.innerText.includes("Waiting for the first task")`)
	b.until(`document.title === "empty · Foresay" && document.getElementById("link").textContent === "live"`)
	b.clean()
}

func browseReadOnly(t *testing.T, b *browser) {
	s := newShop(t, control.Config{RecentEvery: -1})
	s.busy(t, 20*time.Millisecond)
	addr, _ := sockets(t, "127.0.0.1:0", dash.Handler(dash.Config{Control: s.control}))
	b.open(page(addr))
	b.until(`document.querySelectorAll(".sites tbody tr").length === 2`)
	b.until(`document.querySelectorAll("#task-list .task").length > 10`)
	// The task that is shown has run twice: what was discarded is there, with its marks.
	b.until(`document.querySelectorAll("#task-view .line.run").length === 2 && document.querySelector("#task-view .seg.discarded") && document.querySelector("#task-view .mark.answered")`)
	b.until(`document.querySelector("#tile-hits .value").textContent.includes("%")`)
	if b.eval(`document.querySelector("select.mode") === null && document.getElementById("kill").hidden`) != true {
		t.Error("the page lets switch what may not be switched")
	}
	// By keyboard: another task, and a line of it.
	b.eval(`document.getElementById("task-list").focus()`)
	b.key("Home", 36) // from here on the list stands still
	b.until(`document.querySelector("#task-list .task").getAttribute("aria-selected") === "true"`)
	b.key("ArrowDown", 40)
	b.until(`document.querySelectorAll("#task-list .task")[1].getAttribute("aria-selected") === "true" && document.querySelectorAll("#task-list .task")[1].querySelector(".name").textContent === document.querySelector("#task-view h3").textContent`)
	b.eval(`document.querySelector("#task-view .line[tabindex='0']").focus()`)
	b.key("ArrowDown", 40)
	b.until(`document.getElementById("task-detail").textContent.startsWith("Call ")`)
	b.clean()
}

func browseSwitch(t *testing.T, b *browser) {
	s := newShop(t, control.Config{})
	s.busy(t, 20*time.Millisecond)
	addr, _ := sockets(t, "127.0.0.1:0", dash.Handler(dash.Config{Control: s.control, Authorize: mayAll, Name: "shop"}))
	b.open(page(addr))
	row := `document.querySelector("tr[data-site='/shop.Prices/Get']")`
	mode := row + `.querySelector("select.mode")`
	is := func(m control.Mode, share float64) {
		t.Helper()
		if mode, s := s.prices.Mode(); mode != m || s != share {
			t.Errorf("the mode is %v, %v; want %v, %v", mode, s, m, share)
		}
	}
	b.until(mode + `.value === "on" && document.querySelectorAll("#tile-saved .value").length === 1`)
	// With the keys, through the select: nothing changes before the dialog is agreed to.
	b.eval(mode + `.focus()`)
	b.key("ArrowUp", 38)
	b.until(mode + `.value === "canary 0.5"`)
	is(control.ModeOn, 0)
	b.key("Tab", 9)
	b.until(`document.activeElement.textContent === "Apply\u2026"`)
	is(control.ModeOn, 0)
	b.press("Enter", 13, "\r")
	b.until(`document.getElementById("confirm").open && document.activeElement.id === "confirm-no"`)
	b.until(`document.getElementById("confirm").innerText.includes("Set Prices/Get to canary 50") && document.getElementById("confirm").innerText.includes("of the requests use predictions") && document.getElementById("confirm").innerText.includes("It is on now")`)
	b.key("Escape", 27)
	b.until(`!document.getElementById("confirm").open && document.activeElement === ` + mode + ` && ` + mode +
		`.value === "canary 0.5"`)
	is(control.ModeOn, 0)
	b.key("Tab", 9)
	b.press("Enter", 13, "\r")
	b.until(`document.getElementById("confirm").open`)
	b.key("Tab", 9)
	b.until(`document.activeElement.id === "confirm-yes"`)
	b.press("Enter", 13, "\r")
	b.until(row + `.innerText.includes("set at run time") && ` + mode + `.value === "canary 0.5"`)
	is(control.ModeCanary, 0.5)
	// Another one, and back: to what was set at run time, and then to what the code says.
	choose := func(value string) {
		b.eval(`(() => { const m = ` + mode + `; m.value = "` + value + `"; m.dispatchEvent(new Event("change")); ` + row +
			`.querySelector(".apply button").click(); document.getElementById("confirm-yes").click(); })()`)
	}
	undo := func() { b.eval(`document.querySelector("#notice button").click()`) }
	choose("shadow 0.01")
	b.until(mode + `.value === "shadow 0.01" && document.getElementById("notice").textContent.includes("set to shadow 1")`)
	is(control.ModeShadow, 0.01)
	undo()
	b.until(mode + `.value === "canary 0.5" && document.getElementById("notice").textContent.includes("Taken back")`)
	choose("default")
	b.until(mode + `.value === "on" && ` + row + `.innerText.includes("set in code")`)
	is(control.ModeOn, 0)
	choose("observe")
	b.until(mode + `.value === "observe"`)
	undo()
	b.until(mode + `.value === "on" && ` + row + `.innerText.includes("set in code")`)
	b.eval(`document.getElementById("kill").click()`)
	b.until(`document.getElementById("confirm").open && document.activeElement.id === "confirm-no" && document.getElementById("confirm").innerText.includes("every call waits")`)
	if s.control.Killed() {
		t.Error("speculation is killed before anybody agreed")
	}
	b.eval(`document.getElementById("confirm-yes").click()`)
	b.until(`document.getElementById("banners").textContent.includes("is killed") && document.getElementById("kill").textContent === "Resume speculation"`)
	if !s.control.Killed() {
		t.Error("speculation is not killed")
	}
	undo()
	b.until(`document.getElementById("banners").textContent === ""`)
	if s.control.Killed() {
		t.Error("speculation is still killed")
	}
	b.clean()
}

func browseMany(t *testing.T, b *browser) {
	s := newShop(t, control.Config{})
	s.busy(t, 20*time.Millisecond)
	for i := range 298 {
		name := fmt.Sprintf("/very.long.package.name.of.some.company.v%d.SomewhatLongServiceName/GetSomething%d", i%3, i)
		if _, err := s.control.NewCallSite(control.CallSiteConfig{Name: name, Mode: control.ModeObserve},
			fmt.Sprintf("dns:///backend-%d.internal:443", i)); err != nil {
			t.Fatal(err)
		}
	}
	addr, _ := sockets(t, "127.0.0.1:0", dash.Handler(dash.Config{Control: s.control, Authorize: mayAll,
		Name: strings.Repeat("long-name-", 9)}))
	b.open(page(addr))
	b.until(`document.querySelectorAll(".sites tbody tr").length === 25 && document.querySelector(".more").textContent === "Show all 300"`)
	b.eval(`document.querySelector(".more").click()`)
	b.until(`document.querySelectorAll(".sites tbody tr").length === 300`)
	b.eval(`(() => { const f = document.getElementById("sites-filter"); f.value = "something29 v2"; f.dispatchEvent(new Event("input")); })()`)
	b.until(`document.querySelectorAll(".sites tbody tr").length === 4 && document.getElementById("sites-count").textContent === "4 of 300"`)
	b.eval(`(() => { const f = document.getElementById("sites-filter"); f.value = "nobody"; f.dispatchEvent(new Event("input")); })()`)
	b.until(`document.body.innerText.includes("No site fits the filter")`)
	b.eval(`(() => { const f = document.getElementById("sites-filter"); f.value = ""; f.dispatchEvent(new Event("input")); document.querySelector("th.col-site button").click(); })()`)
	b.until(`document.querySelector("th.col-site").getAttribute("aria-sort") === "ascending" && document.querySelector(".sites tbody tr").dataset.site === "/shop.Prices/Get"`)
	for _, width := range []int{320, 768, 1440} {
		b.shape(width, 844, "dark")
		b.until(fmt.Sprintf(`innerWidth === %d && document.querySelector("#task-view .line")`, width))
		if wide := b.eval(`document.documentElement.scrollWidth`); wide.(float64) > float64(width) {
			t.Errorf("at %d px the page is %v px wide: %v", width, wide,
				b.eval(fmt.Sprintf(`[...document.querySelectorAll("body *")].filter((e) => e.getBoundingClientRect().right > %d + 1).slice(0, 5).map((e) => e.tagName + "." + e.className).join(", ")`, width)))
		}
	}
	b.shape(1440, 900, "light")
	b.clean()
}

func browseLost(t *testing.T, b *browser) {
	s := newShop(t, control.Config{})
	h := dash.Handler(dash.Config{Control: s.control})
	addr, stop := sockets(t, "127.0.0.1:0", h)
	b.open(page(addr))
	b.until(`document.getElementById("link").textContent === "live" && document.querySelectorAll(".sites tbody tr").length === 2`)
	stop()
	b.until(`document.getElementById("banners").textContent.includes("Connection lost since") && document.getElementById("link").textContent === "offline"`)
	sockets(t, addr, h)
	b.until(`document.getElementById("banners").textContent === "" && document.getElementById("link").textContent === "live"`)
	b.forgive("net::ERR_") // that is what was tried
	b.clean()
}

func browseServices(t *testing.T, b *browser) {
	var services []dash.Service
	for _, name := range []string{"prices", "stock"} {
		s := newShop(t, control.Config{})
		s.busy(t, 20*time.Millisecond)
		addr, _ := sockets(t, "127.0.0.1:0", dash.Handler(dash.Config{Control: s.control, Name: name, Authorize: mayAll}))
		services = append(services, dash.Service{URL: page(addr)})
	}
	gone, stop := sockets(t, "127.0.0.1:0", http.NotFoundHandler())
	stop()
	relay, err := dash.NewRelay(dash.RelayConfig{Services: append(services, dash.Service{Name: "gone", URL: page(gone)}),
		Authorize: mayAll})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ran := make(chan error)
	go func() { ran <- relay.Run(ctx) }()
	addr, _ := sockets(t, "127.0.0.1:0", relay)
	b.open(page(addr))
	b.until(`document.querySelectorAll(".sites tbody tr").length === 4 && document.querySelectorAll("#services button").length === 4`)
	b.until(`document.getElementById("banners").textContent.includes("gone") && document.getElementById("banners").textContent.includes("is down")`)
	b.until(`document.querySelectorAll("#task-list .task").length > 4`)
	b.eval(`[...document.querySelectorAll("#services button")].find((e) => e.textContent === "stock").click()`)
	b.until(`document.querySelectorAll(".sites tbody tr").length === 2 && document.getElementById("banners").textContent === ""`)
	b.clean()
	cancel()
	<-ran
}

// browseReport looks at what is observed, and at what is wrong.
func browseReport(t *testing.T, b *browser) {
	collector, err := observe.NewCollector(observe.Config{})
	if err != nil {
		t.Fatal(err)
	}
	s := newShop(t, control.Config{OnRequest: []func(*control.RequestRecord){collector.Record}})
	ctx, r := s.control.Begin(t.Context(), "GET /page", "")
	s.task(t, ctx, "get", true, time.Millisecond)
	r.End(nil)
	addr, _ := sockets(t, "127.0.0.1:0", dash.Handler(dash.Config{Control: s.control, Collector: collector, Name: "shop"}))
	b.open(page(addr))
	b.until(`document.querySelector(".request-head .name").textContent.trim() === "GET /page"`)
	b.until(`document.querySelector("#tile-errors").innerText.includes("0 of 1 request") && document.querySelector("#tile-saved .label").textContent === "Saved per request"`)
	b.until(`[...document.querySelectorAll(".verdicts .col-method")].map((e) => e.innerText.includes("Prices") + ":" + e.innerText.includes("predicted by the server or the code") + ":" + e.innerText.includes("last response")).sort().join() === "false:false:true,true:true:false"`)
	s.control.SetProblem("site file sites.yaml", "line 3: <b>no</b>")
	s.control.SetProblem("a", "b")
	b.until(`[...document.querySelectorAll("#banners .problems li")].map((e) => e.textContent).join("|") === "a: b|site file sites.yaml: line 3: <b>no</b>"`)
	if b.eval(`document.querySelector(".problems").closest("[role=alert]") !== null`) != true {
		t.Error("the problems are no alert")
	}
	s.control.SetProblem("a", "")
	s.control.SetProblem("site file sites.yaml", "")
	b.until(`document.getElementById("banners").textContent === ""`)
	b.clean()
}

// browseBreakEven has the list of sites and the report name one break-even rate, and none while few
// predictions are judged, and give one reason why nothing is predicted.
func browseBreakEven(t *testing.T, b *browser) {
	collector, err := observe.NewCollector(observe.Config{})
	if err != nil {
		t.Fatal(err)
	}
	s := newShop(t, control.Config{Budget: -1, OnRequest: []func(*control.RequestRecord){collector.Record}})
	visit := func(from, to int) {
		for i := from; i < to; i++ {
			ctx, r := s.control.Begin(t.Context(), "GET /page", "")
			s.task(t, ctx, fmt.Sprint(i), i%4 > 0, time.Millisecond)
			r.End(nil)
		}
		// Each page is a new one, which has a report at once.
		addr, _ := sockets(t, "127.0.0.1:0", dash.Handler(dash.Config{Control: s.control, Collector: collector,
			Name: "shop"}))
		b.open(page(addr))
	}
	row := `document.querySelector("tr[data-site='/shop.Prices/Get'] div.hit")`
	needs := `[...document.querySelectorAll(".verdicts tr")].find((e) => e.innerText.includes("Prices")).querySelector("[data-label=needs]").textContent`
	why := `document.querySelector("tr[data-site='/shop.Stock/Get'] .why").textContent`
	visit(0, 8)
	b.until(why + ` === "no predictors: nothing is predicted"`)
	b.until(row + ` && ` + row + `.innerText.includes("too few to judge") && ` + row + `.querySelector(".meter b").hidden`)
	b.until(`document.querySelector(".verdicts") && ` + needs + ` === "–"`)
	visit(8, 60)
	b.until(row + ` && ` + row + `.innerText.includes("needs ") && !` + row + `.querySelector(".meter b").hidden`)
	b.until(`document.querySelector(".verdicts") && ` + row + `.innerText.split("needs ")[1].trim() === ` + needs +
		`.trim()`)
	s.control.Kill(true)
	b.until(why + ` === "the kill switch has stopped all predictions"`)
	b.clean()
}

// browseFast has a thousand tasks a second before the page, and measures how
// long it is busy at a time and how late it shows them.
func browseFast(t *testing.T, b *browser) {
	s := newShop(t, control.Config{RecentEvery: -1})
	addr, _ := sockets(t, "127.0.0.1:0", dash.Handler(dash.Config{Control: s.control}))
	b.open(page(addr))
	b.until(`document.querySelectorAll(".sites tbody tr").length === 2`)
	b.eval(`(() => {
		window.longest = 0;
		new PerformanceObserver((list) => { for (const e of list.getEntries()) window.longest = Math.max(window.longest, e.duration); }).observe({ type: "longtask", buffered: false });
		window.late = [];
		window.extra = new EventSource("events");
		window.extra.addEventListener("task", (e) => { const t = JSON.parse(e.data); window.late.push(Date.now() - Date.parse(t.start) - t.duration_ns / 1e6); });
	})()`)
	b.call("Performance.enable", map[string]any{"timeDomain": "threadTicks"}, nil)
	worked := b.busyFor()
	start := time.Now()
	s.busy(t, time.Millisecond)
	b.until(`window.late.length > 80`)
	_, total := s.control.Tasks(0)
	t.Logf("%.0f tasks a second", float64(total)/time.Since(start).Seconds())
	share := (b.busyFor() - worked) / time.Since(start).Seconds()
	longest := b.eval(`window.longest`)
	late := b.eval(`window.late.sort((a, b) => a - b)[Math.floor(window.late.length * 0.95)]`)
	t.Logf("the longest that the page was busy: %v ms; 95 %% of the tasks were there after at most %.0f ms; it took "+
		"%.0f %% of a processor", longest, late, 100*share)
	// The others are not checked: they are as long as other programs make them.
	if share > 0.5 {
		t.Errorf("the page takes %.0f %% of a processor", 100*share)
	}
	b.eval(`window.extra.close()`)
	b.clean()
}

// TestScreenshots takes the pictures of docs/dashboard.md, of the page that
// FORESAY_DASH is the address of: see there.
func TestScreenshots(t *testing.T) {
	address, dir := os.Getenv("FORESAY_DASH"), os.Getenv("FORESAY_SHOTS")
	if address == "" || dir == "" {
		t.Skip("FORESAY_DASH does not say what to take a picture of, or FORESAY_SHOTS not where to put it")
	}
	b := startBrowser(t)
	for _, theme := range []string{"light", "dark"} {
		for _, width := range []int{1440, 390} {
			b.shape(width, 900, theme)
			b.open(address)
			b.until(`document.querySelector("#task-view .seg.adopted") && document.querySelector(".sites tbody tr") && document.querySelector(".line-good") && document.querySelector("td.col-calls div").textContent !== "–"`)
			name := fmt.Sprintf("dash-%s-%s.png", map[int]string{1440: "desktop", 390: "phone"}[width], theme)
			height := int(b.eval("document.documentElement.scrollHeight").(float64))
			if err := os.WriteFile(filepath.Join(dir, name), b.picture(width, height), 0o644); err != nil {
				t.Fatal(err)
			}
			t.Logf("%s: %d x %d", name, width, height)
		}
	}
	b.clean()
}
