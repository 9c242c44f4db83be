package command

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
)

// A Verb is a command of a Shell.
type Verb struct {
	Name string
	// Args are the names of its arguments, such as "KEY VALUE" or "[FROM [TO]]": those in brackets
	// can be left out.
	Args string
	// Help says what it does. One without help shares that of the next.
	Help string
	Do   func(ctx context.Context, args []string) error
}

// usage is the verb as it is written.
func (v Verb) usage() string { return strings.TrimSpace(v.Name + " " + v.Args) }

// takes reports whether the verb can have so many arguments.
func (v Verb) takes(n int) bool {
	names := strings.Fields(v.Args)
	most := len(names)
	least := slices.IndexFunc(names, func(name string) bool { return name[0] == '[' })
	if least < 0 {
		least = most
	}
	return least <= n && n <= most
}

// A Shell is a prompt of a family's verbs, and of help and quit.
type Shell struct {
	Out   io.Writer
	Sign  func() string // as in Prompt
	Verbs []Verb
}

// helpColumn is where help on verbs begins.
const helpColumn = 18

// Help says what there is.
func (s *Shell) Help() string {
	var b strings.Builder
	var names []string
	for _, v := range append(slices.Clip(s.Verbs), Verb{Name: "help"}, Verb{Name: "quit"}) {
		names = append(names, v.usage())
		switch left := strings.Join(names, ", "); {
		case v.Name == "quit":
			fmt.Fprintln(&b, left)
		case v.Help == "":
			continue
		case len(left) < helpColumn:
			fmt.Fprintf(&b, "%-*s%s\n", helpColumn, left, v.Help)
		default:
			fmt.Fprintf(&b, "%s: %s\n", left, v.Help)
		}
		names = nil
	}
	return b.String()
}

// Run carries out the commands that it reads, until ctx is done or there are no more. A person is
// told what was wrong with one; else the first error ends it.
func (s *Shell) Run(ctx context.Context, in io.Reader, person bool) error {
	return Prompt{Out: s.Out, Person: person, Sign: s.Sign, Do: s.line}.Run(ctx, in)
}

// line carries out one command, and reports whether there can be more.
func (s *Shell) line(ctx context.Context, text string) (more bool, err error) {
	words, err := SplitWords(text)
	if err != nil || len(words) == 0 {
		return true, err
	}
	name, args := words[0], words[1:]
	switch own := name == "quit" || name == "exit" || name == "help"; {
	case own && len(args) > 0:
		return true, fmt.Errorf("%s with %s; want %s", name, Counted(len(args), "argument"), name)
	case name == "quit" || name == "exit":
		return false, nil
	case own:
		_, err := fmt.Fprint(s.Out, s.Help())
		return true, err
	}
	i := slices.IndexFunc(s.Verbs, func(v Verb) bool { return v.Name == name })
	switch {
	case i < 0:
		return true, fmt.Errorf("there is no command %q; 'help' shows all", name)
	case !s.Verbs[i].takes(len(args)):
		return true, fmt.Errorf("%s with %s; want %s", name, Counted(len(args), "argument"), s.Verbs[i].usage())
	}
	return true, s.Verbs[i].Do(ctx, args)
}

// Nodes are what a cluster in this process consists of, by their names.
type Nodes struct {
	Noun string // what one is
	Arg  string // how its name is written in help

	Stop, Start, Lose func(name string) error
	Cut               func(name string, cut bool) error
	Runs              func(name string) bool
	// Wait waits until all that run take part.
	Wait     func(ctx context.Context) error
	WaitHelp string
}

// Verbs are what can be done to each node of any cluster.
func (n Nodes) Verbs() []Verb {
	stopped := func(then func(name string) error) func(context.Context, []string) error {
		return func(_ context.Context, args []string) error {
			if n.Runs(args[0]) {
				if err := n.Stop(args[0]); err != nil {
					return err
				}
			}
			return then(args[0])
		}
	}
	cut := func(cut bool) func(context.Context, []string) error {
		return func(_ context.Context, args []string) error { return n.Cut(args[0], cut) }
	}
	return []Verb{
		{"kill", n.Arg, "stop a " + n.Noun + "; its disk stays", func(_ context.Context, args []string) error {
			return n.Stop(args[0])
		}},
		{"restart", n.Arg, "start it again, with its disk", stopped(n.Start)},
		{"lose", n.Arg, "stop a " + n.Noun + " and take its disk away: it is refused when it is restarted", stopped(n.Lose)},
		{"cut", n.Arg, "cut a " + n.Noun + "'s site off from all others", cut(true)},
		{"heal", n.Arg, "end that", cut(false)},
		{"sleep", "TIME", "wait, such as 500ms", func(ctx context.Context, args []string) error {
			return Sleep(ctx, args[0])
		}},
		{"wait", "", n.WaitHelp, func(ctx context.Context, _ []string) error { return n.Wait(ctx) }},
	}
}
