package pbft

import (
	"context"
	"crypto/ed25519"
	"strconv"
	"sync"
	"testing"

	"github.com/foresay/foresay"
	"github.com/foresay/foresay/bft"
	bftclient "github.com/foresay/foresay/bft/client"
	"github.com/foresay/foresay/bft/kit"
	"github.com/foresay/foresay/control"
	"github.com/foresay/foresay/protocol"
)

// lonely is a client node without a network: what is called at one moment it signs and sends at
// once, as under a host. The replies come when a number of calls have been made.
type lonely struct {
	mu     sync.Mutex
	inbox  []bft.Call
	woken  chan struct{}
	node   *client
	env    *protocol.Env[bft.Message]
	client *bftclient.Client
	sent   []bft.Number
	first  bft.Number // of this round
}

func newLonely(b *testing.B, scheme *bft.Scheme, sign func(protocol.ID) *bft.Signer) *lonely {
	b.Helper()
	cfg := bft.ClientConfig{ID: 9, Directory: &bft.Directory{Clients: map[protocol.ID]bft.Key{9: sign(9).Key()}},
		Scheme: scheme, Signer: sign(9)}
	for id := protocol.ID(1); id <= 4; id++ {
		cfg.Directory.Members = append(cfg.Directory.Members, bft.Party{ID: id, Key: sign(id).Key()})
	}
	l := &lonely{woken: make(chan struct{}, 1), env: protocol.NewEnv[bft.Message](nil, 1, nil), first: 1}
	var err error
	if l.node, err = newClient(cfg); err != nil {
		b.Fatal(err)
	}
	l.node.Start(l.env, nil)
	l.client, err = bftclient.New(bftclient.Config{Deliver: func(_ context.Context, msg bft.Message) error {
		l.mu.Lock()
		l.inbox = append(l.inbox, msg.(bft.Call))
		l.mu.Unlock()
		select {
		case l.woken <- struct{}{}:
		default:
		}
		return nil
	}})
	if err != nil {
		b.Fatal(err)
	}
	return l
}

// serve has the node take calls until there are n, then confirms them all.
func (l *lonely) serve(n int) {
	for len(l.sent) < n {
		<-l.woken
		l.mu.Lock()
		calls := l.inbox
		l.inbox = nil
		l.mu.Unlock()
		l.env.Begin(0)
		for _, c := range calls {
			l.node.Receive(l.env, protocol.App, c)
		}
		l.node.Expire(l.env, kit.FlushTimer{})
		for _, e := range effects[kit.Submitted](l.env) {
			m := e.Msg.(kit.Submitted)
			if r := m.Request.Body(); e.To == 1 {
				for i := range r.Operations {
					l.sent = append(l.sent, r.First+bft.Number(i))
				}
			}
		}
	}
	for at := 0; at < n; at += bft.MaxOperations {
		l.env.Begin(0)
		for id := protocol.ID(1); id <= 3; id++ {
			m := replies{Session: l.node.Session}
			for _, number := range l.sent[at:min(at+bft.MaxOperations, n)] {
				r := executedTo(strconv.Itoa(int(number - l.first)))
				m.Items = append(m.Items, replyItem{Number: number, Seq: 1, Digest: r.Digest(), Full: id == 1, Result: r})
			}
			l.node.Receive(l.env, id, m)
		}
		for _, e := range effects[bft.Done](l.env) {
			l.client.Receive(e.Msg)
		}
	}
	l.first, l.sent = l.sent[n-1]+1, nil
}

// BenchmarkPredicatedCall is a call on a guess, engine and client node, without a network: of 1,000
// that stand on each other, with their confirmation.
func BenchmarkPredicatedCall(b *testing.B) {
	const n = 1000
	deep := foresay.WithLimits(control.Limits{Depth: 2 * n})
	key := func(id protocol.ID) *bft.Signer {
		return bft.NewSigner(ed25519.NewKeyFromSeed([]byte(strconv.Itoa(10000000000000000+int(id)) + "0123456789abcde")))
	}
	secrets := &bft.Secrets{}
	for name, l := range map[string]*lonely{
		"ed25519": newLonely(b, bft.NewScheme("bench", bft.Ed25519{}), key),
		"cheap": newLonely(b, bft.NewScheme("bench", secrets),
			func(id protocol.ID) *bft.Signer { return secrets.Signer(uint64(id)) }),
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				served := make(chan struct{})
				go func() {
					defer close(served)
					l.serve(n)
				}()
				_, err := foresay.Do(b.Context(), func(ctx context.Context) (int, error) {
					for i := range n {
						guess := foresay.Predicting(ctx, []byte(strconv.Itoa(i)))
						if _, err := l.client.Execute(guess, []byte(strconv.Itoa(i))); err != nil {
							return 0, err
						}
					}
					return 0, nil
				}, deep)
				if err != nil {
					b.Fatal(err)
				}
				<-served
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/n, "ns/call")
		})
	}
}
