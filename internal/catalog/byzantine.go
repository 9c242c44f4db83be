package catalog

import (
	"cmp"

	"github.com/foresay/foresay/bft"
	"github.com/foresay/foresay/bft/counter"
	"github.com/foresay/foresay/bft/pbft"
	"github.com/foresay/foresay/bft/zyzzyva"
	"github.com/foresay/foresay/smr/kv"
)

// Byzantine returns the protocol of package bft's family of a name, or the first one if name is
// empty. Its error lists the names.
func Byzantine(name string) (bft.Protocol, error) {
	return find("protocol", byzantine(), cmp.Or(name, byzantine()[0].name))
}

// ByzantineNames returns the names of all protocols of package bft's family.
func ByzantineNames() []string { return names(byzantine()) }

// Service returns what a group of that family can replicate, by its name. Its error lists the
// names.
func Service(name string) (bft.Service, error) { return find("service", services(), name) }

// ServiceNames returns the names of all that such a group can replicate.
func ServiceNames() []string { return names(services()) }

func byzantine() []entry[bft.Protocol] {
	return []entry[bft.Protocol]{{"pbft", pbft.Protocol}, {"zyzzyva", zyzzyva.Protocol}}
}

func services() []entry[bft.Service] {
	return []entry[bft.Service]{
		{"counter", func() bft.Service { return counter.Service{} }},
		{"kv", func() bft.Service { return kv.Service{} }},
	}
}
