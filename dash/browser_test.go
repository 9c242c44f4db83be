package dash_test

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// browser is a headless Chromium, spoken to over pipes in the Chrome DevTools
// Protocol.
type browser struct {
	t *testing.T
	*chromium
}

type chromium struct {
	out     *os.File
	mu      sync.Mutex
	last    int
	wait    map[int]chan answer
	gone    error
	console []string // what went wrong in the page
	session string
}

type answer struct {
	Result json.RawMessage `json:"result"`
	Error  *struct {
		Message string `json:"message"`
	} `json:"error"`
}

// startBrowser starts one with an empty tab, or skips the test.
func startBrowser(t *testing.T) *browser {
	t.Helper()
	if testing.Short() {
		t.Skip("short: a browser takes seconds to start")
	}
	path := os.Getenv("FORESAY_CHROMIUM")
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome", "chrome"} {
		if path == "" {
			path, _ = exec.LookPath(name)
		}
	}
	if path == "" {
		t.Skip("there is no chromium in PATH, and FORESAY_CHROMIUM does not say where one is")
	}
	cmd := exec.Command(path, "--headless=new", "--remote-debugging-pipe", "--no-sandbox", "--disable-gpu",
		"--disable-quic",
		"--no-first-run", "--no-default-browser-check", "--disable-background-networking", "--disable-component-update",
		"--disable-sync",
		"--disable-extensions", "--disable-dev-shm-usage", "--hide-scrollbars", "--user-data-dir="+t.TempDir(), "about:blank")
	in, out, err := pipes(cmd)
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatalf("start %s: %v", path, err)
	}
	for _, f := range cmd.ExtraFiles {
		f.Close()
	}
	b := &browser{t, &chromium{out: out, wait: make(map[int]chan answer)}}
	read := make(chan struct{})
	go func() {
		defer close(read)
		b.read(in)
	}()
	t.Cleanup(func() {
		_ = b.send("Browser.close", nil, "", nil)
		out.Close()
		stop := time.AfterFunc(10*time.Second, func() { _ = cmd.Process.Kill() })
		_ = cmd.Wait()
		stop.Stop()
		<-read
	})
	b.attach()
	return b
}

// pipes gives the command the descriptors 3, to read, and 4, to write.
func pipes(cmd *exec.Cmd) (in, out *os.File, err error) {
	theirIn, out, err := os.Pipe()
	if err != nil {
		return nil, nil, err
	}
	in, theirOut, err := os.Pipe()
	if err != nil {
		return nil, nil, err
	}
	cmd.ExtraFiles = []*os.File{theirIn, theirOut}
	return in, out, nil
}

func (b *browser) attach() {
	b.t.Helper()
	var made struct {
		TargetID string `json:"targetId"`
	}
	b.call("Target.createTarget", map[string]any{"url": "about:blank"}, &made)
	var at struct {
		SessionID string `json:"sessionId"`
	}
	b.call("Target.attachToTarget", map[string]any{"targetId": made.TargetID, "flatten": true}, &at)
	b.session = at.SessionID
	for _, domain := range []string{"Page", "Runtime", "Log", "Network"} {
		b.call(domain+".enable", nil, nil)
	}
}

// read takes messages, which end with a NUL byte.
func (b *chromium) read(in *os.File) {
	defer in.Close()
	r := bufio.NewReader(in)
	for {
		msg, err := r.ReadBytes(0)
		if err != nil {
			b.mu.Lock()
			b.gone = fmt.Errorf("the browser is gone: %w", err)
			for _, c := range b.wait {
				close(c)
			}
			b.wait = nil
			b.mu.Unlock()
			return
		}
		b.take(bytes.TrimSuffix(msg, []byte{0}))
	}
}

func (b *chromium) take(msg []byte) {
	var m struct {
		ID     int    `json:"id"`
		Method string `json:"method"`
		answer
		Params struct {
			Entry struct {
				Level, Text, URL string
			} `json:"entry"`
			ExceptionDetails struct {
				Text      string
				Exception struct{ Description string }
			} `json:"exceptionDetails"`
			Type    string
			Args    []struct{ Value, Description any }
			Request struct{ URL string }
		} `json:"params"`
	}
	if err := json.Unmarshal(msg, &m); err != nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	switch p := &m.Params; m.Method {
	case "":
		if c := b.wait[m.ID]; c != nil {
			c <- m.answer
			delete(b.wait, m.ID)
		}
	case "Log.entryAdded":
		if p.Entry.Level == "error" || p.Entry.Level == "warning" {
			b.console = append(b.console, p.Entry.Text+" "+p.Entry.URL)
		}
	case "Runtime.exceptionThrown":
		b.console = append(b.console, p.ExceptionDetails.Text+" "+p.ExceptionDetails.Exception.Description)
	case "Runtime.consoleAPICalled":
		if p.Type == "error" || p.Type == "warning" || p.Type == "assert" {
			b.console = append(b.console, fmt.Sprint(p.Type, p.Args))
		}
	case "Network.requestWillBeSent":
		if u := p.Request.URL; !strings.HasPrefix(u, "http://127.0.0.1:") && !strings.HasPrefix(u, "about:") &&
			!strings.HasPrefix(u, "data:") {
			b.console = append(b.console, "the page asked for "+u)
		}
	}
}

// send sends a command and waits for the answer.
func (b *chromium) send(method string, params any, session string, result any) error {
	b.mu.Lock()
	if b.gone != nil {
		b.mu.Unlock()
		return b.gone
	}
	b.last++
	id, c := b.last, make(chan answer, 1)
	b.wait[id] = c
	b.mu.Unlock()
	msg := map[string]any{"id": id, "method": method}
	if params != nil {
		msg["params"] = params
	}
	if session != "" {
		msg["sessionId"] = session
	}
	raw, err := json.Marshal(msg)
	if err != nil {
		return err
	}
	if _, err := b.out.Write(append(raw, 0)); err != nil {
		return err
	}
	select {
	case a, ok := <-c:
		switch {
		case !ok:
			return errors.New("the browser is gone")
		case a.Error != nil:
			return fmt.Errorf("%s: %s", method, a.Error.Message)
		case result != nil:
			return json.Unmarshal(a.Result, result)
		}
		return nil
	case <-time.After(90 * time.Second):
		return fmt.Errorf("%s: no answer in 90 s", method)
	}
}

func (b *browser) call(method string, params, result any) {
	b.t.Helper()
	if err := b.send(method, params, b.session, result); err != nil {
		b.t.Fatal(err)
	}
}

// eval returns what a JavaScript expression comes to. Promises are waited for.
func (b *browser) eval(expression string) any {
	b.t.Helper()
	var out struct {
		Result struct {
			Value any `json:"value"`
		} `json:"result"`
		ExceptionDetails *struct {
			Exception struct{ Description string } `json:"exception"`
		} `json:"exceptionDetails"`
	}
	b.call("Runtime.evaluate", map[string]any{"expression": expression, "returnByValue": true, "awaitPromise": true}, &out)
	if out.ExceptionDetails != nil {
		b.t.Fatalf("%s: %s", expression, out.ExceptionDetails.Exception.Description)
	}
	return out.Result.Value
}

// until waits for an expression to be true, which it asks the page itself to watch.
func (b *browser) until(expression string) {
	b.t.Helper()
	ok := b.eval(`new Promise((done) => {
		const end = performance.now() + 60000;
		const look = () => {
			let is = false;
			try { is = !!(` + expression + `); } catch (e) { is = false; }
			if (is || performance.now() > end) done(is); else setTimeout(look, 50);
		};
		look();
	})`)
	if ok != true {
		b.t.Fatalf("after a minute it is still not true that %s; the page says:\n%v", expression,
			b.eval("document.body.innerText.slice(0, 3000)"))
	}
}

// in returns the browser for a part of the test, which nothing is held against yet.
func (b *browser) in(t *testing.T) *browser {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.console = nil
	return &browser{t, b.chromium}
}

// forgive forgets the complaints that have a text in them.
func (b *browser) forgive(text string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.console = slices.DeleteFunc(b.console, func(c string) bool { return strings.Contains(c, text) })
}

// key presses a key.
func (b *browser) key(name string, code int) {
	b.t.Helper()
	for _, kind := range []string{"rawKeyDown", "keyUp"} {
		b.call("Input.dispatchKeyEvent", map[string]any{"type": kind, "key": name, "code": name,
			"windowsVirtualKeyCode": code}, nil)
	}
}

// press presses a key that types a text.
func (b *browser) press(name string, code int, text string) {
	b.t.Helper()
	for _, kind := range []string{"keyDown", "keyUp"} {
		b.call("Input.dispatchKeyEvent", map[string]any{"type": kind, "key": name, "code": name,
			"windowsVirtualKeyCode": code, "text": text}, nil)
	}
}

// busyFor returns how long the page's main thread has worked, in seconds of CPU
// time: what other programs do on the machine does not count.
func (b *browser) busyFor() float64 {
	b.t.Helper()
	var out struct {
		Metrics []struct {
			Name  string
			Value float64
		}
	}
	b.call("Performance.getMetrics", nil, &out)
	for _, m := range out.Metrics {
		if m.Name == "TaskDuration" {
			return m.Value
		}
	}
	b.t.Fatalf("the browser does not tell how long it worked: %v", out)
	return 0
}

// shape sets the window, in CSS pixels.
func (b *browser) shape(width, height int, scheme string) {
	b.t.Helper()
	b.call("Emulation.setDeviceMetricsOverride", map[string]any{"width": width, "height": height, "deviceScaleFactor": 1,
		"mobile": width < 600}, nil)
	b.call("Emulation.setEmulatedMedia", map[string]any{"features": []map[string]string{{"name": "prefers-color-scheme",
		"value": scheme}}}, nil)
}

func (b *browser) open(address string) {
	b.t.Helper()
	b.call("Page.navigate", map[string]any{"url": address}, nil)
}

// picture returns the page as PNG, from its top to height.
func (b *browser) picture(width, height int) []byte {
	b.t.Helper()
	var out struct {
		Data string `json:"data"`
	}
	b.call("Page.captureScreenshot", map[string]any{
		"format": "png", "captureBeyondViewport": true, "clip": map[string]any{"x": 0, "y": 0, "width": width,
			"height": height, "scale": 1},
	}, &out)
	raw, err := base64.StdEncoding.DecodeString(out.Data)
	if err != nil {
		b.t.Fatal(err)
	}
	return raw
}

// clean fails the test if the page complained or asked for something elsewhere.
func (b *browser) clean() {
	b.t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, c := range b.console {
		b.t.Errorf("the page: %s", c)
	}
}
