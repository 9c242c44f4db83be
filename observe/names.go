package observe

import (
	"strings"
	"unicode"
)

// readsByName reports whether a method's name says that it only reads. It is a hint for a person,
// never a reason to send a call.
func readsByName(method string) bool {
	name := strings.TrimPrefix(method[strings.LastIndexAny(method, "/.")+1:], "Batch")
	word := name
	for i, r := range name {
		if i > 0 && !unicode.IsLower(r) {
			word = name[:i]
			break
		}
	}
	switch word {
	case "Get", "List", "Read", "Check", "Find", "Lookup", "Look", "Search", "Query", "Select", "Fetch", "Describe", "Count", "Has",
		"Is", "Exists", "Can", "Show", "View", "Scan", "Resolve", "Verify", "Validate":
		return true
	}
	return false
}
