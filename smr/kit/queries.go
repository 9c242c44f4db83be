package kit

import (
	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/smr"
)

// HeldQueries counts the queries that a replica has taken and not answered. The zero value is
// ready.
type HeldQueries struct {
	count int
	bytes int
}

// Take reports whether there is room for more queries: ReplicaConfig.MaxPending of them and
// MaxPendingBytes, or a message with more bytes alone. If not, it tells the client.
func (h *HeldQueries) Take(
	env *protocol.Env[smr.Message], cfg smr.ReplicaConfig, from protocol.ID, queries []Query,
) bool {
	size := queryBytes(queries)
	if h.count+len(queries) > cfg.MaxPending || h.bytes > 0 && h.bytes+size > cfg.MaxPendingBytes {
		busy := Busy{}
		for _, q := range queries {
			busy.Queries = append(busy.Queries, q.ID)
		}
		env.SendAhead(from, busy)
		return false
	}
	h.count += len(queries)
	h.bytes += size
	return true
}

// maxAnswersBytes bounds the answers to queries that a client gets at once, before the last of
// them. It is half of what a host lets wait for a peer by default: more would be lost on the way
// and asked for again.
const maxAnswersBytes = 8 << 20

// Answer answers queries of a client from the state as it is. Those beyond maxAnswersBytes are
// refused, so that the client asks again later.
func (h *HeldQueries) Answer(env *protocol.Env[smr.Message], s *State, to protocol.ID, queries []Query) {
	h.count -= len(queries)
	h.bytes -= queryBytes(queries)
	var items []ReadReply
	var busy Busy
	size := 0
	for _, q := range queries {
		if size >= maxAnswersBytes {
			busy.Queries = append(busy.Queries, q.ID)
			continue
		}
		result := s.Read(q.Body)
		items = append(items, ReadReply{ID: q.ID, Result: result})
		size += len(result)
	}
	SendReads(env, to, items)
	if len(busy.Queries) > 0 {
		env.SendAhead(to, busy)
	}
}

func queryBytes(queries []Query) (n int) {
	for _, q := range queries {
		n += len(q.Body)
	}
	return n
}
