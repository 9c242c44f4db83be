package replicated

import (
	"context"
	"encoding/binary"
	"fmt"
	"net"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/mem"
)

// Etcd is the path of the etcd program, "" if the machine has none.
func Etcd() string {
	path, err := exec.LookPath("etcd")
	if err != nil {
		return ""
	}
	return path
}

// EtcdThroughput runs a load against a cluster of etcd: the program at path, once for each replica,
// and clients that call its KV service. It is durable always, each client's calls go to one member
// each, and processor time is that of this process only.
func EtcdThroughput(ctx context.Context, path string, l Load) (Rate, error) {
	members, addresses, err := StartEtcd(ctx, path, l.Dir, l.Replicas)
	if err != nil {
		return Rate{}, err
	}
	defer members.Close()
	callers := &callers{load: l, ctx: members.Context()}
	for i := range l.Clients {
		conn, err := DialEtcd(addresses[i%len(addresses)])
		if err != nil {
			return Rate{}, err
		}
		defer conn.Close()
		callers.put = append(callers.put, conn.Put)
	}
	if err := callers.warm(20 * time.Second); err != nil {
		return Rate{}, err
	}
	return callers.measure(func() uint64 { return 0 })
}

// StartEtcd runs a cluster of n members whose data is in a directory, and returns where clients
// reach them.
func StartEtcd(ctx context.Context, path, dir string, n int) (*Processes, []string, error) {
	var clients, peers, cluster []string
	for i := range n {
		client, err := FreeAddress()
		if err != nil {
			return nil, nil, err
		}
		peer, err := FreeAddress()
		if err != nil {
			return nil, nil, err
		}
		clients, peers = append(clients, client), append(peers, peer)
		cluster = append(cluster, fmt.Sprintf("m%d=http://%s", i, peer))
	}
	p := newProcesses(ctx)
	for i := range n {
		err := p.start(path, "--name", fmt.Sprint("m", i), "--data-dir", filepath.Join(dir, fmt.Sprint("etcd", i)),
			"--listen-client-urls", "http://"+clients[i], "--advertise-client-urls", "http://"+clients[i],
			"--listen-peer-urls", "http://"+peers[i], "--initial-advertise-peer-urls", "http://"+peers[i],
			"--initial-cluster", strings.Join(cluster, ","), "--log-level", "error", "--snapshot-count", "10000000")
		if err != nil {
			p.Close()
			return nil, nil, err
		}
	}
	return p, clients, nil
}

// FreeAddress returns an address of the loopback interface that nobody listens at.
func FreeAddress() (string, error) {
	lis, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	defer lis.Close()
	return lis.Addr().String(), nil
}

// raw is a codec of messages that are bytes already: *[]byte.
type raw struct{}

var _ encoding.CodecV2 = raw{}

func (raw) Marshal(v any) (mem.BufferSlice, error) {
	return mem.BufferSlice{mem.SliceBuffer(*v.(*[]byte))}, nil
}

func (raw) Unmarshal(data mem.BufferSlice, v any) error {
	*v.(*[]byte) = data.Materialize()
	return nil
}

func (raw) Name() string { return "proto" }

// number returns 8 bytes.
func number(n uint64) []byte { return binary.BigEndian.AppendUint64(nil, n) }
