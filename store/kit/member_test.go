package kit

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/smr"
	"github.com/foresay/foresay/smr/raft"
	"github.com/foresay/foresay/store"
)

// stateless is a group's machine that carries nothing out.
type stateless struct{}

func (stateless) Load(protocol.Keys) {}

func (stateless) Apply(raft.State, raft.Position, []byte) {}

// TestMember: what a member says of its end ends its server's machine, but for being removed, and
// each asks of the group what is for it to ask.
func TestMember(t *testing.T) {
	layout := store.Layout{Sites: []store.Site{{Shards: []protocol.ID{1}, Coordinators: []protocol.ID{2}}}}
	cfg, at, err := ServerConfig("own", store.Config{ID: 1, Layout: layout})
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := ServerConfig("own", store.Config{ID: 2, Layout: layout}); err == nil {
		t.Error("a coordinator is a server")
	}
	if _, _, err := CoordinatorConfig("own", store.Config{ID: 1, Layout: layout}); err == nil {
		t.Error("a server is a coordinator")
	}
	m, err := NewMember(cfg, at, MemberConfig{Machine: stateless{}, Prefix: "p"})
	if err != nil {
		t.Fatal(err)
	}
	env := protocol.NewEnv[store.Message](nil, 1, rand.New(rand.NewPCG(1, 1)))
	said := func(call func()) (out []store.Message) {
		env.Begin(0)
		call()
		for _, e := range env.Out {
			if e.Kind == protocol.KindSend && e.To == protocol.App {
				out = append(out, e.Msg)
			}
		}
		return out
	}
	m.Start(env, nil)
	for _, tc := range []struct {
		name string
		from protocol.ID
		msg  store.Message
		want []store.Message
	}{
		{"the application asks", protocol.App, store.HandOver{Ref: 3, Site: 9},
			[]store.Message{store.HandingOver{Ref: 3, Reason: "the site has no copy"}}},
		{"somebody else asks", 2, store.HandOver{Ref: 3, Site: 9}, nil},
		{"the application asks to replace", protocol.App, store.Replace{Ref: 4},
			[]store.Message{store.Replacing{Ref: 4}}},
		{"somebody else asks to replace", 2, store.Replace{Ref: 4}, nil},
		{"the application plays a member", protocol.App, Grouped{smr.StatusQuery{}}, nil},
	} {
		took := false
		if got := said(func() { took = m.Receive(env, tc.from, tc.msg) }); !took || !slices.Equal(got, tc.want) {
			t.Errorf("%s: taken %v, the application is told %v, want %v", tc.name, took, got, tc.want)
		}
	}
	if m.Receive(env, 2, store.ReadRequest{}) || m.Expire(env, SubmitTimer{}) {
		t.Error("the member takes what is not for it")
	}
	if got := said(func() { m.said(env, smr.RefusedAsRemoved(1)) }); len(got) > 0 || m.Status(env, 1).Refused != "" {
		t.Errorf("a server that was removed says %v", got)
	}
	if got := said(func() { m.said(env, smr.Refused{Reason: "its disk is another one"}) }); len(got) != 1 ||
		m.Status(env, 1).Refused == "" {
		t.Errorf("a server that was refused says %v", got)
	}
}
