package wal

import (
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"hash/crc32"
	"strconv"
	"strings"
)

// formatVersion is the version of the directory's layout: this file's, layout.go's, and the
// database's format. In version 1 the database has no files of large values, and before
// namedVersion there need not be a file NEWEST; they are read too, and are of this version from
// then on.
const (
	formatVersion   = 3
	namedVersion    = 3
	earliestVersion = 1
)

// formatName is the file that says what a directory is, formatTemp what it is written as before it
// is whole. The former is there if and only if the directory was made to the end.
const (
	formatName = "FORESAY"
	formatTemp = "FORESAY.new"
)

// An ID is the identity of a disk. Two directories that were made separately have different ones.
type ID [16]byte

// String returns the identity in hexadecimal.
func (id ID) String() string { return hex.EncodeToString(id[:]) }

func newID() ID {
	var id ID
	_, _ = rand.Read(id[:]) // it never fails
	return id
}

// A FormatError says that a directory has a format that this program does not know.
type FormatError struct {
	File    string
	Version uint64
}

// Error says what to do.
func (e *FormatError) Error() string {
	return fmt.Sprintf("%s: the directory has format version %d, and this program knows %d to %d only: run the program "+
		"that wrote it, or one made for both",
		e.File, e.Version, earliestVersion, formatVersion)
}

// A foreignError says that a file is not that of a store.
type foreignError struct{ file, begin string }

func (e *foreignError) Error() string {
	return fmt.Sprintf("%s: not the format file of a Foresay log: it begins with %s", e.file, e.begin)
}

const formatMagic = "foresay-wal "

// encodeFormat returns the content of the format file: three lines of text, the last with a
// checksum of the others.
func encodeFormat(id ID, version uint64) []byte {
	text := fmt.Sprintf("%s%d\nid %s\n", formatMagic, version, id)
	return fmt.Appendf(nil, "%scrc %08x\n", text, checksum(text))
}

func checksum(text string) uint32 {
	return crc32.Checksum([]byte(text), crc32.MakeTable(crc32.Castagnoli))
}

// decodeFormat reads it. The version comes first and has its own error, as the rest may be
// different then.
func decodeFormat(file string, content []byte) (id ID, version uint64, err error) {
	text := string(content)
	first, _, whole := strings.Cut(text, "\n")
	number, ok := strings.CutPrefix(first, formatMagic)
	version, err = strconv.ParseUint(number, 10, 64)
	if !ok || !whole || err != nil {
		return ID{}, 0, &foreignError{file, fmt.Sprintf("%.40q", text)}
	}
	if version < earliestVersion || version > formatVersion {
		return ID{}, version, &FormatError{File: file, Version: version}
	}
	if len(text) == len(encodeFormat(id, version)) {
		digits := strings.TrimPrefix(text[len(first)+1:], "id ")[:hex.EncodedLen(len(id))]
		if _, err := hex.Decode(id[:], []byte(digits)); err == nil && text == string(encodeFormat(id, version)) {
			return id, version, nil
		}
	}
	return ID{}, version, &DamageError{File: file, Problem: "its checksum or form is wrong"}
}
