package wal

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"path/filepath"
	"sync"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// segments is the alternative to Pebble's log that DESIGN.md tells of: records of all nodes in
// files of 16 MiB, one after the other, each with a checksum, its length, its node and its index.
// What gathers is written and synced at once. It has the least that such a log could have, for
// measuring: it knows no keys, does not read, and drops a file when a newer one is full, whether or
// not its records are truncated.
type segments struct {
	fs   vfs.FS
	dir  string
	file vfs.File
	next int
	size int

	mu      sync.Mutex
	work    *sync.Cond
	waiting []func(error)
	buf     []byte
	closed  bool
	ended   chan struct{}
}

const segmentBytes = 16 << 20

func newSegmentCommitter(fs vfs.FS, dir string, _ int) (committer, error) {
	s := &segments{fs: fs, dir: dir, ended: make(chan struct{})}
	s.work = sync.NewCond(&s.mu)
	if err := s.roll(); err != nil {
		return nil, err
	}
	go s.run()
	return s, nil
}

func (s *segments) name(number int) string {
	return filepath.Join(s.dir, fmt.Sprintf("%06d.seg", number))
}

// roll begins a file. From the third on it takes the place of the oldest one, so that its blocks
// are on the disk already.
func (s *segments) roll() (err error) {
	if s.file != nil {
		if err := s.file.Close(); err != nil {
			return err
		}
	}
	s.next, s.size = s.next+1, 0
	if s.next > 2 {
		s.file, err = s.fs.ReuseForWrite(s.name(s.next-2), s.name(s.next), vfs.WriteCategoryUnspecified)
	} else if s.file, err = s.fs.Create(s.name(s.next), vfs.WriteCategoryUnspecified); err == nil {
		err = s.file.Preallocate(0, segmentBytes)
	}
	if err != nil {
		return err
	}
	dir, err := s.fs.OpenDir(s.dir)
	if err != nil {
		return err
	}
	if err := dir.Sync(); err != nil {
		return err
	}
	return dir.Close()
}

func (s *segments) commit(node int, index uint64, record []byte, done func(error)) {
	s.mu.Lock()
	at := len(s.buf)
	s.buf = append(s.buf, make([]byte, 8)...)
	s.buf = binary.AppendUvarint(s.buf, uint64(node))
	s.buf = binary.AppendUvarint(s.buf, index)
	s.buf = append(s.buf, record...)
	binary.LittleEndian.PutUint32(s.buf[at+4:], uint32(len(s.buf)-at-8))
	binary.LittleEndian.PutUint32(s.buf[at:], crc32.Checksum(s.buf[at+4:], crc32.MakeTable(crc32.Castagnoli)))
	s.waiting = append(s.waiting, done)
	s.mu.Unlock()
	s.work.Signal()
}

func (s *segments) run() {
	defer close(s.ended)
	var spare []byte
	for {
		s.mu.Lock()
		for len(s.waiting) == 0 && !s.closed {
			s.work.Wait()
		}
		waiting, buf := s.waiting, s.buf
		s.waiting, s.buf = nil, spare[:0]
		s.mu.Unlock()
		if len(waiting) == 0 {
			return
		}
		err := s.write(buf)
		spare = buf
		for _, done := range waiting {
			done(err)
		}
	}
}

func (s *segments) write(buf []byte) error {
	if s.size+len(buf) > segmentBytes {
		if err := s.roll(); err != nil {
			return err
		}
	}
	s.size += len(buf)
	if _, err := s.file.Write(buf); err != nil {
		return err
	}
	return s.file.SyncData()
}

func (s *segments) Close() error {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.work.Signal()
	<-s.ended
	return s.file.Close()
}
