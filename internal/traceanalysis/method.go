package traceanalysis

import (
	"strings"
	"unicode"

	"github.com/foresay/foresay/internal/otlp"
)

// methodOf names what a span calls or serves: an RPC's full method, an HTTP method and route, a
// database and its operation, or the span's own name. The attributes are those of the semantic
// conventions, stable and before.
//
// A call that Foresay sends over a speculative stream, "M.spec", is one of the method M.
func methodOf(s *otlp.Span) string { return strings.TrimSuffix(spokenOf(s), ".spec") }

func spokenOf(s *otlp.Span) string {
	if method := s.Attribute("rpc.method"); method != "" {
		if service := s.Attribute("rpc.service"); service != "" && !strings.Contains(method, "/") {
			return service + "/" + method
		}
		if strings.Contains(method, "/") || s.Name == "" {
			return strings.TrimPrefix(method, "/")
		}
		return strings.TrimPrefix(s.Name, "/") // its name has the service, by convention
	}
	if verb := s.Attribute("http.request.method", "http.method"); verb != "" {
		route := s.Attribute("url.template", "http.route")
		if s.Kind == otlp.Client {
			route = s.Attribute("server.address", "net.peer.name", "http.host") + route
		}
		if route != "" {
			return verb + " " + route
		}
	}
	if system := s.Attribute("db.system.name", "db.system"); system != "" {
		return system + ": " + s.Name
	}
	if s.Name == "" {
		return "(a span without a name)"
	}
	return strings.TrimPrefix(s.Name, "/")
}

// Effect is whether a call may be sent on a guess, and why this is thought.
type Effect struct {
	Pure bool   `json:"pure"`
	Why  string `json:"why"`
}

// effectOf decides by the options, then by the method's name.
func (o *Options) effectOf(method string) Effect {
	switch {
	case matchesAny(o.Effects, method):
		return Effect{false, "as told"}
	case matchesAny(o.Pure, method):
		return Effect{true, "as told"}
	}
	if verb := readsByName(method); verb != "" {
		return Effect{true, "its name says " + verb}
	}
	return Effect{false, "its name does not say that it only reads"}
}

// readsByName returns the word of a method's name that says that it only reads, or "".
func readsByName(method string) string {
	name := method
	if system, statement, ok := strings.Cut(method, ": "); ok && system != "" {
		name, _, _ = strings.Cut(statement, " ")
	} else if verb, _, ok := strings.Cut(method, " "); ok && verb == strings.ToUpper(verb) { // an HTTP request
		switch verb {
		case "GET", "HEAD", "OPTIONS":
			return verb
		}
		return ""
	}
	name = name[strings.LastIndexAny(name, "/.")+1:]
	words := splitWords(name)
	if len(words) > 1 && words[0] == "batch" {
		words = words[1:]
	}
	if len(words) == 0 {
		return ""
	}
	switch words[0] {
	case "get", "mget", "hget", "hgetall", "list", "read", "check", "find", "lookup", "look", "search", "query", "select",
		"fetch",
		"describe", "count", "has", "is", "exists", "can", "head", "stat", "show", "view", "scan", "resolve", "verify",
		"validate":
		return words[0]
	}
	return ""
}

// splitWords splits a name at capitals, digits and signs, and lowers it.
func splitWords(name string) []string {
	var words []string
	var word []rune
	end := func() {
		if len(word) > 0 {
			words = append(words, strings.ToLower(string(word)))
			word = word[:0]
		}
	}
	lower := false
	for _, r := range name {
		switch {
		case !unicode.IsLetter(r):
			end()
			lower = false
			continue
		case unicode.IsUpper(r) && lower:
			end()
		}
		lower = unicode.IsLower(r)
		word = append(word, r)
	}
	end()
	return words
}

// matches reports whether a name fits a pattern, in any case: with * for anything the whole name
// must, without it a part.
func matches(pattern, name string) bool {
	pattern, name = strings.ToLower(pattern), strings.ToLower(name)
	parts := strings.Split(pattern, "*")
	if len(parts) == 1 {
		return strings.Contains(name, pattern)
	}
	name, ok := strings.CutPrefix(name, parts[0])
	if !ok {
		return false
	}
	last := parts[len(parts)-1]
	for _, part := range parts[1 : len(parts)-1] {
		_, after, ok := strings.Cut(name, part)
		if !ok {
			return false
		}
		name = after
	}
	return strings.HasSuffix(name, last)
}
