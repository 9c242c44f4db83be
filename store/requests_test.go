package store_test

import (
	"slices"
	"testing"

	"github.com/foresay/foresay/internal/wirefmt"
	"github.com/foresay/foresay/internal/wirefmt/wiretest"
	"github.com/foresay/foresay/store"
	"github.com/foresay/foresay/store/storetest"
)

// requestFormat is that of what protocols have in common.
func requestFormat() *wirefmt.Format[store.Message] {
	return wirefmt.NewFormat("store", 1,
		slices.Concat(store.RequestKinds(), store.SnapshotKinds(), store.SpeculationKinds())...)
}

// TestCodec tests what protocols have in common. What is their own they test themselves.
func TestCodec(t *testing.T) {
	wiretest.Codec(t, requestFormat(), 0, storetest.Requests(true, true))
}

func FuzzCodec(f *testing.F) { wiretest.Fuzz(f, requestFormat(), storetest.Requests(true, true)) }
