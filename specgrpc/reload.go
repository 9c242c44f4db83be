package specgrpc

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/foresay/foresay"
)

// reloadEvery is how often site files are looked at.
const reloadEvery = time.Second

// siteFile is a file of sites that is read again when it changes.
type siteFile struct {
	path       string
	predictors map[string]foresay.Predictor
	data       []byte
	overlays   []siteOverlay
	failed     string // why the last version is not in force
}

func readSiteFile(path string, predictors map[string]foresay.Predictor) (*siteFile, error) {
	f := &siteFile{path: path, predictors: predictors}
	var err error
	if f.data, err = os.ReadFile(path); err != nil {
		return nil, fmt.Errorf("specgrpc: site file: %w", err)
	}
	if f.overlays, err = parseOverlays(f.data, predictors); err != nil {
		return nil, fmt.Errorf("specgrpc: site file %s: %w", path, err)
	}
	return f, nil
}

// reloader applies what changes in site files while a connection is open.
type reloader struct {
	table  *siteTable
	files  []*siteFile
	logger *slog.Logger
	stop   chan struct{}
	once   sync.Once // it is closed
	ended  sync.WaitGroup

	mu sync.Mutex // over the files' contents
}

// watchFiles has the files' modes applied, now and when they change.
func (c *siteTable) watchFiles(own *clientConfig) *reloader {
	r := &reloader{table: c, files: own.files, logger: own.logger, stop: make(chan struct{})}
	if !own.logs {
		r.logger = c.control.Config().Logger
	}
	if len(own.files) > 0 && !own.readOnce {
		r.ended.Go(r.run)
	}
	return r
}

// apply sets the mode of a site as the files say, of which a later one goes before
// an earlier one.
func (r *reloader) apply(s *foresay.Site) {
	if r == nil || len(r.files) == 0 {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	mode, share := foresay.ModeDefault, 0.0
	for _, f := range r.files {
		for _, o := range f.overlays {
			if m, sh := o.mode(); o.method == s.Config().Name && m != foresay.ModeDefault {
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
			r.table.control.SetProblem("site file "+f.path, "")
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
func (r *reloader) look(f *siteFile) {
	data, err := os.ReadFile(f.path)
	if err == nil && bytes.Equal(data, f.data) {
		r.fail(f, "")
		return
	}
	var overlays []siteOverlay
	if err == nil {
		overlays, err = parseOverlays(data, f.predictors)
	}
	if err != nil {
		r.fail(f, err.Error())
		return
	}
	r.mu.Lock()
	before := f.overlays
	f.data, f.overlays = data, overlays
	r.mu.Unlock()
	r.fail(f, "")
	for _, m := range r.table.methods.Range {
		r.apply(m.(*method).site)
	}
	known := make(map[string]siteOverlay, len(before))
	for _, o := range before {
		known[o.method] = o
	}
	for _, o := range overlays {
		r.warn(f, known[o.method], o)
		delete(known, o.method)
	}
	for _, gone := range known {
		r.warn(f, gone, siteOverlay{method: gone.method})
	}
	r.logger.Info("specgrpc: site file read again", "file", f.path)
}

// warn tells of changes that need a new connection.
func (r *reloader) warn(f *siteFile, before, after siteOverlay) {
	fields := maps.Clone(before.fields)
	if fields == nil {
		fields = make(map[string]json.RawMessage)
	}
	maps.Copy(fields, after.fields)
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		if !live(name) && name != "method" && !sameJSON(before.fields[name], after.fields[name]) {
			r.logger.Warn("specgrpc: site file: this change takes effect when the connection is made anew", "file", f.path, "method", after.method, "field", name)
		}
	}
}

func sameJSON(a, b json.RawMessage) bool {
	var x, y bytes.Buffer
	return json.Compact(&x, a) == nil && json.Compact(&y, b) == nil && bytes.Equal(x.Bytes(), y.Bytes())
}

// fail tells, once, why the file's last version is not in force.
func (r *reloader) fail(f *siteFile, reason string) {
	if reason == f.failed {
		return
	}
	f.failed = reason
	r.table.control.SetProblem("site file "+f.path, reason)
	if reason != "" {
		r.logger.Error("specgrpc: site file: what was in force stays", "file", f.path, "error", reason)
	}
}
