package storeservice

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	pb "github.com/foresay/foresay/api/foresay/store/v1"
	"github.com/foresay/foresay/internal/nearest"
	"github.com/foresay/foresay/internal/plainerr"
)

// askLeaders is how long HandOver waits until it looks again who leads, and longer each time.
const askLeaders = 20 * time.Millisecond

// HandOver has another site lead a partition, or a group that only coordinates: these are numbered
// behind the partitions. It returns when the site leads, and says which one did before: the same,
// if it led already.
func (c *Client) HandOver(ctx context.Context, partition int, to string) (from string, err error) {
	var names, with []string
	s := c.Store()
	t := s.Topology()
	for i, site := range s.Sites {
		names = append(names, site.Name)
		for j := range site.Machines {
			if slices.Contains(t.ShardsOf(i, j), partition) {
				with = append(with, site.Name)
			}
		}
	}
	switch {
	case partition < 0 || partition >= t.Groups():
		return "", fmt.Errorf("there is no partition %d (there are %d, from 0 on)", partition, t.Groups())
	case !slices.Contains(names, to):
		return "", fmt.Errorf("there is no site %q%s", to, nearest.Hint(to, names))
	case !slices.Contains(with, to):
		return "", fmt.Errorf("site %s has no copy of partition %d (%s have)", to, partition, strings.Join(with, ", "))
	}
	why := "nobody leads it"
	for pause := askLeaders; ; pause = min(2*pause, 16*askLeaders) {
		for i, site := range s.Sites {
			for j, m := range site.Machines {
				if !slices.Contains(t.ShardsOf(i, j), partition) {
					continue
				}
				said, err := c.newest().conn.HandOver(ctx, m.Name, &pb.HandOverRequest{Shard: uint32(partition), Site: to,
					Epoch: t.Epoch})
				switch {
				case status.Code(err) == codes.Unimplemented:
					return "", fmt.Errorf("machine %s: %s", m.Name, plainerr.Text(err))
				case err != nil:
					why = fmt.Sprintf("machine %s: %s", m.Name, plainerr.Text(err))
				case said.GetLeads() && site.Name == to:
					if from == "" {
						from = to
					}
					return from, nil
				case said.GetLeads():
					if from = site.Name; said.GetReason() != "" {
						why = fmt.Sprintf("site %s leads it: %s", from, said.GetReason())
					} else {
						why = fmt.Sprintf("site %s has been asked to hand it over", from)
					}
				}
			}
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return from, fmt.Errorf("site %s does not lead partition %d yet: %s", to, partition, why)
		}
	}
}
