package faultfs

import (
	"math/rand/v2"
	"syscall"
)

// FailNth returns a fault that fails one operation of a kind: the nth that comes, from 1 on.
func FailNth(kind Kind, nth int, err error) Fault {
	return func(op Op) error {
		if op.Kind != kind {
			return nil
		}
		nth--
		if nth == 0 {
			return err
		}
		return nil
	}
}

// Full returns a fault that lets so many more bytes be written. Then the disk is full, and only
// frees nothing: no file is made and no byte written.
func Full(roomBytes int) Fault {
	return func(op Op) error {
		switch op.Kind {
		case KindWrite:
			if op.SizeBytes <= roomBytes {
				roomBytes -= op.SizeBytes
				return nil
			}
			short := &ShortError{SizeBytes: roomBytes, Err: syscall.ENOSPC}
			roomBytes = 0
			return short
		case KindCreate, KindMkdir:
			if roomBytes == 0 {
				return syscall.ENOSPC
			}
		default:
		}
		return nil
	}
}

// ShortReads returns a fault with which half of the reads that go through a file in turn give less
// than they were asked for, which is no error. Reads at an offset must give all, and do.
func ShortReads(seed uint64) Fault {
	rnd := rand.New(rand.NewPCG(seed, 0))
	return func(op Op) error {
		if op.Kind != KindRead || op.SizeBytes < 2 || rnd.IntN(2) == 0 {
			return nil
		}
		return &ShortError{SizeBytes: 1 + rnd.IntN(op.SizeBytes-1), Err: syscall.EIO}
	}
}
