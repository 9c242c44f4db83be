package report_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
)

// dotToken is what the graphs are made of: quoted strings, names and signs.
var dotToken = regexp.MustCompile(`^(?:\s+|"(?:[^"\\]|\\.)*"|[A-Za-z_]+|->|[][{};,=])`)

// longestToken keeps the search for a token from looking at the whole graph.
const longestToken = 16 << 10

// checkDOT parses the part of DOT that WriteDOT uses, and checks that edges
// join nodes that are described, or at least named as runs and calls.
func checkDOT(s string) error {
	var tokens []string
	for rest := s; rest != ""; {
		token := dotToken.FindString(rest[:min(len(rest), longestToken)])
		if token == "" {
			return fmt.Errorf("dot: no token at %.40q", rest)
		}
		rest = rest[len(token):]
		if token = strings.TrimSpace(token); token != "" {
			tokens = append(tokens, token)
		}
	}
	p := &dotParser{tokens: tokens}
	p.want("digraph")
	p.name()
	p.want("{")
	for p.err == nil && p.peek() != "}" {
		p.statement()
	}
	p.want("}")
	if p.err == nil && len(p.tokens) > 0 {
		p.err = fmt.Errorf("dot: %q after the graph", p.tokens)
	}
	return p.err
}

type dotParser struct {
	tokens []string
	err    error
}

func (p *dotParser) peek() string {
	if len(p.tokens) == 0 {
		return ""
	}
	return p.tokens[0]
}

func (p *dotParser) next() string {
	t := p.peek()
	if t == "" {
		p.fail("the graph ends early")
		return ""
	}
	p.tokens = p.tokens[1:]
	return t
}

func (p *dotParser) fail(format string, args ...any) {
	if p.err == nil {
		p.err = fmt.Errorf("dot: "+format, args...)
	}
}

func (p *dotParser) want(t string) {
	if got := p.next(); got != t {
		p.fail("got %q, want %q", got, t)
	}
}

func (p *dotParser) name() string {
	t := p.next()
	if strings.ContainsAny(t[:min(1, len(t))], "[]{};,=-") {
		p.fail("got %q, want a name", t)
	}
	return t
}

var dotNode = regexp.MustCompile(`^"(run|call) -?\d+( prediction \d+)?"$`)

// statement is: name (-> name)? [ name = name , ... ] ;
func (p *dotParser) statement() {
	subject := p.name()
	switch subject {
	case "graph", "node", "edge":
	default:
		if !dotNode.MatchString(subject) {
			p.fail("unexpected node %q", subject)
		}
		if p.peek() == "->" {
			p.next()
			if to := p.name(); !dotNode.MatchString(to) {
				p.fail("unexpected node %q", to)
			}
		}
	}
	p.want("[")
	for p.err == nil {
		p.name()
		p.want("=")
		p.name()
		if p.peek() != "," {
			break
		}
		p.next()
	}
	p.want("]")
	p.want(";")
}

func TestCheckDOTRejects(t *testing.T) {
	for _, s := range []string{
		``, `graph x {}`, `digraph x {`, `digraph x {} y`, `digraph x { "run 1" }`, `digraph x { "run 1" [label="a"b"]; }`,
		`digraph x { "run 1" [label="a" evil=b]; }`, `digraph x { "evil" [label="a"]; }`,
		`digraph x { "run 1" -> [label="a"]; }`,
	} {
		if checkDOT(s) == nil {
			t.Errorf("accepts %s", s)
		}
	}
}
