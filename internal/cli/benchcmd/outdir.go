package benchcmd

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"

	"github.com/foresay/foresay/bench"
)

// outDir is a directory for results.
type outDir string

// openOutDir makes the directory and makes sure that files can be written there,
// before an experiment has taken its time.
func openOutDir(path string) (outDir, error) {
	fail := func(err error) (outDir, error) {
		return "", fmt.Errorf("bench: --out: cannot write results to %s: %w", path, err)
	}
	if err := os.MkdirAll(path, 0o755); err != nil {
		return fail(err)
	}
	probe, err := os.CreateTemp(path, ".foresay-*")
	if err != nil {
		return fail(err)
	}
	defer os.Remove(probe.Name())
	if err := probe.Close(); err != nil {
		return fail(err)
	}
	return outDir(path), nil
}

// write writes the result in all forms and returns the files' paths.
func (d outDir) write(e bench.Experiment, r *bench.Result) ([]string, error) {
	var json, csv bytes.Buffer
	if err := r.WriteJSON(&json); err != nil {
		return nil, err
	}
	if err := r.WriteCSV(&csv); err != nil {
		return nil, err
	}
	figures, err := e.Draw(r)
	if err != nil {
		return nil, err
	}
	type file struct {
		name string
		data []byte
	}
	files := []file{{r.Experiment + ".json", json.Bytes()}, {r.Experiment + ".csv", csv.Bytes()}}
	for _, f := range figures {
		files = append(files, file{f.Name + ".svg", f.SVG})
	}
	var paths []string
	for _, f := range files {
		path := filepath.Join(string(d), f.name)
		if err := os.WriteFile(path, f.data, 0o644); err != nil {
			return nil, fmt.Errorf("bench: --out: %w", err)
		}
		paths = append(paths, path)
	}
	return paths, nil
}
