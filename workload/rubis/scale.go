package rubis

import (
	"fmt"
	"iter"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/foresay/foresay/workload/internal/rows"
)

// Scale is how much there is. What is zero is as in the experiments with STR, but Shards.
type Scale struct {
	Shards int
	// Users, OldItems and OpenItems are how many each shard has at the beginning: 1,000,000,
	// 1,000,000 and 33,000, divided by ReduceFactor. The auctions of old items are over.
	Users, OldItems, OpenItems int
	Regions, Categories        int // 62 and 20
	// BidsPerItem and CommentsPerUser are how many there are at most at the beginning, 20 and 20.
	// From none to that, all numbers are alike.
	BidsPerItem, CommentsPerUser int
	// DescriptionBytes is how long the description of an item is, 8192, and CommentBytes how long a
	// comment is at most, 2048: both divided by ReduceFactor.
	DescriptionBytes, CommentBytes int
	ReduceFactor                   int // 10
	Listed                         int // how many of the newest a list shows, 20
}

// field is a number of a Scale with its default and its bounds.
type field struct {
	name          string
	value         *int
	usual         int
	least, most   int
	reduced, keep bool // keep: it has no default
}

func (s *Scale) fields() []field {
	const many, few = 1_000_000_000, 100_000
	return []field{
		{"Shards", &s.Shards, 0, 1, few, false, true},
		{"ReduceFactor", &s.ReduceFactor, 10, 1, few, false, false},
		{"Users", &s.Users, 1_000_000, 1, many, true, false},
		{"OldItems", &s.OldItems, 1_000_000, 1, many, true, false},
		{"OpenItems", &s.OpenItems, 33_000, 1, many, true, false},
		{"Regions", &s.Regions, 62, 1, few, false, false},
		{"Categories", &s.Categories, 20, 1, few, false, false},
		{"BidsPerItem", &s.BidsPerItem, 20, 1, 1000, false, false},
		{"CommentsPerUser", &s.CommentsPerUser, 20, 1, 1000, false, false},
		{"DescriptionBytes", &s.DescriptionBytes, 8192, 1, 1 << 20, true, false},
		{"CommentBytes", &s.CommentBytes, 2048, 1, 1 << 20, true, false},
		{"Listed", &s.Listed, 20, 1, 1000, false, false},
	}
}

// Tables are the rows at the beginning, a function of the key. They are safe for concurrent use.
type Tables struct {
	// Scale is without zeros, and reduced: its ReduceFactor is 1.
	Scale
	moves *table
	// Item n has bids[n % len(bids)] bids at the beginning, and before[n % len(bids)] is the sum of
	// those before it in its round, so numbers of bids are dense without a table of all of them.
	bids, before []int
	round        int // bids of a round of items
}

// NewTables returns the tables of a scale, or an error that names the field.
func NewTables(s Scale) (*Tables, error) {
	for _, f := range s.fields() {
		if *f.value == 0 && !f.keep {
			*f.value = f.usual
		}
		factor, because := 1, ""
		if f.reduced {
			factor = s.ReduceFactor
			because = fmt.Sprintf(", divided by a ReduceFactor of %d", factor)
		}
		was := *f.value
		if *f.value /= factor; *f.value < f.least || *f.value > f.most {
			return nil, fmt.Errorf("rubis: Scale.%s is %d%s (want %d to %d)", f.name, was, because, f.least, f.most)
		}
	}
	s.ReduceFactor = 1
	t := &Tables{Scale: s, moves: transitions(), bids: rows.Chance("bids").Perm(s.BidsPerItem + 1)}
	for _, n := range t.bids {
		t.before = append(t.before, t.round)
		t.round += n
	}
	return t, nil
}

// items is how many a shard has at the beginning. The old ones come first.
func (t *Tables) items() int { return t.OldItems + t.OpenItems }

// bidsBefore is how many bids the items before one have in a shard.
func (t *Tables) bidsBefore(item int) int {
	n := item - 1
	return n/len(t.bids)*t.round + t.before[n%len(t.bids)]
}

func (t *Tables) bidsOf(item int) int { return t.bids[(item-1)%len(t.bids)] }

// itemOf returns the item of a bid of the beginning, and which of its bids that is, from 1 on.
func (t *Tables) itemOf(bid int) (item, nth int) {
	first := (bid - 1) / t.round * len(t.bids)
	left := (bid - 1) % t.round
	for i, n := range t.bids {
		if left < n {
			return first + i + 1, left + 1
		}
		left -= n
	}
	panic("rubis: a round has fewer bids than it should")
}

func (t *Tables) category(item int) int { return 1 + (item-1)%t.Categories }
func (t *Tables) region(item int) int   { return 1 + (item-1)/t.Categories%t.Regions }

// comments is how many comments on a user there are at the beginning.
func (t *Tables) comments(u UserID) int {
	return rows.Chance("comments", u.Shard, u.N).IntN(t.CommentsPerUser + 1)
}

// rating returns one of the five that a comment may have, which add up to nothing.
func rating(n int) int { return [...]int{-5, -3, 0, 3, 5}[n%5] }

// opened is when all was as at the beginning.
func opened() time.Time { return time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC) }

// Initial returns what a key holds at the beginning, if there is such a row.
func (t *Tables) Initial(key string) (value []byte, ok bool) {
	kind, rest, ok := strings.Cut(key, "/")
	parts := strings.Split(rest, "/")
	var n [3]int
	if !ok || len(parts) > len(n) {
		return nil, false
	}
	for i, p := range parts {
		if n[i], ok = rows.Number(p); !ok || i > 0 && n[i] < 1 {
			return nil, false
		}
	}
	if n[0] >= t.Shards {
		return nil, false
	}
	var row any
	switch len(parts) {
	case 1:
		row = t.rowOfShard(kind)
	case 2:
		if row = t.rowOfList(kind, n[0], n[1]); row == nil {
			row = t.rowOf(kind, id{n[0], n[1]})
		}
	case 3:
		if u := (UserID{n[0], n[1]}); kind == "m" && u.N <= t.Users && n[2] <= t.comments(u) {
			row = t.comment(u, n[2])
		}
	}
	if row == nil {
		return nil, false
	}
	return rows.Encode(row), true
}

func (t *Tables) rowOfShard(kind string) any {
	names := func(what string, n int) Names {
		var all Names
		for i := range n {
			all.Names = append(all.Names, fmt.Sprintf("%s %d", what, i+1))
		}
		return all
	}
	switch kind {
	case "last-user":
		return Last{t.Users}
	case "last-item":
		return Last{t.items()}
	case "last-bid":
		return Last{t.bidsBefore(t.items() + 1)}
	case "last-purchase":
		return Last{}
	case "categories":
		return names("category", t.Categories)
	case "regions":
		return names("region", t.Regions)
	}
	return nil
}

// rowOfList returns the open items of a category or a region.
func (t *Tables) rowOfList(kind string, shard, n int) any {
	list := List[ItemID]{Latest: []ItemID{}}
	add := func(item int) {
		list.Count++
		if len(list.Latest) < t.Listed {
			list.Latest = append(list.Latest, ItemID{shard, item})
		}
	}
	last := t.items()
	switch {
	case kind == "category" && n <= t.Categories:
		for item := last - (t.category(last)-n+t.Categories)%t.Categories; item > t.OldItems; item -= t.Categories {
			add(item)
		}
	case kind == "region" && n <= t.Regions:
		// Items of a region come in runs of as many as there are categories.
		skip := (t.region(last) - n + t.Regions) % t.Regions * t.Categories
		for run := (last-1)/t.Categories*t.Categories - skip; run+t.Categories > t.OldItems; run -= t.Regions * t.Categories {
			for item := min(run+t.Categories, last); item > max(run, t.OldItems); item-- {
				add(item)
			}
		}
	default:
		return nil
	}
	return list
}

// rowOf returns the row of a user, an item or a bid, or nil if there is none.
func (t *Tables) rowOf(kind string, i id) any {
	switch kind {
	case "i", "a":
		switch {
		case i.N > t.items():
			return nil
		case kind == "i":
			return t.item(ItemID(i))
		}
		return t.auction(ItemID(i))
	case "b":
		if i.N > t.bidsBefore(t.items()+1) {
			return nil
		}
		return t.bid(BidID(i))
	}
	if i.N > t.Users {
		return nil
	}
	switch kind {
	case "u":
		return User{Nick: nick(UserID(i)), Region: 1 + i.N%t.Regions, Since: opened()}
	case "u-rating":
		r := Rating{Comments: t.comments(UserID(i))}
		for n := range r.Comments {
			r.Sum += rating(i.N + n + 1)
		}
		return r
	case "u-bids":
		return List[BidID]{Latest: []BidID{}}
	case "u-bought":
		return List[PurchaseID]{Latest: []PurchaseID{}}
	case "u-sells":
		return List[ItemID]{Latest: []ItemID{}}
	}
	return nil
}

func nick(u UserID) string { return fmt.Sprintf("user%d-%d", u.Shard, u.N) }

func (t *Tables) comment(u UserID, n int) Comment {
	r := rows.Chance("m", u.Shard, u.N, n)
	return Comment{From: UserID{u.Shard, 1 + r.IntN(t.Users)}, Item: ItemID{u.Shard, 1 + r.IntN(t.OldItems)},
		Rating: rating(u.N + n), Text: rows.Text(r, 1, t.CommentBytes), At: opened()}
}

// terms returns what an item is offered for, as the original has it: two of five with a reserve
// price, one in ten with a price at which it can be bought at once, four of five unique.
func terms(r *rand.Rand) Item {
	const dollar, most = 100, 10
	row := Item{Initial: Cents(dollar * (1 + r.IntN(5000))), Quantity: 1, Days: 1 + r.IntN(7)}
	if r.IntN(100) < 40 {
		row.Reserve = row.Initial + Cents(dollar*(1+r.IntN(1000)))
	}
	if r.IntN(100) < 10 {
		row.BuyNow = max(row.Initial, row.Reserve) + Cents(dollar*(1+r.IntN(1000)))
	}
	if r.IntN(100) >= 80 {
		row.Quantity = 1 + r.IntN(most)
	}
	return row
}

// describe gives an item its texts.
func (t *Tables) describe(r *rand.Rand, row *Item) {
	row.Name, row.Description = rows.Text(r, 10, 20), rows.Text(r, t.DescriptionBytes, t.DescriptionBytes)
}

func (t *Tables) item(i ItemID) Item {
	r := rows.Chance("i", i.Shard, i.N)
	row := terms(r)
	row.Seller, row.Category, row.Region = UserID{i.Shard, 1 + r.IntN(t.Users)}, t.category(i.N), t.region(i.N)
	row.Since = opened()
	t.describe(r, &row)
	return row
}

func (t *Tables) auction(i ItemID) Auction {
	item := terms(rows.Chance("i", i.Shard, i.N))
	a := Auction{Left: item.Quantity, Over: i.N <= t.OldItems, Bids: t.bidsOf(i.N), Latest: []BidID{}}
	if a.Bids > 0 {
		a.MaxBid = item.Initial + raise*Cents(a.Bids)
	}
	last := t.bidsBefore(i.N + 1)
	for n := range min(a.Bids, t.Listed) {
		a.Latest = append(a.Latest, BidID{i.Shard, last - n})
	}
	return a
}

// raise is by how much each of the bids of the beginning exceeds the one before.
const raise = 100

func (t *Tables) bid(b BidID) Bid {
	item, nth := t.itemOf(b.N)
	i := ItemID{b.Shard, item}
	return Bid{Item: i, User: UserID{b.Shard, 1 + rows.Chance("b", b.Shard, b.N).IntN(t.Users)},
		Amount: terms(rows.Chance("i", i.Shard, i.N)).Initial + raise*Cents(nth), At: opened()}
}

// Rows returns all keys of a shard that have a value at the beginning, with their values.
func (t *Tables) Rows(shard int) iter.Seq2[string, []byte] {
	return func(yield func(string, []byte) bool) {
		for key := range t.keys(shard) {
			value, ok := t.Initial(key)
			if !ok {
				panic(fmt.Sprintf("rubis: %s has no value", key))
			}
			if !yield(key, value) {
				return
			}
		}
	}
}

func (t *Tables) keys(s int) iter.Seq[string] {
	return func(yield func(string) bool) {
		all := func(keys ...string) bool {
			return !slices.ContainsFunc(keys, func(key string) bool { return !yield(key) })
		}
		// many asks for keys of numbers from 1 on.
		many := func(n int, keys func(n int) []string) bool {
			for i := range n {
				if !all(keys(i + 1)...) {
					return false
				}
			}
			return true
		}
		_ = s >= 0 && s < t.Shards &&
			all(lastUserKey(s), lastItemKey(s), lastBidKey(s), lastPurchaseKey(s), categoriesKey(s), regionsKey(s)) &&
			many(t.Categories, func(n int) []string { return []string{inCategoryKey(s, n)} }) &&
			many(t.Regions, func(n int) []string { return []string{inRegionKey(s, n)} }) &&
			many(t.Users, func(n int) []string {
				u := UserID{s, n}
				keys := []string{userKey(u), ratingKey(u), bidsOfKey(u), purchasesOfKey(u), itemsOfKey(u)}
				for i := range t.comments(u) {
					keys = append(keys, commentKey(u, i+1))
				}
				return keys
			}) &&
			many(t.items(), func(n int) []string { return []string{itemKey(ItemID{s, n}), auctionKey(ItemID{s, n})} }) &&
			many(t.bidsBefore(t.items()+1), func(n int) []string { return []string{bidKey(BidID{s, n})} })
	}
}
