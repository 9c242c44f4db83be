package transcript

import (
	"cmp"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"github.com/foresay/foresay/internal/msgtext"
	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/sim/deploy"
)

// A Family is what scenarios of one family of protocols know beside the commands of this package.
type Family[M any] interface {
	// Begin makes the nodes that words describe, with Config.Wrap set to Script.Wrap.
	Begin(s *Script[M], words []string) (*deploy.Deployment[M], error)
	// Do carries out a command of the family, and returns what it has to tell, lines with an end.
	Do(command string, words []string) (string, error)
	// Expect returns what keeps words from holding now.
	Expect(words []string) error
	// Format writes some values of messages, as msgtext.Format does.
	Format(v any) (text string, ok bool)
	// Name returns a node's name.
	Name(protocol.ID) string
}

// untilLimit bounds how long run until waits, in steps of untilStep.
const (
	untilLimit = 30 * time.Second
	untilStep  = time.Millisecond
)

// Play plays the scenarios of a directory, each with a family of its own.
func Play[M any](t *testing.T, dir string, family func() Family[M]) {
	files, err := filepath.Glob(filepath.Join(dir, "*.txt"))
	if err != nil || len(files) == 0 {
		t.Fatalf("%s has no scenarios: %v", dir, err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			s, told := New(family()), 0
			datadriven.RunTest(t, file, func(t *testing.T, d *datadriven.TestData) string {
				text := s.step(t, d)
				told += len(text)
				return text
			})
			if told == 0 {
				t.Errorf("nothing is said in %s", file)
			}
		})
	}
}

// A Script is a scenario that is being played.
type Script[M any] struct {
	family Family[M]
	nodes  *deploy.Deployment[M]
	began  time.Duration // when the scenario's time is 0
	lines  []line
	hidden []kind
	omits  []string
	rules  []rule
	held   []mail[M]
	hand   map[protocol.ID]mail[M] // what a node is to be given in its next call

	awaited pattern // of run until
	heard   bool    // a message of it has come
}

// New returns a scenario that has not begun.
func New[M any](f Family[M]) *Script[M] { return &Script[M]{family: f} }

// step carries out a step of a scenario: the command of its first line, and those of further ones.
func (s *Script[M]) step(t *testing.T, d *datadriven.TestData) string {
	t.Helper()
	first := d.Cmd
	for _, arg := range d.CmdArgs {
		first += " " + arg.String()
	}
	var told string
	for command := range strings.Lines(first + "\n" + d.Input) {
		text, err := s.Do(command)
		if told += text; err != nil {
			d.Fatalf(t, "%s: %v\nuntil then:\n%s", strings.TrimSpace(command), err, told)
		}
	}
	return told
}

// Do carries out a command, and returns what it makes nodes say, up to where it failed if it did.
func (s *Script[M]) Do(command string) (string, error) {
	words := strings.Fields(command)
	if len(words) == 0 {
		return "", nil
	}
	text, err := s.do(words[0], words[1:])
	return s.told() + text, err
}

func (s *Script[M]) do(command string, words []string) (string, error) {
	if command == "begin" {
		var err error
		if s.nodes, err = s.family.Begin(s, words); err == nil {
			s.began, s.lines = s.nodes.Now(), nil
		}
		return "", err
	}
	if s.nodes == nil {
		return "", fmt.Errorf("the first command is begin")
	}
	switch command {
	case "run":
		return "", s.run(words)
	case "expect":
		return "", s.family.Expect(words)
	case "crash", "restart":
		return "", s.each(words, command)
	case "hold", "lose":
		p, err := s.pattern(words)
		s.rules = append(s.rules, rule{p, command == "lose"})
		return "", err
	case "pass":
		s.rules = nil
		return "", nil
	case "deliver", "drop":
		p, err := s.pattern(words)
		if err != nil {
			return "", err
		}
		return "", s.release(p, command == "deliver")
	case "hide":
		s.Hide(words...)
		return "", nil
	case "omit":
		s.omits = append(s.omits, words...)
		return "", nil
	}
	return s.family.Do(command, words)
}

func (s *Script[M]) run(words []string) error {
	if len(words) > 1 && words[0] == "until" {
		return s.until(words[1:])
	}
	if len(words) != 1 {
		return fmt.Errorf("want a time, or until and what is waited for")
	}
	d, err := time.ParseDuration(words[0])
	if err != nil {
		return err
	}
	return s.nodes.Pass(d)
}

// until lets time pass until something can be expected, or a message has come.
func (s *Script[M]) until(words []string) error {
	message, err := strings.Contains(words[0], "->"), error(nil)
	if message {
		if s.awaited, err = s.pattern(words); err != nil {
			return err
		}
	}
	s.heard = false
	for limit := s.nodes.Now() + untilLimit; s.nodes.Now() < limit; {
		if message && s.heard {
			return nil
		}
		if !message {
			if err = s.family.Expect(words); err == nil {
				return nil
			}
		}
		if err := s.nodes.Pass(untilStep); err != nil {
			return err
		}
	}
	return cmp.Or(err, fmt.Errorf("there was no such message for %v", untilLimit))
}

// each crashes or restarts nodes.
func (s *Script[M]) each(names []string, command string) error {
	for _, name := range names {
		id, err := s.ID(name)
		if err != nil {
			return err
		}
		if command == "crash" {
			s.nodes.Crash(id, 0)
			s.Note(id, "crashes")
			continue
		}
		s.nodes.Restart(id)
		s.Note(id, "is back")
	}
	return nil
}

// ID returns the node of a name.
func (s *Script[M]) ID(name string) (protocol.ID, error) {
	for _, id := range s.nodes.IDs() {
		if s.family.Name(id) == name {
			return id, nil
		}
	}
	return 0, fmt.Errorf("there is no node %s", name)
}

// release hands over what is held, or loses it.
func (s *Script[M]) release(p pattern, deliver bool) error {
	var out []mail[M]
	s.held = slices.DeleteFunc(s.held, func(m mail[M]) bool {
		fits := p.fits(s.family.Name(m.from), s.family.Name(m.to), s.text(m.msg))
		if fits {
			out = append(out, m)
		}
		return fits
	})
	if len(out) == 0 {
		return fmt.Errorf("nothing of that is held")
	}
	for _, m := range out {
		if !deliver {
			s.say(m, "lost")
			continue
		}
		if !s.nodes.Up(m.to) {
			s.say(m, "lost: it is down")
			continue
		}
		var nothing M
		s.hand = map[protocol.ID]mail[M]{m.to: m}
		s.nodes.Deliver(m.to, nothing)
		if err := s.nodes.Pass(0); err != nil {
			return err
		}
	}
	return nil
}

// Note writes down what happens to a node, or what its application is told.
func (s *Script[M]) Note(id protocol.ID, text string) {
	s.lines = append(s.lines, line{at: s.now(), from: []string{s.family.Name(id)}, text: text})
}

// Hide is the command hide.
func (s *Script[M]) Hide(kinds ...string) {
	for _, k := range kinds {
		s.hidden = append(s.hidden, parseKind(k))
	}
}

func (s *Script[M]) now() time.Duration { return s.nodes.Now() - s.began }

// text returns a message for people.
func (s *Script[M]) text(msg M) string { return msgtext.Format(s.family.Format).Of(msg) }

// say writes a message down.
func (s *Script[M]) say(m mail[M], fate string) {
	text := s.text(m.msg)
	s.heard = s.heard || s.awaited.fits(s.family.Name(m.from), s.family.Name(m.to), text)
	if slices.ContainsFunc(s.hidden, func(k kind) bool { return k.fits(text) }) {
		return
	}
	if len(s.omits) > 0 {
		text = without(text, s.omits)
	}
	if fate != "" {
		text += " (" + fate + ")"
	}
	s.lines = append(s.lines, line{s.now(), []string{s.family.Name(m.from)}, []string{s.family.Name(m.to)}, text})
}
