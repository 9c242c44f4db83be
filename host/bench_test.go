//go:build unix

package host_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/binary"
	"math/big"
	"net"
	"syscall"
	"testing"
	"time"

	"github.com/foresay/foresay/host"
	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/transport"
)

// A word is a small message: 16 bytes.
type word [16]byte

type words struct{}

func (words) Append(buf []byte, m word) ([]byte, error) { return append(buf, m[:]...), nil }

func (words) Decode(b []byte) (m word, err error) { copy(m[:], b); return m, nil }

// flood keeps window messages to an echoing peer on their way.
type flood struct {
	peer   protocol.ID
	window int
	back   uint64
	goal   uint64
	done   chan struct{}
}

func (f *flood) Start(env *protocol.Env[word], _ []protocol.Record[word]) {}

func (f *flood) Receive(env *protocol.Env[word], from protocol.ID, m word) {
	if from == protocol.App {
		f.goal = f.back + binary.LittleEndian.Uint64(m[:])
		for range f.window {
			env.Send(f.peer, word{})
		}
		return
	}
	f.back++
	switch {
	case f.back+uint64(f.window) <= f.goal:
		env.Send(f.peer, m)
	case f.back == f.goal:
		f.done <- struct{}{}
	}
}

func (f *flood) Expire(*protocol.Env[word], protocol.Timer) {}

func (f *flood) Broken(*protocol.Env[word], protocol.ID) { panic("a message was lost") }

// reflector answers with what it gets, after writing it if keeps is set.
type reflector struct{ keeps bool }

func (r *reflector) Start(*protocol.Env[word], []protocol.Record[word]) {}

func (r *reflector) Receive(env *protocol.Env[word], from protocol.ID, m word) {
	if r.keeps {
		i := env.Append(m)
		if i%1000 == 0 {
			env.Truncate(i)
		}
	}
	env.Send(from, m)
}

func (r *reflector) Expire(*protocol.Env[word], protocol.Timer) {}

func cpuTime(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// rounds sends messages to and fro between two hosts over the loopback interface.
func rounds(b *testing.B, window int, security func(id protocol.ID, cfg *transport.Config), disk host.Disk) {
	lis, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 2)
	defer func() {
		stop()
		for range 2 {
			if err := <-ended; err != nil {
				b.Error(err)
			}
		}
	}()
	network := transport.Config{Cluster: "bench", IDs: []protocol.ID{1}}
	security(1, &network)
	server, err := host.New(host.Config{Network: network, Listener: lis})
	if err != nil {
		b.Fatal(err)
	}
	if _, err := host.Add(server, host.Spec[word]{ID: 1, Node: &reflector{keeps: disk != nil}, Codec: words{},
		Disk: disk}); err != nil {
		b.Fatal(err)
	}
	network.IDs = nil
	security(70000, &network)
	client, err := host.New(host.Config{Network: network})
	if err != nil {
		b.Fatal(err)
	}
	if err := client.SetPeer(1, lis.Addr().String()); err != nil {
		b.Fatal(err)
	}
	f := &flood{peer: 1, window: window, done: make(chan struct{})}
	n, err := host.Add(client, host.Spec[word]{ID: 70000, Node: f, Codec: words{}})
	if err != nil {
		b.Fatal(err)
	}
	go func() { ended <- server.Run(ctx) }()
	go func() { ended <- client.Run(ctx) }()
	b.ReportAllocs()
	begin, cpu := time.Now(), cpuTime(b)
	b.ResetTimer()
	var m word
	count := max(uint64(b.N), uint64(window))
	binary.LittleEndian.PutUint64(m[:], count)
	if err := n.Deliver(ctx, m); err != nil {
		b.Fatal(err)
	}
	<-f.done
	b.StopTimer()
	sent := 2 * float64(count)
	b.ReportMetric(sent/time.Since(begin).Seconds(), "msg/s")
	b.ReportMetric(float64((cpuTime(b)-cpu).Nanoseconds())/sent, "cpu-ns/msg")
	p := client.Stats().Network.Peers[0]
	b.ReportMetric(float64(p.SentMessages)/float64(p.SentFrames), "msg/frame")
}

// withTLS makes hosts that show one certificate for all their names.
func withTLS(b *testing.B) func(id protocol.ID, cfg *transport.Config) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		b.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: time.Unix(0, 0), NotAfter: time.Unix(1<<32, 0),
		DNSNames: []string{"replica-1", "client"}, IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		b.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		b.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AddCert(cert)
	return func(_ protocol.ID, cfg *transport.Config) {
		cfg.TLS = &tls.Config{
			Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}, RootCAs: pool, ClientCAs: pool,
		}
	}
}

func plain(_ protocol.ID, cfg *transport.Config) { cfg.Insecure = true }

// BenchmarkRounds measures messages of 16 bytes to another host and back: each op is two messages.
func BenchmarkRounds(b *testing.B) {
	for _, c := range []struct {
		name   string
		window int
	}{{"window=1", 1}, {"window=64", 64}, {"window=1024", 1024}, {"window=16384", 16384}} {
		b.Run(c.name, func(b *testing.B) { rounds(b, c.window, plain, nil) })
	}
	b.Run("window=1024/tls", func(b *testing.B) { rounds(b, 1024, withTLS(b), nil) })
	b.Run("window=1024/memory", func(b *testing.B) { rounds(b, 1024, plain, host.NewMemory()) })
}

// ticker calls itself.
type ticker struct {
	goal, steps int
	done        chan struct{}
}

func (t *ticker) Start(env *protocol.Env[word], _ []protocol.Record[word]) { env.Send(1, word{}) }

func (t *ticker) Receive(env *protocol.Env[word], _ protocol.ID, m word) {
	if t.steps++; t.steps == t.goal {
		close(t.done)
		return
	}
	env.Send(1, m)
}

func (t *ticker) Expire(*protocol.Env[word], protocol.Timer) {}

// BenchmarkSteps measures a node that sends to itself.
func BenchmarkSteps(b *testing.B) {
	h, err := host.New(host.Config{Network: transport.Config{Cluster: "bench", Insecure: true}})
	if err != nil {
		b.Fatal(err)
	}
	t := &ticker{goal: b.N, done: make(chan struct{})}
	if _, err := host.Add(h, host.Spec[word]{ID: 1, Node: t, Codec: words{}}); err != nil {
		b.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	b.ReportAllocs()
	b.ResetTimer()
	go func() { ended <- h.Run(ctx) }()
	<-t.done
	b.StopTimer()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "steps/s")
	stop()
	if err := <-ended; err != nil {
		b.Fatal(err)
	}
}
