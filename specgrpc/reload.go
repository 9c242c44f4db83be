package specgrpc

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/foresay/foresay/control"
)

// reloadEvery is how often call site files are looked at.
const reloadEvery = time.Second

// callSiteFile is a file of call sites that is read again when it changes.
type callSiteFile struct {
	path       string
	predictors map[string]control.Predictor
	data       []byte
	overlays   []callSiteOverlay
	made       []callSiteOverlay // when the connection was made
	failed     string            // why the last version is not in force
	waiting    string            // what of the last version the connection does not have
}

func readCallSiteFile(path string, predictors map[string]control.Predictor) (*callSiteFile, error) {
	f := &callSiteFile{path: path, predictors: predictors}
	var err error
	if f.data, err = os.ReadFile(path); err != nil {
		return nil, fmt.Errorf("specgrpc: site file: %w", err)
	}
	if f.overlays, err = parseOverlays(f.data, predictors); err != nil {
		return nil, fmt.Errorf("specgrpc: site file %s: %w", path, err)
	}
	f.made = f.overlays
	return f, nil
}

// reloader applies what changes in call site files while a connection is open.
type reloader struct {
	table  *callSiteTable
	files  []*callSiteFile
	logger *slog.Logger
	stop   chan struct{}
	once   sync.Once // it is closed
	ended  sync.WaitGroup

	mu sync.Mutex // over the files' contents
}

// watchFiles has the files' modes applied, now and when they change.
func (c *callSiteTable) watchFiles(own *clientConfig) *reloader {
	r := &reloader{table: c, files: own.files, logger: own.logger, stop: make(chan struct{})}
	if !own.logs {
		r.logger = c.control.Config().Logger
	}
	if len(own.files) > 0 && !own.readOnce {
		r.ended.Go(r.run)
	}
	return r
}

// apply sets the mode of a call site as the files say, of which a later one goes before
// an earlier one.
func (r *reloader) apply(s *control.CallSite) {
	if r == nil || len(r.files) == 0 {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	mode, share := control.ModeDefault, 0.0
	for _, f := range r.files {
		for _, o := range f.overlays {
			if m, sh := o.mode(); o.method == s.Config().Name && m != control.ModeDefault {
				mode, share = m, sh
			}
		}
	}
	_ = s.Reconfigure(mode, share) // what parsed is in range
}

// close ends the watching.
func (r *reloader) close() {
	if r != nil {
		r.once.Do(func() { close(r.stop) })
		r.ended.Wait()
		for _, f := range r.files {
			r.fail(f, "")
			r.wait(f, "")
		}
	}
}

func (r *reloader) run() {
	tick := time.NewTicker(reloadEvery)
	defer tick.Stop()
	for {
		select {
		case <-r.stop:
			return
		case <-tick.C:
			for _, f := range r.files {
				r.look(f)
			}
		}
	}
}

// look reads a file again. A version with errors changes nothing.
func (r *reloader) look(f *callSiteFile) {
	data, err := os.ReadFile(f.path)
	if err == nil && bytes.Equal(data, f.data) {
		r.fail(f, "")
		r.wait(f, f.waiting) // who has been made anew may have taken it back
		return
	}
	var overlays []callSiteOverlay
	if err == nil {
		overlays, err = parseOverlays(data, f.predictors)
	}
	if err != nil {
		r.fail(f, err.Error())
		return
	}
	r.mu.Lock()
	f.data, f.overlays = data, overlays
	r.mu.Unlock()
	r.fail(f, "")
	for _, m := range r.table.methods.Range {
		r.apply(m.(*method).site)
	}
	r.wait(f, notYet(f.made, overlays))
	if version := sha256.Sum256(data); r.table.control.News("site file "+f.path, string(version[:])) {
		r.logger.Info("specgrpc: site file read again", "file", f.path)
	}
}

// notYet says what of the file takes effect only in new connections, if it has changed since this
// one was made.
func notYet(made, now []callSiteOverlay) string {
	before, after := make(map[string]callSiteOverlay), make(map[string]callSiteOverlay)
	for _, o := range made {
		before[o.method] = o
	}
	for _, o := range now {
		after[o.method] = o
	}
	methods := maps.Clone(before)
	maps.Copy(methods, after)
	var changes []string
	for _, method := range slices.Sorted(maps.Keys(methods)) {
		was, is := before[method].fields, after[method].fields
		fields := make(map[string]json.RawMessage)
		maps.Copy(fields, was)
		maps.Copy(fields, is)
		var names []string
		for _, name := range slices.Sorted(maps.Keys(fields)) {
			if !live(name) && name != "method" && !sameJSON(was[name], is[name]) {
				names = append(names, name)
			}
		}
		if len(names) > 0 {
			changes = append(changes, method+": "+strings.Join(names, ", "))
		}
	}
	if len(changes) == 0 {
		return ""
	}
	return "waiting until the connection is made anew: " + strings.Join(changes, "; ")
}

// wait tells what is not in force yet: the process's connections together once.
func (r *reloader) wait(f *callSiteFile, waiting string) {
	first := waiting != f.waiting
	if f.waiting = waiting; waiting == "" && !first {
		return
	}
	if r.table.control.SetProblem("site file "+f.path+" has changed", waiting) && first && waiting != "" {
		r.logger.Warn("specgrpc: site file", "file", f.path, "change", waiting)
	}
}

func sameJSON(a, b json.RawMessage) bool {
	var x, y bytes.Buffer
	return json.Compact(&x, a) == nil && json.Compact(&y, b) == nil && bytes.Equal(x.Bytes(), y.Bytes())
}

// fail tells why the file's last version is not in force: the process's connections together once.
func (r *reloader) fail(f *callSiteFile, reason string) {
	first := reason != f.failed
	if f.failed = reason; reason == "" && !first {
		return
	}
	if r.table.control.SetProblem("site file "+f.path, reason) && first && reason != "" {
		r.logger.Error("specgrpc: site file: what was in force stays", "file", f.path, "error", reason)
	}
}
