package transport

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/foresay/foresay/internal/plainerr"
)

// Failure says for people why a member is not reached; "" if it is, or was not tried to the end.
func (p PeerStats) Failure() string {
	if p.Err == nil {
		return ""
	}
	return strings.TrimPrefix(plainerr.Text(p.Err), fmt.Sprintf("member %d at %s: ", p.ID, p.Address))
}

// Refused returns why no member takes this host, if all were tried and one at least answered that
// the two do not belong together: another attempt would end in the same way. It is nil otherwise.
func Refused(peers []PeerStats) error {
	refused := false
	for _, p := range peers {
		if p.Err == nil {
			return nil
		}
		refused = refused || p.Refused
	}
	if !refused {
		return nil
	}
	return errors.New(Unreached(peers))
}

// Reached reports whether any member has ever talked with this host.
func Reached(peers []PeerStats) bool {
	return slices.ContainsFunc(peers, func(p PeerStats) bool { return p.Connects > 0 })
}

// Unreached says which members this host does not reach, and why; "" if it reaches all.
func Unreached(peers []PeerStats) string { return standing(peers, PeerStats.Failure) }

// Standing says how members stand with this host that did not answer a call: not reached and why,
// silent, or connected. It says too if fewer are connected than a quorum; "" if there are none.
func Standing(peers []PeerStats, quorum int) string {
	connected := 0
	said := standing(peers, func(p PeerStats) string {
		switch {
		case p.Err != nil:
			return p.Failure()
		case p.State == Up:
			connected++
			return "connected, did not answer the call"
		default:
			return "no answer"
		}
	})
	if connected > 0 && connected < quorum {
		said = fmt.Sprintf("%d of %d members are reached, which is no quorum: ", connected, len(peers)) + said
	}
	return said
}

// standing says how members stand with this host, those of whom the same is to be said together.
func standing(peers []PeerStats, say func(PeerStats) string) string {
	var said []string
	members := map[string][]string{}
	for _, p := range peers {
		text := say(p)
		if text == "" {
			continue
		}
		if members[text] == nil {
			said = append(said, text)
		}
		members[text] = append(members[text], fmt.Sprintf("%d at %s", p.ID, p.Address))
	}
	for i, text := range said {
		who := members[text]
		word := "member "
		if len(who) > 1 {
			word = "members "
		}
		said[i] = word + strings.Join(who, ", ") + ": " + text
	}
	return strings.Join(said, "; ")
}
