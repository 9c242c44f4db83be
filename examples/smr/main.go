// The program smr replicates a bank: a state machine of its own, three replicas in this process
// over the loopback interface, and a typed client. It stops the replica that leads and goes on.
package main

import (
	"context"
	"fmt"
	"log"
	"net"
	"sync"
	"time"

	"github.com/foresay/foresay/host"
	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/smr"
	"github.com/foresay/foresay/smr/client"
	"github.com/foresay/foresay/smr/raft"
	"github.com/foresay/foresay/transport"
)

// replica is one replica of the bank, with its host.
type replica struct {
	host *host.Host
	node *host.Node[smr.Message]
	stop context.CancelFunc
	done chan error
	role chan string // answers to smr.StatusQuery
}

// startReplica starts a replica at a listener. Its disk is in memory; package host/waldisk has
// those that last.
func startReplica(id protocol.ID, members []smr.Member, lis net.Listener) (*replica, error) {
	r := &replica{done: make(chan error, 1), role: make(chan string, 1)}
	var err error
	r.host, err = host.New(host.Config{
		Network:  transport.Config{Cluster: "bank", IDs: []protocol.ID{id}, Insecure: true}, // see transport.Config.TLS
		Listener: lis,
	})
	if err != nil {
		return nil, err
	}
	for _, m := range members {
		if err := r.host.SetPeer(m.ID, m.Address); err != nil {
			return nil, err
		}
	}
	p := raft.Protocol()
	node, err := p.NewReplica(smr.ReplicaConfig{ID: id, Members: members, Machine: newBank(),
		RoundTrip: 50 * time.Millisecond})
	if err != nil {
		return nil, err
	}
	r.node, err = host.Add(r.host, host.Spec[smr.Message]{ID: id, Node: node, Codec: p.Codec, App: r.news})
	if err != nil {
		return nil, err
	}
	ctx, stop := context.WithCancel(context.Background())
	r.stop = stop
	go func() { r.done <- r.host.Run(ctx) }()
	return r, nil
}

// news is what the replica tells its program.
func (r *replica) news(msg smr.Message) {
	switch m := msg.(type) {
	case smr.Status:
		r.role <- m.Role
	case smr.Refused: // as after a lost disk
		log.Print("a replica must not take part: ", m.Reason)
	}
}

// leads asks the replica whether it leads.
func (r *replica) leads(ctx context.Context) (bool, error) {
	if err := r.node.Deliver(ctx, smr.StatusQuery{ID: 1}); err != nil {
		return false, err
	}
	select {
	case role := <-r.role:
		return role == "leader", nil
	case <-ctx.Done():
		return false, ctx.Err()
	}
}

// startClient starts a client. What it returns ends it.
func startClient(members []smr.Member) (client.Typed[command, query, result], func() error, error) {
	var none client.Typed[command, query, result]
	h, err := host.New(host.Config{Network: transport.Config{Cluster: "bank", Insecure: true}})
	if err != nil {
		return none, nil, err
	}
	for _, m := range members {
		if err := h.SetPeer(m.ID, m.Address); err != nil {
			return none, nil, err
		}
	}
	const id = 70_000 // IDs of clients begin at 65536
	p := raft.Protocol()
	node, err := p.NewClient(smr.ClientConfig{ID: id, Members: members, RoundTrip: 50 * time.Millisecond})
	if err != nil {
		return none, nil, err
	}
	var at *host.Node[smr.Message]
	c := client.New(func(ctx context.Context, msg smr.Message) error { return at.Deliver(ctx, msg) })
	at, err = host.Add(h, host.Spec[smr.Message]{ID: id, Node: node, Codec: p.Codec, App: c.Receive})
	if err != nil {
		return none, nil, err
	}
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- h.Run(ctx) }()
	end := func() error {
		c.Close(nil)
		stop()
		return <-done
	}
	return client.Typed[command, query, result]{Client: c, Coding: coding()}, end, nil
}

// use makes transfers while the leader stops.
func use(ctx context.Context, bank client.Typed[command, query, result], replicas []*replica) error {
	if _, err := bank.Execute(ctx, command{Deposit: 100, To: "ann"}); err != nil {
		return err
	}
	var wg sync.WaitGroup
	failed := make(chan error, 10)
	for range 10 {
		wg.Go(func() {
			if _, err := bank.Execute(ctx, command{From: "ann", To: "bob", Deposit: 5}); err != nil {
				failed <- err
			}
		})
	}
	if err := stopLeader(ctx, replicas); err != nil {
		return err
	}
	wg.Wait()
	select {
	case err := <-failed:
		return err
	default:
	}
	r, err := bank.Execute(ctx, command{From: "ann", To: "bob", Deposit: 1000})
	if err != nil {
		return err
	}
	fmt.Println("1000 from ann to bob:", r.Refused)
	for _, name := range []string{"ann", "bob"} {
		r, err := bank.Read(ctx, query{name})
		if err != nil {
			return err
		}
		fmt.Println(name, "has", r.Balance)
	}
	return nil
}

// stopLeader stops the replica that leads, as soon as one does.
func stopLeader(ctx context.Context, replicas []*replica) error {
	for i := 0; ; i++ {
		r := replicas[i%len(replicas)]
		leads, err := r.leads(ctx)
		if err != nil {
			return err
		}
		if leads {
			r.stop()
			return nil
		}
	}
}

func run() error {
	var members []smr.Member
	var listeners []net.Listener
	for id := range protocol.ID(3) {
		lis, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return err
		}
		listeners = append(listeners, lis)
		members = append(members, smr.Member{ID: id + 1, Address: lis.Addr().String()})
	}
	var replicas []*replica
	for i, m := range members {
		r, err := startReplica(m.ID, members, listeners[i])
		if err != nil {
			return err
		}
		replicas = append(replicas, r)
	}
	bank, end, err := startClient(members)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	if err := use(ctx, bank, replicas); err != nil {
		return err
	}
	for _, r := range replicas {
		r.stop()
		if err := <-r.done; err != nil {
			return err
		}
	}
	return end()
}

func main() {
	if err := run(); err != nil {
		log.Fatal(err)
	}
}
