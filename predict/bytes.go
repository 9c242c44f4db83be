package predict

import (
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Bytes is an amount of memory. In text it is a whole number with one of the
// units B, kB, MB and GB, powers of 1000, or KiB, MiB and GiB, powers of 1024; in
// JSON such a text, or a number of bytes.
type Bytes int64

// String returns the amount in the largest unit that leaves a whole number.
func (b Bytes) String() string {
	for _, u := range units() {
		if b != 0 && int64(b)%u.bytes == 0 {
			return strconv.FormatInt(int64(b)/u.bytes, 10) + u.name
		}
	}
	return strconv.FormatInt(int64(b), 10) + "B"
}

type unit struct {
	name  string
	bytes int64
}

// units are the units, the larger ones first.
func units() []unit {
	return []unit{
		{"GiB", 1 << 30}, {"GB", 1e9}, {"MiB", 1 << 20}, {"MB", 1e6}, {"KiB", 1 << 10}, {"kB", 1e3}, {"B", 1},
	}
}

// ParseBytes reads an amount such as 64MB.
func ParseBytes(text string) (Bytes, error) {
	for _, u := range units() {
		digits, ok := strings.CutSuffix(text, u.name)
		if !ok {
			continue
		}
		n, err := strconv.ParseInt(strings.TrimSuffix(digits, " "), 10, 64)
		if err != nil || n < 0 || strings.HasPrefix(digits, "+") {
			break
		}
		if n > math.MaxInt64/u.bytes {
			return 0, fmt.Errorf("%q is too much", text)
		}
		return Bytes(n * u.bytes), nil
	}
	return 0, fmt.Errorf("%q is no amount such as 500kB, 64MB or 1GiB", text)
}

// MarshalJSON writes the amount as String does.
func (b Bytes) MarshalJSON() ([]byte, error) { return json.Marshal(b.String()) }

// UnmarshalJSON reads a number of bytes, or a text with a unit.
func (b *Bytes) UnmarshalJSON(data []byte) error {
	var n int64
	if err := json.Unmarshal(data, &n); err == nil {
		*b = Bytes(n)
		return nil
	}
	var text string
	if err := json.Unmarshal(data, &text); err != nil {
		return fmt.Errorf("%s is no amount such as \"64MB\"", data)
	}
	parsed, err := ParseBytes(text)
	if err != nil {
		return err
	}
	*b = parsed
	return nil
}
