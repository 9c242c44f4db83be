package storecmd

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/foresay/foresay/internal/cli/command"
)

func TestOpsOfArguments(t *testing.T) {
	for _, tc := range []struct{ args, want string }{
		{"get a", "[{get a }]"},
		{"get a , put b 1 , delete c", "[{get a } {put b 1} {delete c }]"},
		{"put , ,", "[{put , ,}]"},
		{"put , , , get ,", "[{put , ,} {get , }]"},
		{"", "a command is missing"},
		{"get", "get with 0 arguments"},
		{"put a", "put with 1 arguments"},
		{"get a b", `"b" after get; commands of a transaction have a comma between them`},
		{"get a ,", "a command is missing"},
		{"scan a", `there is no command "scan"`},
	} {
		ops, err := parseOps(strings.Fields(tc.args))
		got := ""
		if err != nil {
			got = err.Error()
		} else {
			var all []string
			for _, op := range ops {
				all = append(all, fmt.Sprintf("{%s %s %s}", op.Name, op.Key, op.Value))
			}
			got = "[" + strings.Join(all, " ") + "]"
		}
		if !strings.HasPrefix(got, tc.want) {
			t.Errorf("%q gives %s, want %s", tc.args, got, tc.want)
		}
	}
}

func TestTransactionsOfLines(t *testing.T) {
	for _, tc := range []struct {
		lines string
		sizes []int // of the transactions
		err   string
	}{
		{lines: "get a\nput b 1", sizes: []int{1, 1}},
		{lines: "# nothing\n\nbegin\nget a\nput b 1\ncommit\nget b", sizes: []int{2, 1}},
		{lines: "begin\nput a 1\nabort\nget a", sizes: []int{1}},
		{lines: "begin\nget a", err: "commit is missing"},
		{lines: "begin\nbegin", err: "begin within a transaction"},
		{lines: "commit", err: "commit without begin"},
		{lines: "put a", err: "put with 1 arguments"},
		{lines: "begin\ncommit", sizes: nil},
		{lines: "", err: "no command is given"},
		{lines: "# nothing\n\n", err: "no command is given"},
	} {
		var s script
		var sizes []int
		var err error
		for _, line := range strings.Split(tc.lines, "\n") {
			var ops []op
			if ops, err = s.line(line); err != nil {
				break
			}
			if ops != nil {
				sizes = append(sizes, len(ops))
			}
		}
		if err == nil {
			err = s.end()
		}
		if tc.err != "" && (err == nil || !strings.Contains(err.Error(), tc.err)) || tc.err == "" &&
			(err != nil || !slices.Equal(sizes, tc.sizes)) {
			t.Errorf("%q gives transactions of %v, %v", tc.lines, sizes, err)
		}
	}
}

// TestMistakesAsJSON: what is wrong with a line is an object with --json, too.
func TestMistakesAsJSON(t *testing.T) {
	for in, want := range map[string]string{
		"jump\n":  `line 1: there is no command \"jump\"; `,
		"\nget\n": `line 2: get with 0 arguments; `,
		"\n":      `no command is given, nor one on standard input; `,
		"begin\n": `the script ends within a transaction: commit is missing"`,
	} {
		for _, json := range []bool{false, true} {
			var out strings.Builder
			p := &program{&command.Program{Streams: command.Streams{Out: &out, Err: &out}}}
			x := &txns{p: p, flags: &clientFlags{json: json}}
			err := x.script(t.Context(), strings.NewReader(in))
			got := strings.HasPrefix(out.String(), `{"outcome":"failed","error":"`+want)
			if err == nil || got != json || !json && out.Len() > 0 {
				t.Errorf("%q, JSON %v: it says %q, and fails with %v", in, json, out.String(), err)
			}
		}
	}
}
