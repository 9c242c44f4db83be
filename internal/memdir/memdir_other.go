//go:build !linux

package memdir

const shared = ""

func freeBytes(string) uint64 { return 0 }
