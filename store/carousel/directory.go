package carousel

import (
	"slices"

	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/store"
)

// directory is who leads which partition, as far as its owner knows [Carousel §3.1.3]. It is right
// as long as nothing fails, and corrected by who is asked in vain.
type directory struct {
	members [][]protocol.ID // by partition
	leads   []protocol.ID   // likewise
}

func newDirectory(l store.Layout) directory {
	var d directory
	for k := range l.Sites[0].Shards {
		d.members = append(d.members, l.ServersOf(k))
		d.leads = append(d.leads, l.Sites[l.FirstOf(k)].Shards[k])
	}
	return d
}

func (d directory) has(shard uint32) bool { return int(shard) < len(d.leads) }

func (d directory) leader(shard uint32) protocol.ID { return d.leads[shard] }

func (d directory) set(shard uint32, leader protocol.ID) { d.leads[shard] = leader }

// isMember reports whether a node is a server of a partition.
func (d directory) isMember(shard uint32, id protocol.ID) bool {
	return d.has(shard) && slices.Contains(d.members[shard], id)
}

// correct takes note of what a server says that was taken for a leader, and reports whether that is
// news.
func (d directory) correct(m moved) bool {
	if !d.isMember(m.Shard, protocol.ID(m.Leader)) || d.leads[m.Shard] == protocol.ID(m.Leader) {
		return false
	}
	d.leads[m.Shard] = protocol.ID(m.Leader)
	return true
}

// whom returns the one that is taken for a partition's leader, or all members. To take another one
// for the leader would not do where nobody has answered: it may be there, and wait for others
// itself, and all that is new would go to the wrong one.
func (d directory) whom(shard uint32, all bool) []protocol.ID {
	if all {
		return d.members[shard]
	}
	return []protocol.ID{d.leads[shard]}
}
