package storecmd

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/foresay/foresay/store"
)

// A courseExplained is how a transaction that has read a snapshot came to its end. Times are since
// its coordinator was asked for the commit.
type courseExplained struct {
	Snapshot time.Time `json:"snapshot"`
	// Built are its reads of what was not final.
	Built []builtExplained `json:"read_speculatively,omitempty"`
	// LocalMS is when it was committed locally; absent: it never was.
	LocalMS *float64        `json:"local_commit_ms,omitempty"`
	Words   []wordExplained `json:"certified,omitempty"`
	// Waited is what the end waited for last; absent: for nothing.
	Waited *waitExplained `json:"final_waited_for,omitempty"`
}

type builtExplained struct {
	keyText
	By string `json:"by"` // the transaction that has written it
}

type wordExplained struct {
	Shard uint32  `json:"shard"`
	Site  string  `json:"site"`
	AtMS  float64 `json:"at_ms"`
}

// A waitExplained is a wait for a server's word, or for another transaction's final commit.
type waitExplained struct {
	Shard       *uint32 `json:"shard,omitempty"`
	Site        string  `json:"site,omitempty"`
	Transaction string  `json:"transaction,omitempty"`
	AtMS        float64 `json:"at_ms"`
}

func (s sight) course(m *store.Course) *courseExplained {
	if m == nil {
		return nil
	}
	out := &courseExplained{Snapshot: time.Unix(0, int64(m.Snapshot)).UTC()}
	for _, b := range m.Built {
		out.Built = append(out.Built, builtExplained{newKeyText(string(b.Key)), b.By.String()})
	}
	if m.Local > 0 {
		local := ms(m.LocalAt)
		out.LocalMS = &local
	}
	for _, w := range m.Words {
		site := fmt.Sprintf("site %d", w.Site)
		if int(w.Site) < len(s.names) {
			site = s.names[w.Site]
		}
		out.Words = append(out.Words, wordExplained{w.Shard, site, ms(w.At)})
	}
	if n := len(out.Words); n > 0 {
		last := out.Words[n-1]
		out.Waited = &waitExplained{Shard: &last.Shard, Site: last.Site, AtMS: last.AtMS}
	}
	if on := ms(m.LastOnAt); !m.LastOn.IsZero() && (out.Waited == nil || on > out.Waited.AtMS) {
		out.Waited = &waitExplained{Transaction: m.LastOn.String(), AtMS: on}
	}
	return out
}

func (c *courseExplained) write(w io.Writer) {
	fmt.Fprintf(w, "  snapshot of %s", c.Snapshot.Format("15:04:05.000000"))
	for i, b := range c.Built {
		what := ", not final then: "
		if i > 0 {
			what = ", "
		}
		fmt.Fprintf(w, "%s%s of %s", what, b.printable(), b.By)
	}
	if c.LocalMS != nil {
		fmt.Fprintf(w, "; committed locally %.1f ms after the commit was asked for", *c.LocalMS)
	}
	fmt.Fprintln(w)
	var words []string
	for _, word := range c.Words {
		words = append(words, fmt.Sprintf("shard %d at %s at %.1f", word.Shard, word.Site, word.AtMS))
	}
	if len(words) > 0 {
		fmt.Fprintf(w, "  certified: %s\n", strings.Join(words, ", "))
	}
	switch wait := c.Waited; {
	case wait == nil:
	case wait.Transaction != "":
		fmt.Fprintf(w, "  the end waited for transaction %s, which was final at %.1f\n", wait.Transaction, wait.AtMS)
	default:
		fmt.Fprintf(w, "  the end waited for the word of %s for shard %d, at %.1f\n", wait.Site, *wait.Shard, wait.AtMS)
	}
}
