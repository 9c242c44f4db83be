package service

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"

	"github.com/foresay/foresay/smr/kit"

	mathrand "math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/foresay/foresay/host"
	"github.com/foresay/foresay/host/waldisk"
	"github.com/foresay/foresay/internal/cli/configfile"
	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/smr"
	"github.com/foresay/foresay/smr/kv"
	"github.com/foresay/foresay/wal"
)

// RecoverOptions say what Recover does.
type RecoverOptions struct {
	Config string // the file of the replica whose disk is left
	Client string // the clients' file, to be written anew; "": none
	// Dead are all other members, declared dead. AcceptLoss says that what the disk does not have
	// may be lost. Without both Recover only tells what it would do.
	Dead       []protocol.ID
	AcceptLoss bool
	// SkipVersions is how many versions each group skips: more than can be lost. 0 is
	// DefaultSkipVersions.
	SkipVersions uint64
	Logger       *slog.Logger // nil: none
	// Dial connects to the address of a member that is declared dead: nobody is to be there. nil is
	// TCP.
	Dial func(ctx context.Context, address string) (net.Conn, error)
}

// A Recovery is what Recover found, and did.
type Recovery struct {
	Replica  protocol.ID `json:"replica"`
	Protocol string      `json:"protocol"`
	Others   []Member    `json:"others"` // the other members of the group, as the disk knows it
	Groups   int         `json:"groups"`
	Applied  smr.Slot    `json:"applied"` // of several groups, as all figures, the sum
	Snapshot smr.Slot    `json:"snapshot"`
	// Doubtful counts the commands that are taken over though the disk does not say that they were
	// decided.
	Doubtful int    `json:"doubtful"`
	Keys     uint64 `json:"keys"`
	Bytes    uint64 `json:"bytes"`
	// Version is the newest one that the disk has, the highest of several groups. Each group goes
	// on SkippedVersions later, so that no version that is lost is given again.
	Version         uint64 `json:"version"`
	SkippedVersions uint64 `json:"skipped_versions"`

	Recovery  string `json:"recovery"` // of the new group
	Data      string `json:"data"`     // of its replica
	Config    string `json:"config"`   // the files that were written, and what those that were there are called now
	OldConfig string `json:"old_config"`
	Client    string `json:"client,omitempty"`
	OldClient string `json:"old_client,omitempty"`
	Done      bool   `json:"done"`
}

// ErrUnconfirmed says that Recover was not told that the others are dead and that a loss is
// accepted.
var ErrUnconfirmed = errors.New("nothing was changed")

// Recover makes a new group of one replica from the disk of a replica that is left of a group that
// has lost its quorum. What the replica had executed is there; what others were told is done and
// this disk has not heard of is lost, and nobody can tell what that is.
//
// The old directory stays as it is. The new group bears the name of this recovery: hosts, disks and
// clients of the old one are refused. Its members must never come back all the same: a majority of
// them would go on as the old group, beside the new one, for clients that have the old file.
func Recover(o RecoverOptions) (*Recovery, error) {
	fail := func(r *Recovery, err error) (*Recovery, error) { return r, fmt.Errorf("recover: %w", err) }
	cfg, err := ReadConfig(o.Config)
	if err != nil {
		return nil, err
	}
	r := &Recovery{Replica: cfg.ID, Protocol: cfg.Protocol, Config: o.Config, Client: o.Client,
		SkippedVersions: cmp.Or(o.SkipVersions, DefaultSkipVersions)}
	if r.Recovery, err = nextRecovery(cfg.Recovery); err != nil {
		return fail(nil, err)
	}
	suffix := "." + r.Recovery
	r.Data, r.OldConfig = cfg.Data+suffix, o.Config+suffix+".old"
	if o.Client != "" {
		r.OldClient = o.Client + suffix + ".old"
	}
	machines, err := r.salvage(cfg, o.Logger)
	if err != nil {
		return fail(nil, err)
	}
	if err := r.confirmed(o); err != nil {
		return fail(r, err)
	}
	if err := unreached(o.Dial, r.Others); err != nil {
		return fail(r, err)
	}
	files, err := r.newFiles(cfg)
	if err != nil {
		return fail(r, err)
	}
	if err := found(cfg, machines, r, o.Logger); err != nil {
		return fail(r, err)
	}
	for _, f := range files {
		if err := f.replace(); err != nil {
			return fail(r, err)
		}
	}
	r.Done = true
	return r, nil
}

// nextRecovery returns the name of the recovery after one.
func nextRecovery(now string) (string, error) {
	number := 1
	if now != "" {
		var err error
		if number, err = strconv.Atoi(recoveryForm.FindStringSubmatch(now)[1]); err != nil {
			return "", err
		}
	}
	var tag [4]byte
	if _, err := rand.Read(tag[:]); err != nil {
		return "", err
	}
	return fmt.Sprintf("%d-%s", number+1, hex.EncodeToString(tag[:])), nil
}

// salvage returns state machines that have executed what the disk has: one for each group.
func (r *Recovery) salvage(cfg *Config, log *slog.Logger) (machines []*kv.Store, err error) {
	if _, err := os.Stat(cfg.Data); err != nil {
		return nil, fmt.Errorf("replica %d: its directory: %w", cfg.ID, err)
	}
	store, err := wal.Open(cfg.Data, wal.Options{Logger: log})
	if err != nil {
		return nil, fmt.Errorf("replica %d: %w", cfg.ID, err)
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	r.Groups = cfg.count()
	for i := range cfg.count() {
		machine := kv.New()
		if err := r.salvageGroup(cfg, i, store, machine); err != nil {
			if r.Groups > 1 {
				err = fmt.Errorf("group %d: %w", i+1, err)
			}
			return nil, err
		}
		machines = append(machines, machine)
	}
	slices.SortFunc(r.Others, func(a, b Member) int { return cmp.Compare(a.ID, b.ID) })
	return machines, nil
}

func (r *Recovery) salvageGroup(cfg *Config, group int, store *wal.Store, machine *kv.Store) error {
	disk, err := openDisk(cfg, group, store)
	if err != nil {
		return err
	}
	var records []protocol.Record[smr.Message]
	for rec, err := range disk.Records() {
		if err != nil {
			return err
		}
		msg, err := cfg.proto.Codec.Decode(rec.Bytes)
		if err != nil {
			return fmt.Errorf("record %d: %w", rec.Index, err)
		}
		records = append(records, protocol.Record[smr.Message]{Index: rec.Index, Msg: msg})
	}
	s, err := kit.SalvageDisk(cfg.proto, cfg.replica(group, machine), newEnv(disk), records)
	if errors.Is(err, smr.ErrNoSalvage) {
		return fmt.Errorf("replica %d: %w: restore the last backup into a new group", cfg.ID, err)
	}
	if err != nil {
		return err
	}
	for _, m := range s.Members {
		other := Member{m.ID, cfg.addressOf(m)}
		if m.ID != cfg.ID && !slices.Contains(r.Others, other) {
			r.Others = append(r.Others, other)
		}
	}
	r.Version = max(r.Version, machine.Version())
	if err := machine.Skip(r.SkippedVersions); err != nil {
		return err
	}
	u := machine.Usage()
	r.Applied, r.Snapshot = r.Applied+s.Applied, r.Snapshot+s.Snapshot
	r.Doubtful, r.Keys, r.Bytes = r.Doubtful+s.Doubtful, r.Keys+u.Keys, r.Bytes+u.Bytes
	return nil
}

func newEnv(disk *waldisk.Disk) *protocol.Env[smr.Message] {
	env := protocol.NewEnv[smr.Message](disk.Keys(), disk.NextIndex(),
		mathrand.New(mathrand.NewPCG(mathrand.Uint64(), mathrand.Uint64())))
	env.Begin(0)
	return env
}

// confirmed returns an error if the options do not say what Recover must be told.
func (r *Recovery) confirmed(o RecoverOptions) error {
	var want, unknown []string
	for _, m := range r.Others {
		if !slices.Contains(o.Dead, m.ID) {
			want = append(want, fmt.Sprint(m.ID))
		}
	}
	for _, id := range o.Dead {
		if !slices.ContainsFunc(r.Others, func(m Member) bool { return m.ID == id }) {
			unknown = append(unknown, fmt.Sprint(id))
		}
	}
	switch {
	case len(unknown) > 0:
		return fmt.Errorf("%w: %s was declared dead, which is none of the other members", ErrUnconfirmed,
			strings.Join(unknown, ", "))
	case len(want) > 0:
		return fmt.Errorf("%w: declare dead all other members; missing: %s", ErrUnconfirmed, strings.Join(want, ", "))
	case !o.AcceptLoss:
		return fmt.Errorf("%w: accept that what this disk does not have is lost", ErrUnconfirmed)
	}
	return nil
}

// unreached returns an error if somebody listens where a member that was declared dead is.
func unreached(dial func(context.Context, string) (net.Conn, error), dead []Member) error {
	if dial == nil {
		dial = func(ctx context.Context, address string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "tcp", address)
		}
	}
	for _, m := range dead {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		c, err := dial(ctx, m.Address)
		cancel()
		if err == nil {
			c.Close()
			return fmt.Errorf("%w: replica %d was declared dead, and somebody listens at %s: stop it. If that is another "+
				"program, "+
				"give the replica another address in the file", ErrUnconfirmed, m.ID, m.Address)
		}
	}
	return nil
}

// found makes the disk of the new group: what a new group of one writes when it starts, with a
// state machine that is not empty.
func found(cfg *Config, machines []*kv.Store, r *Recovery, log *slog.Logger) (err error) {
	if _, err := os.Stat(r.Data); !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%s is there already", r.Data)
	}
	next := *cfg
	next.Recovery, next.Data = r.Recovery, r.Data+".unfinished"
	if err := os.RemoveAll(next.Data); err != nil { // of an attempt that was interrupted: the name has chance in it
		return err
	}
	store, err := wal.Open(next.Data, wal.Options{Logger: log})
	if err != nil {
		return err
	}
	for i, machine := range machines {
		err = errors.Join(err, writeFirst(&next, i, store, machine))
	}
	if err = errors.Join(err, store.Close()); err != nil {
		return err
	}
	return os.Rename(next.Data, r.Data)
}

func writeFirst(cfg *Config, group int, store *wal.Store, machine *kv.Store) error {
	disk, err := openDisk(cfg, group, store)
	if err != nil {
		return err
	}
	node, err := cfg.proto.NewReplica(smr.ReplicaConfig{ID: cfg.ID,
		Members: []smr.Member{{ID: cfg.ID, Address: cfg.address()}}, Machine: machine})
	if err != nil {
		return err
	}
	env := newEnv(disk)
	node.Start(env, nil)
	var ops []host.Op
	for _, e := range env.Out {
		if refused, ok := e.Msg.(smr.Refused); ok && e.Kind == protocol.KindSend {
			return errors.New(refused.Reason)
		}
		if !e.Kind.Durable() {
			continue
		}
		op := host.Op{Kind: e.Kind, Index: e.Index, Key: e.Key, Value: e.Value}
		if e.Kind == protocol.KindAppend {
			if op.Value, err = cfg.proto.Codec.Append(nil, e.Msg); err != nil {
				return err
			}
		}
		ops = append(ops, op)
	}
	done := make(chan error, 1)
	disk.Commit(ops, func(err error) { done <- err })
	return <-done
}

// address returns where others reach the replica.
func (c *Config) address() string {
	for _, m := range c.Members {
		if m.ID == c.ID {
			return m.Address
		}
	}
	if c.Advertise != "" {
		return c.Advertise
	}
	return c.Listen
}

// newFile is a file that takes the place of another one, which stays under another name.
type newFile struct {
	name, old string
	content   any
}

// newFiles returns the files of the new group. Names in them stay relative.
func (r *Recovery) newFiles(cfg *Config) ([]newFile, error) {
	members := []Member{{cfg.ID, cfg.address()}}
	c := &Config{}
	if err := configfile.Read(r.Config, c, c.check); err != nil {
		return nil, err
	}
	c.Recovery, c.Members, c.Join, c.Data = r.Recovery, members, false, c.Data+"."+r.Recovery
	if c.Leader != c.ID {
		c.Leader = 0
	}
	own := newFile{r.Config, r.OldConfig, c}
	if r.Client == "" {
		return []newFile{own}, nil
	}
	client := &ClientConfig{}
	if err := configfile.Read(r.Client, client, client.Check); err != nil {
		return nil, err
	}
	if theirs, ours := clusterName(client.Cluster, client.Protocol, "", client.Routing),
		clusterName(c.Cluster, c.Protocol, "", c.Routing); theirs != ours {
		return nil, fmt.Errorf("%s: it is of %s, and the replica of %s", r.Client, theirs, ours)
	}
	client.Recovery, client.Members = r.Recovery, members
	// The replica's file comes last: as long as it is the old one, all of it can be done again.
	return []newFile{{r.Client, r.OldClient, client}, own}, nil
}

func (f newFile) replace() error {
	next := filepath.Join(filepath.Dir(f.name), "."+filepath.Base(f.name)+".new")
	if err := configfile.Write(next, f.content); err != nil {
		return err
	}
	if err := os.Link(f.name, f.old); err != nil {
		return err
	}
	return os.Rename(next, f.name)
}
