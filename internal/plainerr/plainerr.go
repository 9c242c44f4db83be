// Package plainerr says plainly why a machine is unreachable, without gRPC's wrapping.
package plainerr

import (
	"strconv"
	"strings"
)

// Text returns an error of a call or a connection as the network or the other machine said it:
// "dial tcp 10.0.0.1:7400: connect: connection refused" in place of a code and three layers before
// it.
func Text(err error) string {
	text := err.Error()
	if _, after, ok := strings.Cut(text, "rpc error: code = "); ok {
		if _, desc, ok := strings.Cut(after, " desc = "); ok {
			text = desc
		}
	}
	text = strings.TrimPrefix(text, "last connection error: ")
	const quoted = "connection error: desc = "
	if rest, ok := strings.CutPrefix(text, quoted); ok {
		if said, err := strconv.Unquote(rest); err == nil {
			text = said
		}
	}
	for _, layer := range []string{"transport: ", "Error while dialing: ", "authentication handshake failed: "} {
		text = strings.TrimPrefix(text, layer)
	}
	return text
}
