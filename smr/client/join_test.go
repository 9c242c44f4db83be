package client_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/foresay/foresay/host"
	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/smr"
	"github.com/foresay/foresay/smr/client"
	"github.com/foresay/foresay/smr/kv"
	"github.com/foresay/foresay/smr/multipaxos"
	"github.com/foresay/foresay/smr/raft"
	"github.com/foresay/foresay/transport"
)

// service is a replicated store on hosts, as a program without the foresay command would build it.
type service struct {
	t        *testing.T
	protocol smr.Protocol
	ctx      context.Context
	stop     context.CancelFunc
	wg       sync.WaitGroup
}

func newService(t *testing.T, p smr.Protocol) *service {
	s := &service{t: t, protocol: p}
	s.ctx, s.stop = context.WithCancel(t.Context())
	t.Cleanup(func() {
		s.stop()
		s.wg.Wait()
	})
	return s
}

// replica starts one, which tells its host where members are.
func (s *service) replica(id protocol.ID, lis net.Listener, members []smr.Member, join bool) {
	s.t.Helper()
	node, err := s.protocol.NewReplica(smr.ReplicaConfig{ID: id, Members: members, Join: join, Machine: kv.New(),
		RoundTrip: 10 * time.Millisecond, Leader: 1})
	s.must(err)
	h, err := host.New(host.Config{Network: transport.Config{Cluster: "join", IDs: []protocol.ID{id}, Insecure: true},
		Listener: lis})
	s.must(err)
	_, err = host.Add(h, host.Spec[smr.Message]{ID: id, Node: node, Codec: s.protocol.Codec, App: func(msg smr.Message) {
		s.meet(h, msg)
	}})
	s.must(err)
	s.run(h, members)
}

// client starts a client.
func (s *service) client(id protocol.ID, members []smr.Member) *client.Client {
	s.t.Helper()
	node, err := s.protocol.NewClient(smr.ClientConfig{ID: id, Members: members, RoundTrip: 10 * time.Millisecond})
	s.must(err)
	h, err := host.New(host.Config{Network: transport.Config{Cluster: "join", Insecure: true}})
	s.must(err)
	var c *client.Client
	n, err := host.Add(h, host.Spec[smr.Message]{ID: id, Node: node, Codec: s.protocol.Codec, App: func(msg smr.Message) {
		s.meet(h, msg)
		c.Receive(msg)
	}})
	s.must(err)
	c = client.New(func(ctx context.Context, msg smr.Message) error { return n.Deliver(ctx, msg) })
	s.run(h, members)
	return c
}

// meet has a host know where members are.
func (s *service) meet(h *host.Host, msg smr.Message) {
	changed, ok := msg.(smr.MembersChanged)
	if !ok {
		return
	}
	for _, m := range changed.Members {
		if err := h.SetPeer(m.ID, m.Address); err != nil {
			s.t.Errorf("member %d at %q: %v", m.ID, m.Address, err)
		}
	}
}

func (s *service) run(h *host.Host, members []smr.Member) {
	s.meet(h, smr.MembersChanged{Members: members})
	s.wg.Go(func() {
		if err := h.Run(s.ctx); err != nil {
			s.t.Error(err)
		}
	})
}

func (s *service) must(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
}

func listen(t *testing.T) net.Listener {
	lis, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return lis
}

// A replica that nobody has heard of is added: the hosts learn where it is from the change that
// adds it.
func TestReplicaIsAddedOverPlainHosts(t *testing.T) {
	for _, p := range []smr.Protocol{raft.Protocol(), multipaxos.Protocol()} {
		t.Run(p.Name, func(t *testing.T) {
			s := newService(t, p)
			var members []smr.Member
			var listeners []net.Listener
			for i := range 3 {
				listeners = append(listeners, listen(t))
				members = append(members, smr.Member{ID: protocol.ID(i + 1), Address: listeners[i].Addr().String()})
			}
			for i, m := range members {
				s.replica(m.ID, listeners[i], members, false)
			}
			c := s.client(70000, members)
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
			defer cancel()
			_, err := c.Execute(ctx, kv.Put([]byte("k"), []byte("v")))
			s.must(err)

			fourth := listen(t)
			s.replica(4, fourth, members, true)
			add := smr.Change{Add: smr.Member{ID: 4, Address: fourth.Addr().String()}}
			for {
				err = c.Reconfigure(ctx, add)
				if _, unknown := errors.AsType[*client.UnknownError](err); !unknown || ctx.Err() != nil {
					break
				}
			}
			s.must(err)
			for i := range 20 {
				_, err := c.Execute(ctx, kv.Put(fmt.Append(nil, i), nil))
				s.must(err)
			}
		})
	}
}
