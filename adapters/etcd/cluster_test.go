package etcd

import (
	"context"
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/embed"
	"google.golang.org/grpc"
)

// cluster is three members in this process, which talk through proxies. The last
// one is a follower.
type cluster struct {
	t       testing.TB
	members []*embed.Etcd
	peers   []*proxy // in front of each member
}

const follower = 2

func newCluster(t testing.TB) *cluster {
	t.Helper()
	c := &cluster{t: t}
	var names []string
	for i := range 3 {
		c.peers = append(c.peers, newProxy(t, "", 0))
		names = append(names, fmt.Sprintf("m%d=http://%s", i, c.peers[i].addr()))
	}
	for i := range c.peers {
		cfg := embed.NewConfig()
		cfg.Name, cfg.Dir = fmt.Sprint("m", i), t.TempDir()
		local := url.URL{Scheme: "http", Host: "127.0.0.1:0"}
		cfg.ListenPeerUrls, cfg.ListenClientUrls, cfg.AdvertiseClientUrls = []url.URL{local}, []url.URL{local},
			[]url.URL{local}
		cfg.AdvertisePeerUrls = []url.URL{{Scheme: "http", Host: c.peers[i].addr()}}
		cfg.InitialCluster = strings.Join(names, ",")
		cfg.LogLevel, cfg.LogOutputs = "panic", []string{"/dev/null"}
		cfg.UnsafeNoFsync = true
		m, err := embed.StartEtcd(cfg)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(m.Close)
		c.peers[i].aim(m.Peers[0].Addr().String())
		c.members = append(c.members, m)
	}
	for _, m := range c.members {
		select {
		case <-m.Server.ReadyNotify():
		case <-time.After(30 * time.Second):
			t.Fatal("the cluster has no leader after 30 s")
		}
	}
	if leader := c.leader(); leader == follower {
		if err := c.members[leader].Server.MoveLeader(t.Context(), uint64(c.members[leader].Server.MemberID()),
			uint64(c.members[0].Server.MemberID())); err != nil {
			t.Fatal(err)
		}
	}
	return c
}

func (c *cluster) leader() int {
	for i, m := range c.members {
		if m.Server.Leader() == m.Server.MemberID() {
			return i
		}
	}
	c.t.Fatal("the cluster has no leader")
	return 0
}

// isolate cuts the follower off from the other members, or heals that.
func (c *cluster) isolate(on bool) {
	id := c.members[follower].Server.MemberID().String()
	for i, p := range c.peers {
		if i == follower {
			p.hold("*", on)
		} else {
			p.hold(id, on)
		}
	}
}

// client returns a client of one member, so far away each way.
func (c *cluster) client(member int, away time.Duration, opts ...grpc.DialOption) *clientv3.Client {
	c.t.Helper()
	addr := c.members[member].Clients[0].Addr().String()
	if away > 0 {
		addr = newProxy(c.t, addr, away).addr()
	}
	cl, err := clientv3.New(clientv3.Config{Endpoints: []string{"http://" + addr}, DialOptions: opts})
	if err != nil {
		c.t.Fatal(err)
	}
	stale(c.t, cl, "connected?")
	c.t.Cleanup(func() { cl.Close() })
	return cl
}

// put writes without the KV that is tested.
func put(t testing.TB, cl *clientv3.Client, key, value string) int64 {
	t.Helper()
	resp, err := cl.Put(t.Context(), key, value)
	if err != nil {
		t.Fatal(err)
	}
	return resp.Header.Revision
}

// stale returns what a member says by itself of a key, "" if nothing.
func stale(t testing.TB, cl *clientv3.Client, key string) string {
	t.Helper()
	resp, err := cl.Get(t.Context(), key, clientv3.WithSerializable())
	if err != nil {
		t.Fatal(err)
	}
	return value(resp)
}

func value(resp *clientv3.GetResponse) string {
	if len(resp.Kvs) == 0 {
		return ""
	}
	return string(resp.Kvs[0].Value)
}

// catchUp waits until a member has applied a revision.
func catchUp(t testing.TB, cl *clientv3.Client, key string, revision int64) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	for resp := range cl.Watch(ctx, key, clientv3.WithRev(revision)) {
		if len(resp.Events) > 0 {
			return
		}
	}
	t.Fatalf("the member does not have revision %d of %q after 30 s", revision, key)
}
