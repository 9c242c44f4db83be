package main

import (
	"context"
	"errors"
	"net"

	"github.com/foresay/foresay/store"
	"github.com/foresay/foresay/store/client"
	"github.com/foresay/foresay/store/front"
	"github.com/foresay/foresay/store/machine"
	"github.com/foresay/foresay/store/str"
	"github.com/foresay/foresay/wan"
	"github.com/foresay/foresay/wan/shape"
)

// sites is a store of three machines, one at each site, which remember nothing when they end.
type sites struct {
	network  *shape.Network
	topology store.Topology
	stops    []func() error
}

// open starts the machines. They are to be closed, also after an error.
func open(network *shape.Network, names []wan.Site) (*sites, error) {
	s := &sites{network: network, topology: store.Topology{Epoch: 1, Shards: 1}}
	var first []string
	var peers, clients []net.Listener
	for i, name := range names {
		p, err := network.Listen(name)
		if err != nil {
			return s, err
		}
		c, err := network.Listen(name)
		if err != nil {
			return s, err
		}
		first, peers, clients = append(first, string(name)), append(peers, p), append(clients, c)
		s.topology.Sites = append(s.topology.Sites, store.TopologySite{Name: string(name), Number: i + 1,
			Machines: []store.Machine{{Name: string(name), Peers: p.Addr().String(), Client: c.Addr().String()}}})
	}
	s.topology.Placement = [][]string{first} // the first site leads
	for i, name := range names {
		m, err := machine.Open(machine.Config{Protocol: str.Protocol(), Cluster: "shop", Topology: s.topology,
			Machine: string(name), PeerListener: peers[i], ClientListener: clients[i],
			PeerDial: network.DialContext(name), Insecure: true, RoundTrip: roundTrip, Seed: uint64(i + 1)})
		if err != nil {
			return s, err
		}
		ctx, cancel := context.WithCancel(context.Background())
		ended := make(chan error, 1)
		go func() { ended <- m.Run(ctx) }()
		s.stops = append(s.stops, func() error {
			cancel()
			return <-ended
		})
	}
	return s, nil
}

// dial connects a program at a site, until the store is closed.
func (s *sites) dial(from wan.Site) (*client.Client, error) {
	conn, err := front.Dial(front.Config{Protocol: str.Protocol(), Topology: s.topology, Insecure: true,
		RoundTrip: roundTrip, Dial: s.network.DialContext(from)})
	if err != nil {
		return nil, err
	}
	s.stops = append([]func() error{func() error {
		conn.Close()
		return nil
	}}, s.stops...)
	return client.New(client.Config{Backend: conn})
}

func (s *sites) close() error {
	var errs []error
	for _, stop := range s.stops {
		errs = append(errs, stop())
	}
	return errors.Join(append(errs, s.network.Close())...)
}
