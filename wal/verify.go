package wal

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"strings"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// Pebble takes the first chunk of a log or MANIFEST that is not valid for the end, as a torn write
// leaves one, unless a later block of 32 KiB of a log says otherwise. That loses what follows a
// damaged chunk without an error. So before Pebble reads them, verify looks for what cannot stand
// behind a torn write.

// chunkBlockBytes is what both files are divided into. No chunk crosses a block's end.
const chunkBlockBytes = 32 << 10

// A chunk is a checksum of 4 bytes, the payload's length in 2, the type in 1, in a log of today's
// format 4 of the log's number and 8 of an offset up to which the log was durable when the chunk
// was written, and the payload.
const (
	manifestHeaderBytes = 7
	logHeaderBytes      = 19

	manifestFull, manifestFirst, manifestLast = 1, 2, 4
	logFull, logLast                          = 9, 12
)

// chunks is a file that is verified.
type chunks struct {
	content []byte
	number  uint32 // of a log
	isLog   bool
}

// at returns the length of the valid chunk at an offset, or 0.
func (c chunks) at(offset int) int {
	block := c.content[offset:min(len(c.content), offset-offset%chunkBlockBytes+chunkBlockBytes)]
	header, from, to := manifestHeaderBytes, byte(manifestFull), byte(manifestLast)
	if c.isLog {
		header, from, to = logHeaderBytes, logFull, logLast
	}
	if len(block) < header || block[6] < from || block[6] > to || c.isLog &&
		binary.LittleEndian.Uint32(block[7:]) != c.number {
		return 0
	}
	end := header + int(binary.LittleEndian.Uint16(block[4:]))
	if end > len(block) {
		return 0
	}
	sum := crc32.Checksum(block[6:end], crc32.MakeTable(crc32.Castagnoli))
	if binary.LittleEndian.Uint32(block) != (sum>>15|sum<<17)+0xa282ead8 {
		return 0
	}
	return end
}

// verify returns the offset of a chunk that was valid once, or -1.
func (c chunks) verify() int {
	end := c.end()
	for offset := end + 1; offset < len(c.content); offset++ {
		if c.at(offset) > 0 && c.vouches(offset, end) {
			return end
		}
	}
	return -1
}

// end returns where the valid chunks end.
func (c chunks) end() int {
	header := manifestHeaderBytes
	if c.isLog {
		header = logHeaderBytes
	}
	offset := 0
	for offset < len(c.content) {
		if left := chunkBlockBytes - offset%chunkBlockBytes; left < header {
			offset += left
			continue
		}
		n := c.at(offset)
		if n == 0 {
			break
		}
		offset += n
	}
	return min(offset, len(c.content))
}

// vouches reports whether a valid chunk can only have been written when what stands at an earlier
// offset was durable. In a log it says so. A record of a MANIFEST is synced before the next one is
// written.
func (c chunks) vouches(chunk, earlier int) bool {
	if c.isLog {
		return binary.LittleEndian.Uint64(c.content[chunk+11:]) > uint64(earlier)
	}
	kind := c.content[chunk+6]
	return kind == manifestFull || kind == manifestFirst
}

// verify reads the database's logs and its MANIFEST, and returns an error if one is damaged.
func (s *Store) verify(dir string) error {
	desc, err := pebble.Peek(dir, s.fs)
	if err != nil {
		return s.incomplete(dir, err)
	}
	if !desc.Exists {
		return nil // pebble.Open says what is missing
	}
	names, err := s.fs.List(dir)
	if err != nil {
		return s.incomplete(dir, err)
	}
	manifest := s.fs.PathBase(desc.ManifestFilename)
	for _, name := range names {
		number, isLog := logNumber(name)
		if !isLog && name != manifest {
			continue
		}
		c := chunks{isLog: isLog, number: uint32(number)}
		file := s.fs.PathJoin(dir, name)
		if c.content, err = s.readFile(file); err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
		if at := c.verify(); at >= 0 {
			return &DamageError{File: file, Problem: fmt.Sprintf("damaged at byte %d, though what follows was written later",
				at)}
		}
	}
	return nil
}

// incomplete returns what an error says with which a database that was made cannot be read: that
// something of it is missing or damaged, most often.
func (s *Store) incomplete(dir string, err error) error {
	manifest := ""
	if desc, failed := pebble.Peek(dir, s.fs); failed == nil {
		manifest = desc.ManifestFilename
	}
	gone := func(file string) bool {
		_, err := s.fs.Stat(file)
		return errors.Is(err, fs.ErrNotExist)
	}
	switch {
	case gone(dir):
		return &DamageError{File: dir, Problem: "missing"}
	case errors.Is(err, pebble.ErrDBDoesNotExist), errors.Is(err, pebble.ErrDBNotPristine):
		return &DamageError{File: dir, Problem: fmt.Sprintf("not whole, a file \"marker.\" is missing (%v)", err)}
	case manifest != "" && gone(manifest):
		return &DamageError{File: manifest, Problem: "missing"}
	case manifest != "" && pebble.IsCorruptionError(err):
		return &DamageError{File: manifest, Problem: fmt.Sprintf("damaged (%v)", err)}
	case errors.Is(err, fs.ErrNotExist), strings.Contains(err.Error(), otherSize):
		return &DamageError{File: dir, Problem: fmt.Sprintf("not whole (%s)", oneLine(err))}
	}
	return err
}

// otherSize is what Pebble says of a table that does not have the size that the MANIFEST has.
const otherSize = "object size mismatch"

// oneLine returns what an error says that may be several joined ones.
func oneLine(err error) string { return strings.ReplaceAll(err.Error(), "\n", "; ") }

// checkLarge returns an error if a file of large values is missing or has not its size. Pebble
// looks for its tables when it is opened, and for these files when a value is read: then it panics.
func (s *Store) checkLarge(dir string) error {
	for {
		version := s.db.DebugCurrentVersion()
		it, err := s.db.NewIter(nil) // what it sees stays until it is closed, and so do the files
		if err != nil {
			return err
		}
		if s.db.DebugCurrentVersion() != version { // so the iterator may see another one
			if err := it.Close(); err != nil {
				return err
			}
			continue
		}
		for large := range version.BlobFiles.All() {
			name := s.fs.PathJoin(dir, fmt.Sprintf("%06d", uint64(large.Physical.FileNum))+largeSuffix)
			info, failed := s.fs.Stat(name)
			switch {
			case errors.Is(failed, fs.ErrNotExist):
				err = &DamageError{File: name, Problem: "missing"}
			case failed != nil:
				err = failed
			case info.Size() != int64(large.Physical.Size):
				err = &DamageError{File: name, Problem: fmt.Sprintf("damaged: it has %d bytes instead of %d",
					info.Size(), large.Physical.Size)}
			}
			if err != nil {
				break
			}
		}
		return errors.Join(err, it.Close())
	}
}

func (s *Store) readFile(name string) ([]byte, error) { return readAll(s.fs, name) }

func readAll(disk vfs.FS, name string) ([]byte, error) {
	f, err := disk.Open(name)
	if err != nil {
		return nil, err
	}
	content, err := io.ReadAll(f)
	return content, errors.Join(err, f.Close())
}
