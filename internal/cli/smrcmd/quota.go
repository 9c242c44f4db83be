package smrcmd

import (
	"context"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/foresay/foresay/internal/cli/command"
	"github.com/foresay/foresay/smr/kv"
	"github.com/foresay/foresay/smr/service"
)

// usageAnswer is what smr quota says with --json.
type usageAnswer struct {
	Bytes      uint64 `json:"bytes"`
	Keys       uint64 `json:"keys"`
	QuotaBytes uint64 `json:"quota_bytes"`
	QuotaKeys  uint64 `json:"quota_keys"`
}

func (p *program) quotaCommand() *cobra.Command {
	var f clientFlags
	var bytes, keys string
	c := &cobra.Command{
		Use:   "quota",
		Short: "Show how much the service holds, or bound it",
		Long: `Show how many keys the service holds, how many bytes keys and values have, and their quota. With
--bytes or --keys, set the quota; 0 is none. All replicas agree on it, as on any change. A put
beyond it is refused and changes nothing; deletions go on. A quota below what is there removes
nothing. If there are several groups, --bytes and --keys bound each of them, and what is shown are
the sums.`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			setBytes, setKeys := c.Flags().Changed("bytes"), c.Flags().Changed("keys")
			var q kv.Quota
			var err error
			if q.Bytes, err = parseSize(bytes); err != nil {
				return command.Usagef("smr quota: --bytes: %w", err)
			}
			if q.Keys, err = strconv.ParseUint(keys, 10, 63); err != nil {
				return command.Usagef("smr quota: --keys: %q is no number", keys)
			}
			return p.withClient(c.Context(), &f, func(ctx context.Context, client *service.Client) error {
				u, err := setQuota(ctx, client, q, setBytes, setKeys)
				if err != nil {
					return fmt.Errorf("smr quota: %w", err)
				}
				return p.writeUsage(u, client.Groups(), f.json)
			})
		},
	}
	f.add(c.Flags())
	c.Flags().StringVar(&bytes, "bytes", "0", "set the quota of keys and values, in bytes, such as 64MiB; 0: none")
	c.Flags().StringVar(&keys, "keys", "0", "set the quota of keys; 0: none")
	return c
}

// setQuota sets what is to be set of each group's quota, and returns what the service holds.
func setQuota(ctx context.Context, client *service.Client, q kv.Quota, setBytes, setKeys bool) (kv.Usage, error) {
	if !setBytes && !setKeys {
		return client.Usage(ctx)
	}
	now, err := client.GroupQuota(ctx)
	if err != nil {
		return kv.Usage{}, err
	}
	if !setBytes {
		q.Bytes = now.Bytes
	}
	if !setKeys {
		q.Keys = now.Keys
	}
	return client.SetQuota(ctx, q)
}

func (p *program) writeUsage(u kv.Usage, groups int, asJSON bool) error {
	if asJSON {
		return p.WriteJSON(usageAnswer{u.Bytes, u.Keys, u.Quota.Bytes, u.Quota.Keys})
	}
	_, err := fmt.Fprintf(p.Out, "bytes  %d of %s\nkeys   %d of %s\n", u.Bytes, limitName(u.Quota.Bytes, groups), u.Keys,
		limitName(u.Quota.Keys, groups))
	return err
}

// limitName tells a bound of all groups, which is the sum of each one's.
func limitName(n uint64, groups int) string {
	switch {
	case n == 0:
		return "any number"
	case groups > 1:
		return fmt.Sprintf("%d, %d in each of %d groups", n, n/uint64(groups), groups)
	}
	return strconv.FormatUint(n, 10)
}

// parseSize returns the bytes of a text such as 4096, 64KiB or 2GiB.
func parseSize(text string) (uint64, error) {
	number, unit := text, uint64(1)
	for suffix, factor := range map[string]uint64{"KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30} {
		if rest, ok := strings.CutSuffix(text, suffix); ok {
			number, unit = rest, factor
		}
	}
	n, err := strconv.ParseUint(number, 10, 63)
	if err != nil || n > math.MaxInt64/unit {
		return 0, fmt.Errorf("%q is no size such as 4096 or 64MiB", text)
	}
	return n * unit, nil
}
