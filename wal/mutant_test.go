package wal

import (
	"encoding/binary"
	"hash/crc32"
	"io"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// Each planted fault must be found by the enumeration that finds nothing without it.
func TestCrashFindsPlantedFaults(t *testing.T) {
	for _, mutant := range []struct {
		name  string
		plant func(*enumeration)
	}{
		{"acknowledge before the sync", func(e *enumeration) { e.opts.NoSync = true }},
		{"no directory sync", func(e *enumeration) { e.disk = func(fs vfs.FS) vfs.FS { return noDirSyncFS{fs} } }},
		{"no sync of the format file", func(e *enumeration) {
			e.disk = func(fs vfs.FS) vfs.FS {
				return noFormatSyncFS{fs}
			}
		}},
		{"no checksum", func(e *enumeration) { e.again = func(fs vfs.FS) vfs.FS { return noChecksumFS{fs} } }},
		{"batches that are not atomic", func(e *enumeration) { e.plant = plantPieces }},
		{"batches in another order", func(e *enumeration) { e.plant = plantReversed }},
	} {
		t.Run(mutant.name, func(t *testing.T) {
			t.Parallel()
			e := &enumeration{nodes: 3, batches: 120, maxBytes: 1500, seeds: 3}
			mutant.plant(e)
			err := e.run(1)
			if err == nil {
				t.Fatalf("%d crashes did not show it", e.crashed)
			}
			t.Logf("found: %v", err)
		})
	}
}

type noDirSyncFS struct{ vfs.FS }

func (fs noDirSyncFS) OpenDir(name string) (vfs.File, error) {
	f, err := fs.FS.OpenDir(name)
	return noSyncFile{f}, err
}

type noFormatSyncFS struct{ vfs.FS }

func (fs noFormatSyncFS) Create(name string, c vfs.DiskWriteCategory) (vfs.File, error) {
	f, err := fs.FS.Create(name, c)
	if strings.HasSuffix(name, formatTemp) {
		f = noSyncFile{f}
	}
	return f, err
}

type noSyncFile struct{ vfs.File }

func (noSyncFile) Sync() error { return nil }

// noChecksumFS makes the database's log look as if it had no checksums: what is read has the right
// ones, whatever it is.
type noChecksumFS struct{ vfs.FS }

func (fs noChecksumFS) Open(name string, opts ...vfs.OpenOption) (vfs.File, error) {
	f, err := fs.FS.Open(name, opts...)
	if err != nil || !strings.HasSuffix(name, ".log") {
		return f, err
	}
	content, err := io.ReadAll(f)
	if err != nil {
		return nil, err
	}
	if err := f.Close(); err != nil {
		return nil, err
	}
	repaired, err := fs.FS.OpenReadWrite(name, vfs.WriteCategoryUnspecified)
	if err != nil {
		return nil, err
	}
	repairChunks(content)
	_, err = repaired.WriteAt(content, 0)
	return repaired, err
}

// repairChunks writes the right checksums into a log of Pebble's: blocks of 32 KiB, in them chunks
// of a header and a payload. A header is a checksum of 4 bytes, the payload's length in 2, the type
// in 1, and then more that the type tells.
func repairChunks(log []byte) {
	const blockBytes = 32 << 10
	for len(log) > 0 {
		block := log[:min(len(log), blockBytes)]
		log = log[len(block):]
		for len(block) >= 7 {
			header := 0
			switch kind := block[6]; {
			case kind >= 1 && kind <= 4:
				header = 7
			case kind >= 5 && kind <= 8:
				header = 11
			case kind >= 9 && kind <= 12:
				header = 19
			}
			end := header + int(binary.LittleEndian.Uint16(block[4:]))
			if header == 0 || end > len(block) {
				break
			}
			c := crc32.Checksum(block[6:end], crc32.MakeTable(crc32.Castagnoli))
			binary.LittleEndian.PutUint32(block, (c>>15|c<<17)+0xa282ead8)
			block = block[end:]
		}
	}
}

// plantPieces writes the operations of a group one by one.
func plantPieces(s *Store) {
	s.write = func(group []*commit) error {
		for _, c := range group {
			for i := range c.ops {
				piece := *c
				piece.ops = c.ops[i : i+1]
				if err := s.apply([]*commit{&piece}, pebble.NoSync); err != nil {
					return err
				}
			}
		}
		return s.db.LogData(nil, pebble.Sync)
	}
}

// plantReversed writes the commits of a group from the last to the first, and only then as they
// should be.
func plantReversed(s *Store) {
	s.write = func(group []*commit) error {
		for i := range group {
			if err := s.apply(group[len(group)-1-i:len(group)-i], pebble.NoSync); err != nil {
				return err
			}
		}
		return s.apply(group, pebble.Sync)
	}
}
