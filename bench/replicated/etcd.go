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

// EtcdConn calls the KV service of a member of etcd. Its messages are encoded here: so few of them
// need no module.
type EtcdConn struct{ conn *grpc.ClientConn }

// DialEtcd returns a connection to the member at an address.
func DialEtcd(address string) (*EtcdConn, error) {
	conn, err := grpc.NewClient("passthrough:///"+address,
		grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithDefaultCallOptions(grpc.ForceCodecV2(raw{})))
	if err != nil {
		return nil, err
	}
	return &EtcdConn{conn}, nil
}

// Close closes the connection.
func (c *EtcdConn) Close() error { return c.conn.Close() }

func (c *EtcdConn) call(ctx context.Context, method string, request []byte) ([]byte, error) {
	var answer []byte
	err := c.conn.Invoke(ctx, "/etcdserverpb.KV/"+method, &request, &answer)
	return answer, err
}

// Put writes a key.
func (c *EtcdConn) Put(ctx context.Context, key, value []byte) error {
	_, err := c.call(ctx, "Put", etcdPut(key, value))
	return err
}

// Get returns the revision at which a key was last written, by a linearizable read, and an error if
// there is no such key.
func (c *EtcdConn) Get(ctx context.Context, key []byte) (revision uint64, err error) {
	answer, err := c.call(ctx, "Range", bytesField(nil, 1, key))
	if err != nil {
		return 0, err
	}
	pairs, ok := field(answer, 2) // RangeResponse.kvs
	if !ok {
		return 0, fmt.Errorf("etcd: there is no key %q", key)
	}
	n, _ := field(pairs, 3) // KeyValue.mod_revision
	revision, size := protowire.ConsumeVarint(n)
	if size < 0 {
		return 0, fmt.Errorf("etcd: the answer about key %q has no revision", key)
	}
	return revision, nil
}

// PutIf writes keys if they were last written at these revisions, and reports whether they were.
func (c *EtcdConn) PutIf(ctx context.Context, keys [][]byte, revisions []uint64, value []byte) (bool, error) {
	var txn []byte
	for i, key := range keys {
		compare := varintField(nil, 2, 2) // Compare.target is MOD; its result, EQUAL, is 0
		compare = varintField(bytesField(compare, 3, key), 6, revisions[i])
		txn = bytesField(txn, 1, compare)
	}
	for _, key := range keys {
		txn = bytesField(txn, 2, bytesField(nil, 2, etcdPut(key, value))) // RequestOp.request_put
	}
	answer, err := c.call(ctx, "Txn", txn)
	if err != nil {
		return false, err
	}
	_, ok := field(answer, 2) // TxnResponse.succeeded, which is left out if false
	return ok, nil
}

// etcdPut encodes an etcdserverpb.PutRequest: field 1 is the key, field 2 the value.
func etcdPut(key, value []byte) []byte { return bytesField(bytesField(nil, 1, key), 2, value) }

func bytesField(b []byte, n protowire.Number, v []byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(b, n, protowire.BytesType), v)
}

func varintField(b []byte, n protowire.Number, v uint64) []byte {
	return protowire.AppendVarint(protowire.AppendTag(b, n, protowire.VarintType), v)
}

// field returns the first field of a number: of one of bytes what is in it, of others how they are
// encoded.
func field(b []byte, number protowire.Number) ([]byte, bool) {
	for len(b) > 0 {
		n, kind, size := protowire.ConsumeTag(b)
		if size < 0 {
			return nil, false
		}
		b = b[size:]
		if size = protowire.ConsumeFieldValue(n, kind, b); size < 0 {
			return nil, false
		}
		if n == number && kind == protowire.BytesType {
			v, _ := protowire.ConsumeBytes(b)
			return v, true
		}
		if n == number {
			return b[:size], true
		}
		b = b[size:]
	}
	return nil, false
}
