package kv_test

import (
	"fmt"
	"testing"

	"github.com/foresay/foresay/smr/kv"
)

// BenchmarkStore measures commands and queries on a store of many keys, in the order of the keys.
func BenchmarkStore(b *testing.B) {
	const keys = 100_000
	key := func(n int) []byte { return fmt.Appendf(nil, "key-%08d", n) }
	for _, c := range []struct {
		name string
		of   func(n int) []byte
	}{
		{"put", func(n int) []byte { return kv.Put(key(n), make([]byte, 64)) }},
		{"put leased", func(n int) []byte { return kv.PutLeased(key(n), make([]byte, 64), 1) }},
		{"cas that fails", func(n int) []byte { return kv.CompareAndSet(key(n), 1<<60, nil) }},
		{"get", func(n int) []byte { return kv.Get(key(n)) }},
		{"delete", func(n int) []byte { return kv.Delete(key(n)) }},
		{"scan of 10", func(n int) []byte { return kv.Scan(key(n), nil, 10) }},
		{"changes of 10", func(n int) []byte { return kv.Changes(nil, nil, keys-9, 10) }},
		{"keep alive", func(int) []byte { return kv.KeepAlive(1) }},
	} {
		b.Run(c.name, func(b *testing.B) {
			s := kv.New()
			s.Apply(kv.Grant(kv.MaxTTL))
			commands := make([][]byte, keys)
			for n := range commands {
				s.Apply(kv.Put(key(n), make([]byte, 64)))
				commands[n] = c.of(n)
			}
			b.ReportAllocs()
			n := 0
			for b.Loop() {
				s.Apply(commands[n%keys])
				n++
			}
		})
	}
}
