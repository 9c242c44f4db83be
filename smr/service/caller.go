package service

import (
	"context"
	"net"
	"slices"
	"sync"

	"github.com/foresay/foresay/protocol"
)

// A caller is how a replica makes calls to the service that it is part of. It connects with the
// first one.
type caller struct {
	replica *Replica
	dial    func(ctx context.Context, address string) (net.Conn, error)

	mu sync.Mutex
	c  *Client
}

// client returns the client of all groups.
func (r *caller) client() (*Client, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.c != nil {
		return r.c, nil
	}
	own := r.replica.cfg
	var members []Member
	for _, g := range r.replica.news.take() {
		for _, m := range g.members {
			if !slices.ContainsFunc(members, func(o Member) bool { return o.ID == m.ID }) {
				members = append(members, Member{m.ID, own.addressOf(m)})
			}
		}
	}
	if len(members) == 0 {
		members = own.Members
	}
	cfg := &ClientConfig{
		Cluster: own.Cluster, Protocol: own.Protocol, Recovery: own.Recovery, Routing: own.Routing, Members: members,
		TLS: own.TLS, Insecure: own.Insecure, RoundTrip: own.RoundTrip,
	}
	if err := cfg.Check(); err != nil {
		return nil, err
	}
	nearest := protocol.ID(0)
	if slices.ContainsFunc(cfg.Members, func(m Member) bool { return m.ID == own.ID }) {
		nearest = own.ID
	}
	c, err := Dial(cfg, ClientOptions{Logger: r.replica.log, Dial: r.dial, Nearest: nearest, member: true})
	r.c = c
	return c, err
}

// close ends the client, if there is one. What it failed with was logged.
func (r *caller) close() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.c != nil {
		_ = r.c.Close()
	}
}
