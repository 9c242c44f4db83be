package machine

import (
	"github.com/foresay/foresay/host"
	"github.com/foresay/foresay/internal/callers"
	"github.com/foresay/foresay/store"
)

// shard is one of the machine's servers.
type shard struct {
	node  *Node
	index int
	host  *host.Node[store.Message]
	desk  callers.Table[store.ServerStatus]
	moves callers.Table[store.HandingOver]
	// replaces are the steps of a move that are asked for.
	replaces callers.Table[store.Replacing]
}

// heardFull takes what the machine's coordinator says to its application.
func (n *Node) heardFull(msg store.Message) {
	if m, ok := msg.(store.Full); ok {
		n.cfg.Logger.Warn("store: overloaded: the coordinator remembers as many transactions as it may, and takes no new "+
			"ones; is a site away, or max_txns small?", "transactions", m.Transactions)
	}
}

// receive takes what the server says to its application. It is called by the server's goroutine,
// and does not wait.
func (s *shard) receive(msg store.Message) {
	switch m := msg.(type) {
	case store.ServerStatus:
		s.desk.Answer(m.Ref, m)
	case store.HandingOver:
		s.moves.Answer(m.Ref, m)
	case store.Replacing:
		s.replaces.Answer(m.Ref, m)
	case store.Full:
		s.node.cfg.Logger.Warn("store: overloaded: a shard remembers as many transactions as it may, and refuses new "+
			"ones; is a site away, or max_txns small?",
			"shard", s.index, "transactions", m.Transactions)
	case store.Refused:
		select {
		case s.node.refused <- &RefusedError{s.node.cfg.Machine, s.index, m.Reason, m.Forgot}:
		default:
		}
	}
}
