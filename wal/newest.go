package wal

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strconv"
	"strings"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// Pebble reads the logs that it finds. If one is not there, the newest or one before it whose table
// is not written yet, nothing tells, and what it alone had is lost without an error. So the file
// NEWEST names the logs that the database has. It names a log before anything is written to that,
// and after the log's name is durable, and no more before Pebble removes the log. Where there is
// none, as when Pebble is done with all of them before it begins another, it says 0. An earlier
// version of the program named the newest log alone.
const (
	newestName = "NEWEST"
	newestTemp = "NEWEST.new"
)

const newestMagic = "foresay-wal log "

func encodeNewest(logs []uint64) string {
	text := newestMagic + strings.Trim(fmt.Sprint(logs), "[]") + "\n"
	if len(logs) == 0 {
		text = newestMagic + "0\n"
	}
	return fmt.Sprintf("%scrc %08x\n", text, checksum(text))
}

func decodeNewest(text string) (logs []uint64, err error) {
	first, _, _ := strings.Cut(text, "\n")
	numbers, ok := strings.CutPrefix(first, newestMagic)
	for digits := range strings.FieldsSeq(numbers) {
		number, err := strconv.ParseUint(digits, 10, 64)
		if ok = ok && err == nil; number > 0 {
			logs = append(logs, number)
		}
	}
	if !ok || text != encodeNewest(logs) {
		return nil, errors.New("its checksum or form is wrong")
	}
	return logs, nil
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
	if slices.Contains(s.logs, number) {
		return nil
	}
	return s.writeNewest(append(slices.Clone(s.logs), number))
}

// noteRemoval is called with each file that is removed, before it is.
func (s *Store) noteRemoval(file string) error {
	number, ok := s.logOf(file)
	if !ok {
		return nil
	}
	s.naming.Lock()
	defer s.naming.Unlock()
	i := slices.Index(s.logs, number)
	if i < 0 {
		return nil
	}
	return s.writeNewest(slices.Delete(slices.Clone(s.logs), i, i+1))
}

// writeNewest is called with naming locked.
func (s *Store) writeNewest(logs []uint64) error {
	disk := s.opts.FS
	temp := disk.PathJoin(s.dir, newestTemp)
	f, err := disk.Create(temp, vfs.WriteCategoryUnspecified)
	if err != nil {
		return err
	}
	_, err = io.WriteString(f, encodeNewest(logs))
	if err == nil {
		err = f.Sync()
	}
	if err := errors.Join(err, f.Close()); err != nil {
		return err
	}
	if err := disk.Rename(temp, disk.PathJoin(s.dir, newestName)); err != nil {
		return err
	}
	s.logs = logs
	return syncDirectory(disk, s.dir)
}

// checkNewest returns an error if a log is not there that the database has. Directories of earlier
// programs need not know which these are.
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
	logs, err := decodeNewest(string(content))
	if err != nil {
		return &DamageError{File: name, Problem: err.Error()}
	}
	s.naming.Lock()
	s.logs = logs
	s.naming.Unlock()
	names, err := s.fs.List(database)
	if err != nil {
		return s.incomplete(database, err)
	}
	for _, number := range logs {
		if !slices.ContainsFunc(names, func(file string) bool {
			n, ok := logNumber(file)
			return ok && n == number
		}) {
			return &DamageError{File: s.fs.PathJoin(database, fmt.Sprintf("%06d.log", number)),
				Problem: "missing, though not all that was written to it is elsewhere"}
		}
	}
	return nil
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
