package wal

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strconv"
	"strings"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// Pebble reads the logs that it finds. If the newest is not there, nothing tells, and what it alone
// had is lost without an error. So the file NEWEST says which log of the database was begun last:
// it is durable before anything is written to that log, and after the log's name is. When Pebble
// opens a directory it can be done with all logs before it begins another; then NEWEST says 0
// before the newest goes.
const (
	newestName = "NEWEST"
	newestTemp = "NEWEST.new"
)

const newestMagic = "foresay-wal log "

func encodeNewest(number uint64) string {
	text := fmt.Sprintf("%s%d\n", newestMagic, number)
	return fmt.Sprintf("%scrc %08x\n", text, checksum(text))
}

func decodeNewest(text string) (uint64, error) {
	first, _, _ := strings.Cut(text, "\n")
	digits, ok := strings.CutPrefix(first, newestMagic)
	number, err := strconv.ParseUint(digits, 10, 64)
	if !ok || err != nil || text != encodeNewest(number) {
		return 0, errors.New("its checksum or form is wrong")
	}
	return number, nil
}

// logNumber returns the number of a log of the database, by the file's name.
func logNumber(name string) (uint64, bool) {
	digits, ok := strings.CutSuffix(name, ".log")
	number, err := strconv.ParseUint(digits, 10, 64)
	return number, ok && err == nil
}

// logOf returns the number of a file that is a log of the database.
func (s *Store) logOf(file string) (uint64, bool) {
	disk := s.opts.FS
	if disk.PathDir(file) != disk.PathJoin(s.dir, databaseName) {
		return 0, false
	}
	return logNumber(disk.PathBase(file))
}

// noteNewest is called with each file that was created, before its creator has it.
func (s *Store) noteNewest(file string) error {
	number, ok := s.logOf(file)
	if !ok {
		return nil
	}
	s.naming.Lock()
	defer s.naming.Unlock()
	if err := syncDirectory(s.opts.FS, s.opts.FS.PathDir(file)); err != nil {
		return err
	}
	return s.writeNewest(number)
}

// noteRemoval is called with each file that is removed, before it is.
func (s *Store) noteRemoval(file string) error {
	number, ok := s.logOf(file)
	if !ok {
		return nil
	}
	s.naming.Lock()
	defer s.naming.Unlock()
	if number != s.newest {
		return nil
	}
	return s.writeNewest(0)
}

// writeNewest is called with naming locked.
func (s *Store) writeNewest(number uint64) error {
	disk := s.opts.FS
	temp := disk.PathJoin(s.dir, newestTemp)
	f, err := disk.Create(temp, vfs.WriteCategoryUnspecified)
	if err != nil {
		return err
	}
	_, err = io.WriteString(f, encodeNewest(number))
	if err == nil {
		err = f.Sync()
	}
	if err := errors.Join(err, f.Close()); err != nil {
		return err
	}
	if err := disk.Rename(temp, disk.PathJoin(s.dir, newestName)); err != nil {
		return err
	}
	s.newest = number
	return syncDirectory(disk, s.dir)
}

// checkNewest returns an error if the log is not there that was begun last. Directories of earlier
// programs need not know which that is.
func (s *Store) checkNewest(database string) error {
	name := s.fs.PathJoin(s.dir, newestName)
	content, err := s.readFile(name)
	if errors.Is(err, fs.ErrNotExist) {
		if s.version < namedVersion {
			return nil
		}
		return &DamageError{File: name, Problem: "missing"}
	}
	if err != nil {
		return err
	}
	number, err := decodeNewest(string(content))
	if err != nil {
		return &DamageError{File: name, Problem: err.Error()}
	}
	s.naming.Lock()
	s.newest = number
	s.naming.Unlock()
	if number == 0 {
		return nil
	}
	names, err := s.fs.List(database)
	if err != nil {
		return s.incomplete(database, err)
	}
	for _, file := range names {
		if n, ok := logNumber(file); ok && n == number {
			return nil
		}
	}
	return &DamageError{File: s.fs.PathJoin(database, fmt.Sprintf("%06d.log", number)),
		Problem: "missing, though it was written to last"}
}

// A DamageError says that a directory does not have all that was acknowledged.
type DamageError struct {
	File    string
	Problem string
}

// Error says what to do.
func (e *DamageError) Error() string {
	return fmt.Sprintf("%s: %s: what this disk has promised is not all there any more. An older copy has not all of it "+
		"either, so do not restore one: "+
		"replace the node by a new one, with an empty directory and another identity", e.File, e.Problem)
}
