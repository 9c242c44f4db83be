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

// Take tells whether there is room for more queries: ReplicaConfig.MaxPending of them and
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

// Answer answers queries from the state as it is.
func (h *HeldQueries) Answer(env *protocol.Env[smr.Message], s *State, to protocol.ID, queries []Query) {
	h.Answered(queries)
	items := make([]ReadReply, len(queries))
	for i, q := range queries {
		items[i] = ReadReply{ID: q.ID, Result: s.Read(q.Body)}
	}
	SendReads(env, to, items)
}

// Answered notes that queries were answered.
func (h *HeldQueries) Answered(queries []Query) {
	h.count -= len(queries)
	h.bytes -= queryBytes(queries)
}

func queryBytes(queries []Query) (n int) {
	for _, q := range queries {
		n += len(q.Body)
	}
	return n
}
