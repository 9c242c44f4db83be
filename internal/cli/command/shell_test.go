package command

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
)

func TestWordsOfALine(t *testing.T) {
	for _, tc := range []struct {
		line string
		want []string
		err  string
	}{
		{line: "put a 1 # one", want: []string{"put", "a", "1"}},
		{line: `put "a key" "a\tb"`, want: []string{"put", "a key", "a\tb"}},
		{line: `put a#b x"y`, want: []string{"put", "a#b", `x"y`}},
		{line: "  ", want: nil},
		{line: `put "a`, err: "does not end with one"},
		{line: `put "a"b`, err: `no space after the word "a"`},
	} {
		got, err := SplitWords(tc.line)
		if tc.err != "" && (err == nil || !strings.Contains(err.Error(), tc.err)) || tc.err == "" &&
			(err != nil || !slices.Equal(got, tc.want)) {
			t.Errorf("%s gives %q, %v", tc.line, got, err)
		}
	}
}

// TestShell gives commands to a shell of a few verbs, as a person and as a script.
func TestShell(t *testing.T) {
	var out strings.Builder
	running := true
	nodes := Nodes{Noun: "machine", Arg: "MACHINE",
		Stop:  func(name string) error { out.WriteString("stop " + name + "\n"); running = false; return nil },
		Start: func(name string) error { out.WriteString("start " + name + "\n"); running = true; return nil },
		Lose:  func(name string) error { out.WriteString("lose " + name + "\n"); return nil },
		Cut: func(name string, cut bool) error {
			if !cut {
				return errors.New("it is not cut off")
			}
			return nil
		},
		Runs:     func(string) bool { return running },
		Wait:     func(context.Context) error { return nil },
		WaitHelp: "wait for all",
	}
	echo := func(_ context.Context, args []string) error {
		out.WriteString(strings.Join(args, "|") + "\n")
		return nil
	}
	own := []Verb{{"put", "KEY VALUE", "", echo}, {"scan", "[FROM [TO]]", "each is a call", echo}}
	s := &Shell{Out: &out, Sign: func() string { return "$ " }, Verbs: append(own, nodes.Verbs()...)}
	type test struct{ line, want string }
	for _, tc := range []test{
		{`put "a key" 1 # as in Go`, "a key|1\n"},
		{"scan", "\n"},
		{"scan a b", "a|b\n"},
		{"scan a b c", "scan with 3 arguments; want scan [FROM [TO]]\n"},
		{"put a", "put with 1 argument; want put KEY VALUE\n"},
		{"quit now", "quit with 1 argument; want quit\n"},
		{"help put it", "help with 2 arguments; want help\n"},
		{"jump", "there is no command \"jump\"; 'help' shows all\n"},
		{"restart m", "stop m\nstart m\n"},
		{"lose m", "stop m\nlose m\n"},
		{"restart m", "start m\n"}, // one that does not run is not stopped
		{"cut m", ""},
		{"heal m", "it is not cut off\n"},
		{"sleep long", "\"long\" is no time such as 500ms\n"},
		{"sleep 0s", ""},
		{"wait", ""},
		{"# nothing", ""},
		{"help", `put KEY VALUE, scan [FROM [TO]]: each is a call
kill MACHINE      stop a machine; its disk stays
restart MACHINE   start it again, with its disk
lose MACHINE      stop a machine and take its disk away: it is refused when it is restarted
cut MACHINE       cut a machine's site off from all others
heal MACHINE      end that
sleep TIME        wait, such as 500ms
wait              wait for all
help, quit
`},
	} {
		out.Reset()
		if err := s.Run(t.Context(), strings.NewReader(tc.line+"\nquit\nput a 2\n"), true); err != nil {
			t.Fatal(err)
		}
		if got, want := out.String(), "$ "+tc.want+"$ "; got != want {
			t.Errorf("%s:\ngot\n%s\nwant\n%s", tc.line, got, want)
		}
	}
	out.Reset()
	err := s.Run(t.Context(), strings.NewReader("scan\njump\nscan\n"), false)
	if want := `line 2: jump: there is no command "jump"; 'help' shows all`; err == nil || err.Error() != want {
		t.Errorf("a script with a mistake ended with %v, want %s", err, want)
	}
}
