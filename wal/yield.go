package wal

import (
	"sync/atomic"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// The database flushes its tables in memory and merges its files as fast as it can: every few
// seconds a processor and the disk are busy with that for a second or so, and commits are slow.
// Nobody waits for the work itself, unless it falls behind. So its writes pause: it takes a small
// share of a processor, for longer.
const (
	// yieldShare is how many times longer than the work a pause is.
	yieldShare = 7
	// yieldAfter is how much work there is between two pauses.
	yieldAfter = time.Millisecond
	// yieldMost bounds a pause: what counts as work may have been a wait for a processor.
	yieldMost = 50 * time.Millisecond
	// yieldLook is how often the database is asked how far behind the work is.
	yieldLook = 50 * time.Millisecond

	// unhurriedTables is how many tables in memory there may be before flushes hurry: one takes
	// writes, one is being flushed. Writes stop at MemTableStopWritesThreshold.
	unhurriedTables = 2
	// unhurriedLevels is how many levels of flushed files there may be before merges hurry. Pebble
	// merges from half as many on, and stops writes at four times as many; readers look into each.
	// Each further level halves the pauses.
	unhurriedLevels = compactTables
)

// Pebble's names for what it writes in the background.
const (
	flushCategory vfs.DiskWriteCategory = "pebble-memtable-flush"
	mergeCategory vfs.DiskWriteCategory = "pebble-compaction"
	largeCategory vfs.DiskWriteCategory = "pebble-blob-file-rewrite"
)

// yields reports whether what is written is background work.
func yields(category vfs.DiskWriteCategory) bool {
	return category == flushCategory || category == mergeCategory || category == largeCategory
}

// backlog is how far behind the background work is.
type backlog struct {
	tables int64 // in memory
	levels int32 // of flushed files
}

// yielding says how long background work pauses. The zero value has it not pause.
type yielding struct {
	behind       atomic.Pointer[func() backlog] // nil: there are no pauses
	looked       atomic.Int64                   // when that was asked last, Unix time in nanoseconds
	flush, merge atomic.Int32                   // how many times longer than its work a pause is
}

// begin has the work of a database pause.
func (y *yielding) begin(db *pebble.DB) {
	behind := func() backlog {
		m := db.Metrics()
		return backlog{tables: m.MemTable.Count, levels: m.Levels[0].Sublevels}
	}
	y.behind.Store(&behind)
}

// end has it pause no more.
func (y *yielding) end() { y.behind.Store(nil) }

// share returns how many times longer than its work a pause is.
func (y *yielding) share(category vfs.DiskWriteCategory) int {
	behind := y.behind.Load()
	if behind == nil {
		return 0
	}
	now, last := time.Now().UnixNano(), y.looked.Load()
	if now-last >= int64(yieldLook) && y.looked.CompareAndSwap(last, now) {
		b := (*behind)()
		y.flush.Store(yieldShare)
		if b.tables > unhurriedTables {
			y.flush.Store(0)
		}
		y.merge.Store(yieldShare >> max(b.levels-unhurriedLevels, 0))
	}
	if category == flushCategory {
		return int(y.flush.Load())
	}
	return int(y.merge.Load())
}

// A yieldingFile is written to by background work.
type yieldingFile struct {
	vfs.File
	yielding *yielding
	category vfs.DiskWriteCategory
	since    time.Time // when the work after the last pause began
}

func (f *yieldingFile) Write(p []byte) (int, error) {
	n, err := f.File.Write(p)
	if worked := time.Since(f.since); worked >= yieldAfter {
		if pause := time.Duration(f.yielding.share(f.category)) * worked; pause > 0 {
			time.Sleep(min(pause, yieldMost))
		}
		f.since = time.Now()
	}
	return n, err
}
