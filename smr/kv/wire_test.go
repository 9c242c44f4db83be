package kv

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/foresay/foresay/internal/wirefmt/wiretest"
)

// TestLayouts tests how commands and what they give look as bytes.
func TestLayouts(t *testing.T) {
	key, value, end := []byte("key"), []byte("value"), []byte("l")
	leases := []Lease{{ID: 3, TTL: time.Minute, Renewals: 2, Keys: 1}}
	items := []Item{{Key: key, Value: value, Version: 300, Lease: 3, Deleted: true}, {Version: 301}}
	requests := []struct {
		name string
		request
	}{
		{"put", request{op: opPut, key: key, value: value, lease: 7}},
		{"delete", request{op: opDelete, key: key}},
		{"compare and set", request{op: opCompareAndSet, key: key, value: value, version: 300, lease: 7}},
		{"grant", request{op: opGrant, ttl: time.Minute}},
		{"keep alive", request{op: opKeepAlive, lease: 7}},
		{"revoke", request{op: opRevoke, lease: 7}},
		{"expire", request{op: opExpire, lease: 7, version: 300}},
		{"load", request{op: opLoad, load: &Load{After: 1, To: 400, Leases: leases, Items: items, Last: true}}},
		{"get", request{op: opGet, key: key}},
		{"scan", request{op: opScan, key: key, end: end, limit: 300}},
		{"changes", request{op: opChanges, key: key, end: end, version: 300, limit: 5}},
		{"leases", request{op: opLeases}},
		{"quota", request{op: opQuota, quota: Quota{Bytes: 300, Keys: 5}}},
		{"usage", request{op: opUsage}},
	}
	var samples []wiretest.Value
	for _, q := range requests {
		samples = append(samples, wiretest.Sample(q.name, requestLayout, q.request, cmp.AllowUnexported(request{})))
	}
	samples = append(samples,
		wiretest.Sample("result", resultLayout, Result{
			Status: OK, Version: 300, Value: value, Lease: 7, Items: items, Leases: leases, More: true, Message: "m",
		}),
		wiretest.Sample("usage of a store", usageLayout, Usage{Bytes: 300, Keys: 2, Quota: Quota{Bytes: 400, Keys: 3}}),
		wiretest.Sample("record of a store", headLayout, head{last: 300, bytes: 200, keys: 3, leased: 2,
			quota: Quota{Bytes: 400, Keys: 5}, loading: true, changed: 4, changedBytes: 20, forgotten: 290},
			cmp.AllowUnexported(head{})),
		wiretest.Sample("record of a key", itemLayout, item{value, 300, 7}, cmp.AllowUnexported(item{})),
		wiretest.Sample("record of a lease", spacedLeaseLayout, spacedLease{leases[0], time.Hour},
			cmp.AllowUnexported(spacedLease{})),
		wiretest.Sample("record of a change", changeLayout, items[0]))
	wiretest.Layouts(t, samples...)
}
