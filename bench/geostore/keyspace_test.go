package geostore

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/foresay/foresay/store/replicatedcommit"
)

// sortedKeys is the dumb twin of a keyspace's scan.
func sortedKeys(n uint64, lo, hi string) []string {
	var keys []string
	for i := range n {
		if k := fmt.Sprint("vk", i); k >= lo && (hi == "" || k < hi) {
			keys = append(keys, k)
		}
	}
	slices.Sort(keys)
	return keys
}

func TestScanIsInOrder(t *testing.T) {
	bounds := []string{"", "v", "vk", "vk0", "vk00", "vk1", "vk10", "vk100", "vk19", "vk2", "vk209", "vk99", "vk999",
		"vka", "w"}
	for _, n := range []uint64{0, 1, 2, 9, 10, 11, 99, 100, 101, 250, 1000, 1234} {
		ks := newKeyspace(replicatedcommit.Protocol().Preload, n, nil)
		for _, lo := range bounds {
			for _, hi := range bounds {
				var got []string
				end := []byte(hi)
				if hi == "" {
					end = nil
				}
				for k := range ks.scan([]byte(lo), end) {
					got = append(got, string(k))
				}
				if diff := cmp.Diff(sortedKeys(n, lo, hi), got); diff != "" {
					t.Fatalf("%d keys from %q to %q (-want +got):\n%s", n, lo, hi, diff)
				}
			}
		}
	}
}

func TestHas(t *testing.T) {
	ks := newKeyspace(replicatedcommit.Protocol().Preload, 120, nil)
	var has []string
	for _, key := range []string{"", "v", "vk", "vk0", "vk00", "vk01", "vk7", "vk119", "vk120", "vk+1", "vk-1", "vk1x",
		"k1", "tk1", "vk" + strings.Repeat("9", 40)} {
		if ks.has([]byte(key)) {
			has = append(has, key)
		}
	}
	if diff := cmp.Diff([]string{"vk0", "vk7", "vk119"}, has); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
