// Package rows is how benchmarks keep rows under keys: as JSON, read and changed by a workload.Tx,
// and made up where a store was never loaded with them.
package rows

import (
	"context"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"strconv"

	"github.com/foresay/foresay/workload"
)

// Find reads a row that may be missing.
func Find[R any](ctx context.Context, tx workload.Tx, key string) (row R, ok bool, err error) {
	value, ok, err := tx.Get(ctx, key)
	if err != nil || !ok {
		return row, false, err
	}
	if err := json.Unmarshal(value, &row); err != nil {
		return row, false, fmt.Errorf("workload: %s: the value is no %T: %w", key, row, err)
	}
	return row, true, nil
}

// Get reads a row that has to be there.
func Get[R any](ctx context.Context, tx workload.Tx, key string) (row R, err error) {
	row, ok, err := Find[R](ctx, tx, key)
	if err == nil && !ok {
		err = fmt.Errorf("workload: %s is missing", key)
	}
	return row, err
}

// Put writes a row.
func Put(tx workload.Tx, key string, row any) error { return tx.Put(key, Encode(row)) }

// Change reads a row, changes it, and writes it.
func Change[R any](ctx context.Context, tx workload.Tx, key string, how func(row *R)) (row R, err error) {
	if row, err = Get[R](ctx, tx, key); err == nil {
		how(&row)
		err = Put(tx, key, row)
	}
	return row, err
}

// Absent returns an error if there is a row.
func Absent(ctx context.Context, tx workload.Tx, key string) error {
	_, ok, err := tx.Get(ctx, key)
	if err == nil && ok {
		err = Wrong(key, "is there, and should not be yet")
	}
	return err
}

// Wrong returns an error that says what does not agree.
func Wrong(key, format string, args ...any) error {
	return fmt.Errorf("workload: %s: "+format, append([]any{key}, args...)...)
}

// Encode returns a row's value.
func Encode(row any) []byte {
	b, err := json.Marshal(row)
	if err != nil {
		panic(fmt.Sprintf("workload: encode %T: %v", row, err)) // rows are of plain types
	}
	return b
}

// Number reads a number of a key. There is one way to write it: 7 is one, 07 and +7 are not.
func Number(s string) (n int, ok bool) {
	n, err := strconv.Atoi(s)
	return n, err == nil && s[0] >= '0' && s[0] <= '9' && (s[0] != '0' || s == "0")
}

// Chance returns numbers that depend on what they are for, and on nothing else.
func Chance(kind string, n ...int) *rand.Rand {
	h := fnv.New64a()
	fmt.Fprint(h, kind, n)
	return rand.New(rand.NewPCG(h.Sum64(), 0))
}

// Text returns between so many characters.
func Text(r *rand.Rand, least, most int) string {
	const letters = "abcdefghijklmnopqrstuvwxyz0123456789"
	b := make([]byte, least+r.IntN(most-least+1))
	for i := range b {
		b[i] = letters[r.IntN(len(letters))]
	}
	return string(b)
}
