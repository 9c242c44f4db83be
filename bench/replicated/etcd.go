package replicated

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/encoding/protowire"
)

// Etcd is the path of the etcd program, "" if the machine has none.
func Etcd() string {
	path, err := exec.LookPath("etcd")
	if err != nil {
		return ""
	}
	return path
}

// EtcdThroughput runs a load against a cluster of etcd: the program at path, once for each replica, and clients that
// call its KV service. It is durable always, each client's calls go to one member each, and processor time is that of this process only.
func EtcdThroughput(ctx context.Context, path string, l Load) (Rate, error) {
	ctx, stop := context.WithCancelCause(ctx)
	var wg sync.WaitGroup
	defer wg.Wait()
	defer stop(nil)
	addresses, err := startEtcd(ctx, stop, &wg, path, l)
	if err != nil {
		return Rate{}, err
	}
	callers := &callers{load: l, ctx: ctx}
	for i := range l.Clients {
		conn, err := grpc.NewClient("passthrough:///"+addresses[i%len(addresses)],
			grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithDefaultCallOptions(grpc.ForceCodecV2(raw{})))
		if err != nil {
			return Rate{}, err
		}
		defer conn.Close()
		callers.put = append(callers.put, func(ctx context.Context, key, value []byte) error {
			var answer []byte
			return conn.Invoke(ctx, "/etcdserverpb.KV/Put", etcdPut(key, value), &answer)
		})
	}
	if err := callers.warm(20 * time.Second); err != nil {
		return Rate{}, err
	}
	return callers.measure(func() uint64 { return 0 })
}

// startEtcd starts the members, and returns where clients reach them.
func startEtcd(ctx context.Context, stop context.CancelCauseFunc, wg *sync.WaitGroup, path string, l Load) ([]string, error) {
	var clients, peers, cluster []string
	for i := range l.Replicas {
		client, err := freeAddress()
		if err != nil {
			return nil, err
		}
		peer, err := freeAddress()
		if err != nil {
			return nil, err
		}
		clients, peers = append(clients, client), append(peers, peer)
		cluster = append(cluster, fmt.Sprintf("m%d=http://%s", i, peer))
	}
	for i := range l.Replicas {
		var said bytes.Buffer
		cmd := exec.CommandContext(ctx, path, "--name", fmt.Sprint("m", i), "--data-dir", filepath.Join(l.Dir, fmt.Sprint("etcd", i)),
			"--listen-client-urls", "http://"+clients[i], "--advertise-client-urls", "http://"+clients[i],
			"--listen-peer-urls", "http://"+peers[i], "--initial-advertise-peer-urls", "http://"+peers[i],
			"--initial-cluster", strings.Join(cluster, ","), "--log-level", "error", "--snapshot-count", "10000000")
		cmd.Stderr = &said
		cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
		cmd.WaitDelay = 5 * time.Second
		if err := cmd.Start(); err != nil {
			return nil, fmt.Errorf("etcd: %w", err)
		}
		wg.Go(func() {
			if err := cmd.Wait(); ctx.Err() == nil {
				stop(fmt.Errorf("etcd member %d ended: %w: %s", i, errors.Join(err, io.ErrUnexpectedEOF), said.Bytes()))
			}
		})
	}
	return clients, nil
}

// freeAddress returns an address of the loopback interface that nobody listens at.
func freeAddress() (string, error) {
	lis, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	defer lis.Close()
	return lis.Addr().String(), nil
}

// etcdPut encodes an etcdserverpb.PutRequest: field 1 is the key, field 2 the value.
func etcdPut(key, value []byte) *[]byte {
	b := protowire.AppendTag(nil, 1, protowire.BytesType)
	b = protowire.AppendBytes(b, key)
	b = protowire.AppendTag(b, 2, protowire.BytesType)
	b = protowire.AppendBytes(b, value)
	return &b
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
