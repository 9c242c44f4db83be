package service

import (
	"context"

	"github.com/foresay/foresay/smr/kv"
)

// A QuotaError says that the service would hold more than its quota; nothing was changed. Deletions, and changes that do not make it grow, go on.
type QuotaError struct {
	Reason string // what is there, and what it would be
}

func (e *QuotaError) Error() string { return "the quota is used up: " + e.Reason }

// SetQuota bounds what the service holds, on all replicas from the same command on, and returns what it holds. A quota below that removes nothing.
func (c *Client) SetQuota(ctx context.Context, q kv.Quota) (kv.Usage, error) {
	r, err := c.write(ctx, "", nil, kv.SetQuota(q))
	if err != nil {
		return kv.Usage{}, err
	}
	return r.Usage()
}

// Usage returns what the service holds, and its quota.
func (c *Client) Usage(ctx context.Context) (kv.Usage, error) {
	r, err := known(c.kv.Read(ctx, kv.GetUsage()))
	if err != nil {
		return kv.Usage{}, err
	}
	return r.Usage()
}
