package kit

import (
	"fmt"

	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/smr"
)

// MessageBytes bounds what messages hold if they hold more than one thing, so none is larger than
// what carries them lets pass. A message becomes a record often, and a record of up to 256 KiB is
// written with memory that was used before.
const MessageBytes = 192 << 10

// entryRoom is about what an entry or an answer takes beside what it carries.
const entryRoom = 32

// EntryBytes is about what an entry takes in a message.
func EntryBytes(e Entry) int { return entryRoom + len(e.Command) }

// A Page is what a message with entries has taken so far.
type Page struct{ entries, bytes int }

// Takes takes one more entry, and reports whether there was room for it. There is for the first,
// however large.
func (p *Page) Takes(e Entry) bool {
	bytes := p.bytes + EntryBytes(e)
	if bytes > MessageBytes && p.entries > 0 {
		return false
	}
	p.entries, p.bytes = p.entries+1, bytes
	return true
}

// FitEntries returns how many of the first n entries, at least one, go in one message.
func FitEntries(entries []Entry, n int) int {
	var page Page
	for i, e := range entries[:n] {
		if !page.Takes(e) {
			return i
		}
	}
	return n
}

// CommandBytes returns how many bytes the commands of entries have.
func CommandBytes(entries []Entry) (n int) {
	for _, e := range entries {
		n += len(e.Command)
	}
	return n
}

// SendReads sends the answers to queries, in as many messages as it takes.
func SendReads(env *protocol.Env[smr.Message], to protocol.ID, items []ReadReply) {
	first, size := 0, 0
	for i := range items {
		if n := len(items[i].Result); n > smr.MaxCommandBytes {
			items[i].Result, items[i].Reason = nil, fmt.Sprintf("the answer has %d bytes, more than %d", n, smr.MaxCommandBytes)
		}
		n := entryRoom + len(items[i].Result)
		if size += n; size > MessageBytes && i > first {
			env.SendAhead(to, ReadReplies{Items: items[first:i]})
			first, size = i, n
		}
	}
	if first < len(items) {
		env.SendAhead(to, ReadReplies{Items: items[first:]})
	}
}
