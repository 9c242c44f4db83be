package service

import (
	"context"

	"github.com/foresay/foresay/smr/kv"
)

// A QuotaError says that the service would hold more than its quota; nothing was changed.
// Deletions, and changes that do not make it grow, go on.
type QuotaError struct {
	Reason string // what is there, and what it would be
}

func (e *QuotaError) Error() string { return "the quota is used up: " + e.Reason }

func (c *groupClient) SetQuota(ctx context.Context, q kv.Quota) (kv.Usage, error) {
	r, err := c.write(ctx, "", nil, kv.SetQuota(q))
	if err != nil {
		return kv.Usage{}, err
	}
	return r.Usage()
}

func (c *groupClient) Usage(ctx context.Context) (kv.Usage, error) {
	r, err := known(c.kv.Read(ctx, kv.GetUsage()))
	if err != nil {
		return kv.Usage{}, err
	}
	return r.Usage()
}
