// Package planning has what the plan commands share: the network and the clients that their flags
// name, how they check and show what they found, tables of milliseconds, and the axis of their
// pictures.
package planning

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/foresay/foresay/internal/cli/command"
	"github.com/foresay/foresay/internal/nearest"
	"github.com/foresay/foresay/wan"
)

// Network returns the network that --wan of a command names, with replicas if it is a paper's: a
// preset, or a file.
func Network(verb, name string) (wan.Deployment, error) {
	if name == "" {
		return wan.Deployment{}, command.Usagef("%s: --wan is missing: name a network, or a file of one", verb)
	}
	d, err := wan.Preset(name)
	if err == nil {
		return d, nil
	}
	data, readErr := os.ReadFile(name)
	if readErr != nil {
		return d, command.Usagef("%s: --wan: %w; nor is it a file: %w", verb, err, readErr)
	}
	d.Name = name
	if d.Matrix, err = wan.Parse(name, data); err != nil {
		return d, fmt.Errorf("%s: --wan: %w", verb, err)
	}
	return d, nil
}

// Sites understands a flag's list of sites.
func Sites(verb, flag string, names []string, m wan.Matrix) ([]wan.Site, error) {
	var sites []wan.Site
	for _, n := range names {
		s := wan.Site(strings.TrimSpace(n))
		if !m.Has(s) {
			return nil, command.Usagef("%s: %s: there is no site %q; the sites are %s", verb, flag, s,
				command.Joined(command.SiteNames(m.Sites())))
		}
		sites = append(sites, s)
	}
	return sites, nil
}

// A Client is where --clients has one, with its weight; 0 if none is given.
type Client struct {
	Site   wan.Site
	Weight float64
}

// Clients understands --clients: all, or sites that may have weights: a=3.
func Clients(verb string, texts []string, m wan.Matrix) ([]Client, error) {
	var out []Client
	if len(texts) == 1 && texts[0] == "all" {
		for _, s := range m.Sites() {
			out = append(out, Client{Site: s})
		}
		return out, nil
	}
	for _, text := range texts {
		name, weight, weighted := strings.Cut(text, "=")
		sites, err := Sites(verb, "--clients", []string{name}, m)
		if err != nil {
			return nil, err
		}
		c := Client{Site: sites[0]}
		if slices.ContainsFunc(out, func(o Client) bool { return o.Site == c.Site }) {
			return nil, command.Usagef("%s: --clients has %s twice; give it a weight instead: %s=2", verb, c.Site, c.Site)
		}
		if weighted {
			if c.Weight, err = strconv.ParseFloat(weight, 64); err != nil || !(c.Weight > 0 && c.Weight <= 1e9) {
				return nil, command.Usagef("%s: --clients: the weight of %s is %q; want a number above 0", verb, c.Site, weight)
			}
		}
		out = append(out, c)
	}
	if len(out) == 0 {
		return nil, command.Usagef("%s: --clients is empty", verb)
	}
	return out, nil
}

// Rounded returns milliseconds with at most two places, and Millis writes them.
func Rounded(d time.Duration) float64 { return math.Round(float64(d)/1e4) / 100 }

// Millis writes milliseconds with at most two places.
func Millis(d time.Duration) string { return strconv.FormatFloat(Rounded(d), 'f', -1, 64) }

// A Table is text in columns, the first Left of them on the left.
type Table struct {
	Left int
	Rows [][]string
}

// Write writes the table.
func (t *Table) Write(w io.Writer) {
	var widths []int
	for _, row := range t.Rows {
		for i, cell := range row {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	for _, row := range t.Rows {
		var line strings.Builder
		for i, cell := range row {
			pad := strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell))
			if i > 0 {
				line.WriteString("  ")
			}
			if i < t.Left {
				line.WriteString(cell + pad)
			} else {
				line.WriteString(pad + cell)
			}
		}
		fmt.Fprintln(w, strings.TrimRight(line.String(), " "))
	}
}

// axisStep returns 1, 2 or 5 times a power of ten, so that about ten steps reach so far.
func axisStep(longest time.Duration) time.Duration {
	step := time.Microsecond
	for factors := []time.Duration{2, 5, 10}; ; step *= 10 {
		for _, f := range append([]time.Duration{1}, factors...) {
			if f*step*12 >= longest {
				return f * step
			}
		}
	}
}

// Escaped returns text as it may stand in a picture.
func Escaped(s string) string {
	var b bytes.Buffer
	// A buffer takes everything.
	_ = xml.EscapeText(&b, []byte(s))
	return b.String()
}

// Systems returns the floor, and the protocols that --protocol asks for: all that are known, if it
// does not ask.
func Systems[S ~string](verb string, asked []string, known []S, floor S) ([]S, error) {
	out := []S{floor}
	for _, name := range asked {
		s, err := System(verb, strings.TrimSpace(name), known)
		if err != nil {
			return nil, err
		}
		if !slices.Contains(out, s) {
			out = append(out, s)
		}
	}
	if len(out) == 1 {
		out = append(out, known...)
	}
	return out, nil
}

// System understands the name of a protocol that the model knows.
func System[S ~string](verb, name string, known []S) (S, error) {
	if slices.Contains(known, S(name)) {
		return S(name), nil
	}
	names := Names(known)
	return "", command.Usagef("%s: --protocol: unknown protocol %q (want %s%s)", verb, name,
		strings.Join(names, ", "), nearest.Hint(name, names))
}

// Names returns the names of systems.
func Names[S ~string](systems []S) (names []string) {
	for _, s := range systems {
		names = append(names, string(s))
	}
	return names
}
