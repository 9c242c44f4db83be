package storecmd

import (
	"errors"
	"fmt"

	"github.com/foresay/foresay/internal/cli/command"
)

// An op is one command of a transaction.
type op struct {
	Name  string // get, put or delete
	Key   string
	Value []byte // of a put
}

// arity returns how many arguments a command of a transaction has, -1 if there is no such command.
func arity(name string) int {
	switch name {
	case "get", "delete":
		return 1
	case "put":
		return 2
	}
	return -1
}

const opsKnown = "a transaction has get KEY, put KEY VALUE and delete KEY"

// parseOp reads one command.
func parseOp(words []string) (op, error) {
	n := arity(words[0])
	switch {
	case n < 0:
		return op{}, fmt.Errorf("there is no command %q; %s", words[0], opsKnown)
	case len(words)-1 != n:
		return op{}, fmt.Errorf("%s with %d arguments; %s", words[0], len(words)-1, opsKnown)
	}
	o := op{Name: words[0], Key: words[1]}
	if n == 2 {
		o.Value = []byte(words[2])
	}
	return o, nil
}

// parseOps reads the commands of one transaction, with commas between. A key or a value may be a
// comma.
func parseOps(words []string) ([]op, error) {
	var ops []op
	for {
		if len(words) == 0 {
			return nil, fmt.Errorf("a command is missing; %s", opsKnown)
		}
		n := arity(words[0]) + 1
		if n == 0 {
			n = 1 // parseOp says what is wrong
		}
		o, err := parseOp(words[:min(n, len(words))])
		if err != nil {
			return nil, err
		}
		ops = append(ops, o)
		words = words[n:]
		if len(words) == 0 {
			return ops, nil
		}
		if words[0] != "," {
			return nil, fmt.Errorf("%q after %s; commands of a transaction have a comma between them, a word of its own",
				words[0], o.Name)
		}
		words = words[1:]
	}
}

// A script makes transactions of lines: each line is one, unless it stands between begin and
// commit.
type script struct {
	some bool // a line that is not empty was read
	open bool // begin was read
	ops  []op
}

// line takes a line. It returns the commands of a transaction if the line ends one.
func (s *script) line(text string) ([]op, error) {
	words, err := command.SplitWords(text)
	if err != nil || len(words) == 0 {
		return nil, err
	}
	s.some = true
	switch {
	case len(words) > 1 || words[0] != "begin" && words[0] != "commit" && words[0] != "abort":
		o, err := parseOp(words)
		switch {
		case err != nil:
			return nil, err
		case s.open:
			s.ops = append(s.ops, o)
			return nil, nil
		}
		return []op{o}, nil
	case words[0] == "begin" && s.open:
		return nil, errors.New("begin within a transaction")
	case words[0] == "begin":
		s.open = true
		return nil, nil
	case !s.open:
		return nil, fmt.Errorf("%s without begin", words[0])
	}
	ops := s.ops
	s.open, s.ops = false, nil
	if words[0] == "abort" {
		return nil, nil
	}
	return ops, nil
}

// end says whether the lines may end here.
func (s *script) end() error {
	switch {
	case !s.some:
		return command.Usagef("no command is given, nor one on standard input; %s", opsKnown)
	case s.open:
		return errors.New("the script ends within a transaction: commit is missing")
	}
	return nil
}
