package wal

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// ErrClosed is the error of what is asked of a closed store.
var ErrClosed = errors.New("wal: the store is closed")

// Options say how a store works. The zero value is durable, on the machine's file system.
type Options struct {
	// FS is where the directory is, nil for the machine's file systems.
	FS vfs.FS
	// NoSync leaves out the syncs: a commit is done when it is written, in part to a buffer of the
	// process. Nothing is durable, also when the process alone ends, but for what Close or time has
	// written. It is for measuring what the disk costs, and for tests.
	NoSync bool
	// Delay is how long the store waits before it writes a group, so that more gathers; 0 is not at
	// all, or a fraction of a millisecond while many write at once.
	Delay time.Duration
	// MaxPendingBytes is how much may wait for the disk before Commit blocks; 0 is 16 MiB. A single
	// larger batch is let through.
	MaxPendingBytes int
	// CacheBytes is the size of the database's cache, of blocks of its files; 0 is 16 MiB.
	CacheBytes int64
	// ReadCacheBytes is about how much is kept of what [Keys.Get] returned, over all nodes, so that
	// it need not be looked up again; 0 is 32 MiB.
	ReadCacheBytes int
	// MemTableBytes is how much of what was written last is also kept in memory before it goes into
	// sorted files; 0 is 16 MiB. Truncated records that never left it cost nothing more.
	MemTableBytes uint64
	// Logger gets what the database reports: errors, and at debug level flushes and compactions.
	// Nil is silence.
	Logger *slog.Logger
}

const (
	defaultPendingBytes  = 16 << 20
	defaultCacheBytes    = 16 << 20
	defaultReadCache     = 32 << 20
	defaultMemTableBytes = 16 << 20
	minMemTableBytes     = 32 << 10
)

// validate fills in the defaults.
func (o Options) validate() (Options, error) {
	switch {
	case o.Delay < 0:
		return o, fmt.Errorf("wal: Options.Delay is negative: %v", o.Delay)
	case o.MaxPendingBytes < 0:
		return o, fmt.Errorf("wal: Options.MaxPendingBytes is negative: %d", o.MaxPendingBytes)
	case o.CacheBytes < 0:
		return o, fmt.Errorf("wal: Options.CacheBytes is negative: %d", o.CacheBytes)
	case o.ReadCacheBytes < 0:
		return o, fmt.Errorf("wal: Options.ReadCacheBytes is negative: %d", o.ReadCacheBytes)
	case o.MemTableBytes != 0 && o.MemTableBytes < minMemTableBytes:
		return o, fmt.Errorf("wal: Options.MemTableBytes is %d, less than %d", o.MemTableBytes, minMemTableBytes)
	}
	if o.FS == nil {
		o.FS = vfs.Default
	}
	if o.MaxPendingBytes == 0 {
		o.MaxPendingBytes = defaultPendingBytes
	}
	if o.ReadCacheBytes == 0 {
		o.ReadCacheBytes = defaultReadCache
	}
	if o.CacheBytes == 0 {
		o.CacheBytes = defaultCacheBytes
	}
	if o.MemTableBytes == 0 {
		o.MemTableBytes = defaultMemTableBytes
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return o, nil
}

// A Store is an open directory. Its methods may be called concurrently.
type Store struct {
	dir     string
	opts    Options
	id      ID
	version uint64 // of the format file when the store was opened

	naming sync.Mutex // guards logs and their file
	logs   []uint64   // what the file NEWEST says: those of the database
	fs     *guardFS
	db     *pebble.DB
	lock   io.Closer

	write func([]*commit) error // puts a group on the disk: writeGroup, unless a test plants a fault

	read func(key []byte) ([]byte, error) // looks a key up in the database: get, unless a test looks on

	opening sync.Mutex // taken before gate
	nodes   map[string]*Node

	nodeCount atomic.Int64 // of nodes

	gate    sync.RWMutex // guards shut; taken alone
	shut    bool         // no more reads
	readers sync.WaitGroup

	ended    chan struct{} // closed by wake
	failed   chan struct{} // closed when err is set
	finished chan struct{} // closed when the finisher has ended

	mu   sync.Mutex
	work *sync.Cond // for the writer: the queue grew, or there is an end
	// for the finisher and Close: a group was written, the writer's state changed, or there is an
	// end
	finish      *sync.Cond
	room        *sync.Cond // for Commit: the queue shrank, or there is an end
	queue       []*commit
	queuedBytes int
	// the writer is to take the queue, as somebody waits for some of it. Invariant: then the queue
	// is not empty.
	hurried   bool
	lastGroup int       // how many commits the last group had
	later     bool      // hurried is about to be set by a timer
	writing   []*commit // taken from the queue
	written   []*commit // durable
	closed    bool
	err       error // what stopped the store
	woken     bool  // ended is closed
}

// Open opens a directory, and makes it if it is not there. A directory has one user at a time: a
// second Open, by another process or this one, fails.
func Open(dir string, opts Options) (*Store, error) { return open(dir, opts, nil) }

// open opens a directory with a store that plant has changed, if it is given.
func open(dir string, opts Options, plant func(*Store)) (*Store, error) {
	opts, err := opts.validate()
	if err != nil {
		return nil, err
	}
	s := &Store{dir: dir, opts: opts, nodes: make(map[string]*Node), ended: make(chan struct{}),
		failed: make(chan struct{}), finished: make(chan struct{})}
	s.work, s.finish, s.room = sync.NewCond(&s.mu), sync.NewCond(&s.mu), sync.NewCond(&s.mu)
	if opts.FS == vfs.Default {
		if s.dir, err = filepath.Abs(dir); err != nil {
			return nil, fmt.Errorf("wal: open %s: %w", dir, err)
		}
	}
	s.fs = newGuardFS(opts.FS, s.fail)
	s.fs.created, s.fs.removes = s.noteNewest, s.noteRemoval
	s.write, s.read = s.writeGroup, s.get
	if plant != nil {
		plant(s)
	}
	if err := s.start(); err != nil {
		return nil, err
	}
	go s.runWriter()
	go s.runFinisher()
	return s, nil
}

// OpenMemory returns a new store that forgets everything when it is closed. A zero Options.FS is
// memory; commits are done at once.
func OpenMemory(opts Options) (*Store, error) {
	if opts.FS == nil {
		opts.FS = vfs.NewMem()
	}
	opts.NoSync = true
	return Open("memory", opts)
}

// Identity returns the disk's identity: random, made when the directory was, and never changed. A
// node that finds another identity than the one that it was set up with has lost its disk.
func (s *Store) Identity() ID { return s.id }

// Err returns the error that stopped the store, nil while it works.
func (s *Store) Err() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err
}

// Names returns the names of the nodes that wrote to the store, in no particular order.
func (s *Store) Names() ([]string, error) {
	it, err := s.newIter(nil, nil)
	if err != nil {
		return nil, err
	}
	var names []string
	for it.First(); it.Valid(); {
		name, err := entryName(it.Key())
		if err != nil {
			return nil, s.fail(errors.Join(err, it.Close()))
		}
		names = append(names, name)
		it.SeekGE(prefixEnd(entryPrefix(name, kindRecord)))
	}
	if err := it.Close(); err != nil {
		return nil, s.fail(err)
	}
	return names, nil
}

// Close waits until all commits are done, and closes the store. Later Commits get [ErrClosed]. It
// returns the error that stopped the store, if one did; then it does not wait for the disk.
func (s *Store) Close() error {
	s.mu.Lock()
	first := !s.closed
	s.closed = true
	s.wake()
	s.mu.Unlock()
	if !first {
		<-s.finished
		return ErrClosed
	}
	return s.close()
}

// fail stops the store and returns the error that did it, which is the first one.
func (s *Store) fail(err error) error {
	s.mu.Lock()
	if s.err == nil && !errors.Is(err, ErrClosed) {
		close(s.failed)
		_, damaged := errors.AsType[*DamageError](err)
		if !damaged && pebble.IsCorruptionError(err) { // of a file of large values, which Pebble does not name
			err, damaged = &DamageError{File: s.opts.FS.PathJoin(s.dir, databaseName),
				Problem: fmt.Sprintf("a file is damaged (%v)", err)}, true
		}
		if damaged {
			s.err = fmt.Errorf("wal: %s: the store has stopped: %w", s.dir, err)
		} else {
			s.err = fmt.Errorf("wal: %s: the store has stopped, what was acknowledged is safe: mend the disk and open it "+
				"again: %w", s.dir, err)
		}
	}
	failure := s.err
	s.wake()
	s.mu.Unlock()
	if failure == nil {
		return err
	}
	s.fs.stop()
	return failure
}

// wake tells all that wait that the store was closed or failed. The caller holds mu.
func (s *Store) wake() {
	if !s.woken {
		s.woken = true
		close(s.ended)
	}
	s.work.Broadcast()
	s.finish.Broadcast()
	s.room.Broadcast()
}
