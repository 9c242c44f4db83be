package cli

import (
	"os"
	"strings"
	"testing"

	"github.com/foresay/foresay/internal/cli/command"
)

// TestPagesShowCommandsThatExist: each foresay command in a shell block of these pages can be
// understood: the command, its flags, its arguments.
func TestPagesShowCommandsThatExist(t *testing.T) {
	for _, page := range []string{"../../docs/smr.md", "../../docs/store.md", "../../docs/analyze.md",
		"../../docs/dashboard.md", "../../docs/adopting.md", "../../README.md"} {
		b, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		n, shell := 0, false
		for _, line := range strings.Split(string(b), "\n") {
			if fence, ok := strings.CutPrefix(line, "```"); ok {
				shell = fence == "sh"
				continue
			}
			line, _, _ = strings.Cut(line, " #")
			words := strings.Fields(strings.TrimPrefix(line, "go run ./cmd/"))
			if !shell || len(words) == 0 || words[0] != "foresay" {
				continue
			}
			n++
			p := &command.Program{Streams: Streams{In: strings.NewReader("")}}
			command, rest, err := root(p).Find(words[1:])
			if err == nil {
				err = command.ParseFlags(rest)
			}
			if err == nil {
				err = command.ValidateArgs(command.Flags().Args())
			}
			if err != nil || !command.HasParent() || command.HasSubCommands() && command.Name() != "bench" {
				t.Errorf("%s: %q is no command: %v", page, line, err)
			}
		}
		if n == 0 {
			t.Errorf("%s shows no command", page)
		}
	}
}
