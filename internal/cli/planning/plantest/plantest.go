// Package plantest is what the tests of commands that plan have alike.
package plantest

import (
	"bytes"
	"context"
	"encoding/xml"
	"errors"
	"io"
	"strings"

	"github.com/foresay/foresay/internal/cli"
	"github.com/foresay/foresay/internal/cli/command"
)

// Run runs 'foresay FAMILY plan', and returns what it writes and its exit code.
func Run(ctx context.Context, family string, args ...string) (out, errs string, code int) {
	var o, e bytes.Buffer
	code = cli.Main(ctx, append([]string{family, "plan"}, args...), command.Streams{In: strings.NewReader(""), Out: &o,
		Err: &e})
	return o.String(), e.String(), code
}

// Squeezed has one space where there are several.
func Squeezed(text string) string {
	var lines []string
	for _, l := range strings.Split(text, "\n") {
		lines = append(lines, strings.Join(strings.Fields(l), " "))
	}
	return strings.Join(lines, "\n")
}

// Dots returns how many circles a picture has. The error says that it is no XML.
func Dots(svg []byte) (n int, err error) {
	for d := xml.NewDecoder(bytes.NewReader(svg)); ; {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return n, nil
		}
		if err != nil {
			return n, err
		}
		if e, ok := token.(xml.StartElement); ok && e.Name.Local == "circle" {
			n++
		}
	}
}
