package wal

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"slices"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/bloom"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// databaseName is the directory of the database in a store's directory, lockName the file that is
// locked.
const (
	databaseName = "db"
	lockName     = "LOCK"
)

// databaseFormat is Pebble's format. From FormatWALSyncChunks on, its log tells a torn tail from a
// damaged middle; from FormatValueSeparation on, large values have files of their own.
const databaseFormat = pebble.FormatValueSeparation

// filterBits is how many bits of a filter each key has: of a hundred files without a key that is
// looked up one is read.
const filterBits = 10

// reservedTables is how many tables in memory Pebble has as a rule, one that takes writes and one
// that is flushed or kept to be used again. It takes the room for them from its cache: one that was
// no larger than these had none left for blocks.
const reservedTables = 2

// separatedShare is how many values of the least size that is written to files of its own, instead
// of being copied by each compaction, fill the table in memory: with the default, 4 KiB.
const separatedShare = 4096

// separation says which values the database writes to files of their own, and when it writes these
// anew: once half of what they hold is of nobody any more. Most files go as a whole before that,
// since records are truncated, and parts of a snapshot replaced, in the order in which they came.
// Values of one table in as many files as that need not be brought together: they are read in order
// by an opening at most.
func (s *Store) separation() pebble.ValueSeparationPolicy {
	return pebble.ValueSeparationPolicy{
		Enabled: true, MinimumSize: max(1, int(s.opts.MemTableBytes/separatedShare)), MaxBlobReferenceDepth: 256,
		RewriteMinimumAge: time.Minute, TargetGarbageRatio: 0.5,
	}
}

// compactTables is how many tables gather before they are written anew as fewer, and minTableBytes
// the least size of one. Most of what a table names is truncated before long, so that each further
// one that is waited for saves work; a look-up passes over most, by their filters.
const (
	compactTables = 8
	minTableBytes = 2 << 20
)

// start opens the directory.
func (s *Store) start() error {
	opened := make(chan error, 1)
	go func() { opened <- s.open() }()
	select {
	case err := <-opened:
		if err != nil && s.lock != nil {
			err = errors.Join(err, s.lock.Close())
		}
		if err != nil {
			return fmt.Errorf("wal: open %s: %w", s.dir, err)
		}
		return nil
	case <-s.failed: // and open stands still
		s.abandon()
		return s.Err()
	}
}

// abandon gives the directory free, after the store has failed, as soon as nothing can change it
// any more. What the guard holds up stays for ever.
func (s *Store) abandon() {
	s.fs.whenIdle(func() {
		if s.lock != nil {
			if err := s.lock.Close(); err != nil {
				s.opts.Logger.Error("wal: unlock", "dir", s.dir, "err", err)
			}
		}
	})
}

// open finds out what the directory is, makes it if it is nothing, and opens the database.
func (s *Store) open() (err error) {
	if err := s.opts.FS.MkdirAll(s.dir, 0o755); err != nil { // not guarded: nothing is there that could be harmed
		return err
	}
	s.lock, err = s.opts.FS.Lock(s.fs.PathJoin(s.dir, lockName))
	if err != nil {
		return fmt.Errorf("the directory is in use, or cannot be locked: %w", err)
	}
	made, err := s.readFormat()
	if err != nil {
		return err
	}
	if !made {
		// A crash may have left the directory there, but not on the disk.
		if err := s.syncAncestors(); err != nil {
			return err
		}
	}
	database := s.fs.PathJoin(s.dir, databaseName)
	if made {
		if err := cmp.Or(s.checkNewest(database), s.verify(database)); err != nil {
			return err
		}
	}
	s.db, err = pebble.Open(database, s.databaseOptions(made))
	if err != nil && made {
		return s.incomplete(database, err)
	}
	if err != nil {
		return err
	}
	if made {
		if err := s.checkLarge(database); err != nil {
			return errors.Join(err, s.db.Close())
		}
	}
	switch {
	case !made:
		err = s.finishMaking()
	case s.version < formatVersion: // the database is of today's format since it was opened
		err = s.writeFormat()
	}
	if err != nil {
		return errors.Join(err, s.db.Close())
	}
	if !s.opts.NoSync { // else nobody waits for the disk
		s.fs.yielding.begin(s.db)
	}
	return nil
}

func (s *Store) databaseOptions(made bool) *pebble.Options {
	o := &pebble.Options{
		FS:                 s.fs,
		FormatMajorVersion: databaseFormat,
		ErrorIfNotExists:   made,
		CacheSize:          s.opts.CacheBytes + reservedTables*int64(s.opts.MemTableBytes),
		MemTableSize:       s.opts.MemTableBytes,
		Logger:             databaseLogger{s},
		// What is appended and truncated again should not leave the table in memory; writers wait
		// for a flush only when it is far behind.
		MemTableStopWritesThreshold: 4,
		L0CompactionThreshold:       compactTables,
		L0StopWritesThreshold:       4 * compactTables,
	}
	// A look-up goes through each file that may have the key, the newest first: flushed ones may all.
	o.Levels[0].FilterPolicy = bloom.FilterPolicy(filterBits)
	o.Levels[len(o.Levels)-1].FilterPolicy = pebble.NoFilterPolicy // what there is, is there in the end
	// Values count, also those in files of their own: with a smaller size a compaction makes a table
	// for every few keys.
	o.TargetFileSizes[0] = max(minTableBytes, 2*int64(s.opts.MemTableBytes))
	o.Experimental.ValueSeparationPolicy = s.separation
	o.EventListener = &pebble.EventListener{
		// A job that fails would be tried again at once, for ever. It stands still, as do those
		// that cannot write.
		BackgroundError: func(err error) {
			s.fail(fmt.Errorf("the database: %w", err))
			select {}
		},
		DataCorruption: func(info pebble.DataCorruptionInfo) {
			s.fail(&DamageError{File: info.Path, Problem: fmt.Sprintf("damaged (%v)", info.Details)})
		},
	}
	return o
}

// readFormat reads the format file, and reports whether it is there.
func (s *Store) readFormat() (made bool, err error) {
	name := s.fs.PathJoin(s.dir, formatName)
	f, err := s.fs.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	content, err := io.ReadAll(io.LimitReader(f, 4096))
	if err := errors.Join(err, f.Close()); err != nil {
		return false, fmt.Errorf("%s: %w", name, err)
	}
	s.id, s.version, err = decodeFormat(name, content)
	if foreign := (*foreignError)(nil); errors.As(err, &foreign) {
		if _, none := s.fs.Stat(s.fs.PathJoin(s.dir, databaseName)); none == nil {
			err = &DamageError{File: name, Problem: "damaged: it begins with " + foreign.begin}
		}
	}
	return true, err
}

// finishMaking writes the format file, the last step of making a directory.
func (s *Store) finishMaking() error {
	name := s.fs.PathJoin(s.dir, formatName)
	names, err := s.Names()
	if err != nil {
		return err
	}
	if len(names) > 0 {
		return &DamageError{File: name, Problem: fmt.Sprintf("missing, but the database has data, of %q and others",
			names[0])}
	}
	s.id = newID()
	return s.writeFormat()
}

// writeFormat writes the format file, in place of one that is there.
func (s *Store) writeFormat() error {
	temp := s.fs.PathJoin(s.dir, formatTemp)
	f, err := s.fs.Create(temp, vfs.WriteCategoryUnspecified)
	if err != nil {
		return err
	}
	_, err = f.Write(encodeFormat(s.id, formatVersion))
	if err == nil {
		err = f.Sync()
	}
	if err := errors.Join(err, f.Close()); err != nil {
		return err
	}
	if err := s.fs.Rename(temp, s.fs.PathJoin(s.dir, formatName)); err != nil {
		return err
	}
	return syncDirectory(s.fs, s.dir)
}

// syncAncestors makes the directory's own entry durable, and those of the directories above it,
// which MkdirAll may have made. One that may not be opened was not made by this process.
func (s *Store) syncAncestors() error {
	for dir := s.dir; ; {
		parent := s.fs.PathDir(dir)
		if parent == dir {
			return nil
		}
		if err := syncDirectory(s.fs, parent); err != nil && !errors.Is(err, fs.ErrPermission) {
			return err
		}
		dir = parent
	}
}

func syncDirectory(disk vfs.FS, dir string) error {
	d, err := disk.OpenDir(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// close ends what open began. The store takes no commits any more.
func (s *Store) close() error {
	<-s.finished
	s.gate.Lock()
	s.shut = true
	s.gate.Unlock()
	s.readers.Wait()
	// The database's Close may need a background job that the guard holds up, before it began or
	// while it goes on.
	if err := s.Err(); err != nil {
		s.abandon()
		return err
	}
	s.fs.yielding.end()
	closed := make(chan error, 1)
	go func() {
		// An empty record vouches for those before it: see verify.
		err := s.db.LogData(nil, pebble.Sync)
		closed <- errors.Join(err, s.db.Close())
	}()
	select {
	case err := <-closed:
		return errors.Join(err, s.lock.Close())
	case <-s.failed:
		s.abandon()
		return s.Err()
	}
}

// enter lets a reader in, who calls s.readers.Done at the end.
func (s *Store) enter() error {
	s.gate.RLock()
	defer s.gate.RUnlock()
	if s.shut {
		return ErrClosed
	}
	s.readers.Add(1)
	return nil
}

// usable tells why nothing more can be asked of the store.
func (s *Store) usable() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err == nil && s.closed {
		return ErrClosed
	}
	return s.err
}

// get returns a copy of an entry's value.
func (s *Store) get(key []byte) ([]byte, error) {
	if err := s.enter(); err != nil {
		return nil, err
	}
	defer s.readers.Done()
	value, closer, err := s.db.Get(key)
	if err != nil {
		return nil, err
	}
	return slices.Clone(value), closer.Close()
}

// An iterator is one of the database that Close waits for.
type iterator struct {
	*pebble.Iterator
	store *Store
}

func (it iterator) Close() error {
	defer it.store.readers.Done()
	return it.Iterator.Close()
}

func (s *Store) newIter(lower, upper []byte) (iterator, error) {
	if err := s.enter(); err != nil {
		return iterator{}, err
	}
	it, err := s.db.NewIter(&pebble.IterOptions{LowerBound: lower, UpperBound: upper})
	if err != nil {
		s.readers.Done()
		return iterator{}, err
	}
	return iterator{it, s}, nil
}

// databaseLogger is where Pebble reports.
type databaseLogger struct{ store *Store }

func (l databaseLogger) Infof(format string, args ...any) {
	if log := l.store.opts.Logger; log.Enabled(context.Background(), slog.LevelDebug) {
		log.Debug(fmt.Sprintf(format, args...))
	}
}

func (l databaseLogger) Errorf(format string, args ...any) {
	l.store.opts.Logger.Error(fmt.Sprintf(format, args...))
}

// Fatalf stops the store. Pebble wants the process to end. It returns nevertheless, so that this is
// the caller's decision: the guarded file system sees to it that nothing is written any more.
func (l databaseLogger) Fatalf(format string, args ...any) {
	l.store.fail(fmt.Errorf("the database: "+format, args...))
}
