package synthetic

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"

	"github.com/foresay/foresay/workload"
)

// Bounds of a Config.
const (
	MaxKeys       = 1000
	MaxPopulation = 1 << 40
	MinValueBytes = 8 // the count
	MaxValueBytes = 1 << 20
)

// Config is what the transactions are like. Paper and Wide return those of the paper; New checks
// one of your own.
type Config struct {
	Keys         int // of a transaction, each read and updated: 1 to MaxKeys
	LocalPercent int // of the keys, how many of a hundred are of the own server's partition
	HotPercent   int // of the keys, how many of a hundred are of a hotspot
	// Population is how many keys a partition has for local use, and again for remote use. LocalHot
	// and RemoteHot are how many of them are the hotspots. Each hotspot has at least Keys keys, and
	// so has the rest.
	Population, LocalHot, RemoteHot uint64
	ValueBytes                      int // of each value: MinValueBytes to MaxValueBytes
}

// Contention is how often transactions meet on a key.
type Contention bool

// The two of the paper.
const (
	Low  Contention = false
	High Contention = true
)

// Paper returns a workload of Figure 3, by the contention of a server's own clients and by that of
// other sites'.
func Paper(local, remote Contention) Config {
	c := Config{Keys: 10, LocalPercent: 80, HotPercent: 90, Population: 1_000_000, LocalHot: 30_000, RemoteHot: 15_000,
		ValueBytes: MinValueBytes}
	if local == High {
		c.LocalHot = 1000
	}
	if remote == High {
		c.RemoteHot = 500
	}
	return c
}

// Named returns a workload of Figure 3 by its name: low-low, high-low, low-high or high-high, local
// contention first.
func Named(name string) (Config, error) {
	levels := map[string]Contention{"low": Low, "high": High}
	before, after, _ := strings.Cut(name, "-")
	local, ok := levels[before]
	remote, also := levels[after]
	if !ok || !also {
		return Config{}, fmt.Errorf("synthetic: no workload %q (there are low-low, high-low, low-high, high-high)", name)
	}
	return Paper(local, remote), nil
}

// Wide returns a workload of Table 1: transactions of 10, 20, 40, 100 or 200 keys, on hotspots that
// grow with them.
func Wide(keys int) (Config, error) {
	hot, ok := map[int]uint64{10: 1000, 20: 4000, 40: 25_000, 100: 100_000, 200: 400_000}[keys]
	if !ok {
		return Config{}, fmt.Errorf("synthetic: Table 1 has no transactions of %d keys (it has 10, 20, 40, 100, 200)", keys)
	}
	c := Paper(Low, Low)
	c.Keys, c.LocalHot, c.RemoteHot = keys, hot, hot
	return c, nil
}

// Check returns an error that names the field that is out of bounds.
func (c Config) Check() error {
	percent := func(name string, n int) error {
		if n < 0 || n > 100 {
			return fmt.Errorf("synthetic: Config.%s is %d (want 0 to 100)", name, n)
		}
		return nil
	}
	switch {
	case c.Keys < 1 || c.Keys > MaxKeys:
		return fmt.Errorf("synthetic: Config.Keys is %d (want 1 to %d)", c.Keys, MaxKeys)
	case c.Population < 2*uint64(c.Keys) || c.Population > MaxPopulation:
		return fmt.Errorf("synthetic: Config.Population is %d (want %d, twice Keys, to %d)", c.Population, 2*c.Keys,
			uint64(MaxPopulation))
	case c.ValueBytes < MinValueBytes || c.ValueBytes > MaxValueBytes:
		return fmt.Errorf("synthetic: Config.ValueBytes is %d (want %d to %d)", c.ValueBytes, MinValueBytes, MaxValueBytes)
	}
	for _, h := range []struct {
		name string
		hot  uint64
	}{{"LocalHot", c.LocalHot}, {"RemoteHot", c.RemoteHot}} {
		if least := uint64(c.Keys); h.hot < least || h.hot > c.Population-least {
			return fmt.Errorf("synthetic: Config.%s is %d (want %d to %d: Keys in the hotspot, and Keys beside it)", h.name,
				h.hot, least, c.Population-least)
		}
	}
	if err := percent("LocalPercent", c.LocalPercent); err != nil {
		return err
	}
	return percent("HotPercent", c.HotPercent)
}

// Client is whoever makes transactions at a server.
type Client struct {
	Config
	Own int // the partition that the server has the master of; partitions count from 0
	// Others are the partitions that another site has the master of, and this site a replica. They
	// may be missing if LocalPercent is 100.
	Others []int
}

// Check returns an error that names the field that is wrong.
func (c Client) Check() error {
	if err := c.Config.Check(); err != nil {
		return err
	}
	switch {
	case c.Own < 0:
		return fmt.Errorf("synthetic: Client.Own is %d (want 0 or more)", c.Own)
	case len(c.Others) == 0 && c.LocalPercent < 100:
		return fmt.Errorf("synthetic: Client.Others is empty, and Config.LocalPercent is %d (want 100)", c.LocalPercent)
	}
	for _, p := range c.Others {
		if p < 0 || p == c.Own {
			return fmt.Errorf("synthetic: Client.Others has %d (want 0 or more, and not Own, %d)", p, c.Own)
		}
	}
	return nil
}

// Next returns a transaction. Check has to return nil.
func (c Client) Next(r *rand.Rand) Txn {
	t := Txn{Keys: make([]string, 0, c.Keys), ValueBytes: c.ValueBytes}
	for range c.Keys {
		use, partition, hot := localUse, c.Own, c.LocalHot
		if r.IntN(100) >= c.LocalPercent {
			use, partition, hot = remoteUse, c.Others[r.IntN(len(c.Others))], c.RemoteHot
		}
		spot := workload.Hotspot{N: c.Population, Hot: hot, Chance: float64(c.HotPercent) / 100}
		// Only the number is drawn again if the transaction has the key, so the shares of partitions
		// stay what they are.
		key := name(use, partition, spot.Draw(r))
		for slices.Contains(t.Keys, key) {
			key = name(use, partition, spot.Draw(r))
		}
		t.Keys = append(t.Keys, key)
	}
	return t
}

// What a key is for is the first letter of its name.
const (
	localUse  byte = 'l'
	remoteUse byte = 'r'
)

// name returns a key: l/3/17 is number 17 of what the clients of partition 3's own server use.
func name(use byte, partition int, number uint64) string {
	b := append(make([]byte, 0, 24), use, '/')
	b = append(strconv.AppendInt(b, int64(partition), 10), '/')
	return string(strconv.AppendUint(b, number, 10))
}

// Home returns the partition that a key belongs to.
func Home(key string) (partition int, ok bool) {
	rest, ok := strings.CutPrefix(key, string(localUse)+"/")
	if !ok {
		if rest, ok = strings.CutPrefix(key, string(remoteUse)+"/"); !ok {
			return 0, false
		}
	}
	number, _, ok := strings.Cut(rest, "/")
	partition, err := strconv.Atoi(number)
	if !ok || err != nil || partition < 0 {
		return 0, false
	}
	return partition, true
}
