package rubis

import (
	"fmt"
	"math/rand/v2"
	"time"
)

// State is a page of the auction site. Most have a transaction.
type State int

// The 27 states, in the order of the table's rows.
const (
	Home State = iota
	Register
	RegisterUser
	Browse
	BrowseCategories
	SearchItemsInCategory
	BrowseRegions
	BrowseCategoriesInRegion
	SearchItemsInRegion
	ViewItem
	ViewUserInfo
	ViewBidHistory
	BuyNowAuth
	BuyNow
	StoreBuyNow
	PutBidAuth
	PutBid
	StoreBid
	PutCommentAuth
	PutComment
	StoreComment
	Sell
	SelectCategoryToSellItem
	SellItemForm
	RegisterItem
	AboutMeAuth
	AboutMe
	States // how many there are
)

// The last two rows of the table are moves, not states.
const (
	back = States + iota // to the state before
	end                  // of the session
	moves
)

// page is what is known of a state.
type page struct {
	name string
	wait time.Duration
	kind kind
}

// kind is what a state has a transaction for.
type kind int

const (
	static kind = iota // none: a form, or a page that is the same for all
	reads
	updates
)

func pages() [States]page {
	const s = time.Second
	return [States]page{
		{"home", 3 * s, static}, {"register", 10 * s, static}, {"register-user", 3 * s, updates},
		{"browse", 2 * s, static}, {"browse-categories", 3 * s, reads}, {"search-items-in-category", 7 * s, reads},
		{"browse-regions", 3 * s, reads}, {"browse-categories-in-region", 3 * s, reads},
		{"search-items-in-region", 7 * s, reads}, {"view-item", 7 * s, reads}, {"view-user-info", 7 * s, reads},
		{"view-bid-history", 7 * s, reads}, {"buy-now-auth", 5 * s, static}, {"buy-now", 5 * s, reads},
		{"store-buy-now", 2 * s, updates}, {"put-bid-auth", 5 * s, static}, {"put-bid", 5 * s, reads},
		{"store-bid", 2 * s, updates}, {"put-comment-auth", 5 * s, static}, {"put-comment", 5 * s, reads},
		{"store-comment", 2 * s, updates}, {"sell", 5 * s, static}, {"select-category-to-sell-item", 3 * s, reads},
		{"sell-item-form", 7 * s, static}, {"register-item", 2 * s, updates}, {"about-me-auth", 3 * s, static},
		{"about-me", 7 * s, reads},
	}
}

// String returns the state's name, as in "store-bid".
func (s State) String() string {
	if s < 0 || s >= States {
		return fmt.Sprintf("State(%d)", int(s))
	}
	return pages()[s].name
}

// Wait returns how long a user looks at the page before the next one.
func (s State) Wait() time.Duration { return pages()[s].wait }

// Static reports whether the page comes without a transaction.
func (s State) Static() bool { return pages()[s].kind == static }

// Updates reports whether the page's transaction writes.
func (s State) Updates() bool { return pages()[s].kind == updates }

// table has the chance of each move from each state.
type table [States][moves]float64

// transitions returns RUBiS's default table. Its columns (here rows: what a state leads to) do not
// add up to 1; what walk makes of that is part of the benchmark.
func transitions() *table {
	var t table
	for s := range States {
		t[s] = [moves]float64{Home: .0001, Register: .01, Browse: .0058, Sell: .0005, AboutMeAuth: .0015}
	}
	t[Home] = [moves]float64{Register: .07, Browse: .7, Sell: .05, AboutMeAuth: .15}
	stored := [moves]float64{Home: .01, Register: .01, Browse: .58, Sell: .05, AboutMeAuth: .15, end: .2}
	t[StoreBuyNow], t[StoreBid], t[StoreComment], t[RegisterItem], t[RegisterUser] = stored, stored, stored, stored, stored
	t[RegisterUser][Register] = 0
	t[Register][Register], t[Register][RegisterUser] = 0, .99
	t[Browse][Browse], t[Browse][BrowseCategories], t[Browse][BrowseRegions] = 0, .7, .29
	for _, s := range []State{SearchItemsInCategory, SearchItemsInRegion} {
		t[s][s], t[s][ViewItem], t[s][PutBidAuth], t[s][end] = .4, .5, .09, .2
	}
	t[ViewItem][ViewUserInfo], t[ViewItem][ViewBidHistory], t[ViewItem][BuyNowAuth] = .1, .05, .1
	t[ViewItem][PutBidAuth], t[ViewItem][PutComment], t[ViewItem][back], t[ViewItem][end] = .22, .02, .5, .2
	t[ViewUserInfo][ViewUserInfo], t[ViewUserInfo][back], t[ViewUserInfo][end] = .19, .8, .2
	t[ViewBidHistory][ViewUserInfo], t[ViewBidHistory][back] = .19, .8
	t[PutBid][ViewUserInfo], t[PutBid][ViewBidHistory], t[PutBid][StoreBid], t[PutBid][PutComment] = .05, .15, .74, .05
	t[AboutMe] = [moves]float64{Home: .002, Register: .01, Browse: .116, Sell: .01, AboutMeAuth: .03, ViewItem: .65,
		ViewUserInfo: .05, PutBidAuth: .1, end: .2}
	for _, chain := range [][2]State{
		{BrowseCategories, SearchItemsInCategory}, {BrowseRegions, BrowseCategoriesInRegion},
		{BrowseCategoriesInRegion, SearchItemsInRegion}, {BuyNowAuth, BuyNow}, {BuyNow, StoreBuyNow}, {PutBidAuth, PutBid},
		{PutCommentAuth, PutComment}, {PutComment, StoreComment}, {Sell, SelectCategoryToSellItem},
		{SelectCategoryToSellItem, SellItemForm}, {SellItemForm, RegisterItem}, {AboutMeAuth, AboutMe},
	} {
		t[chain[0]][chain[1]] = .99
	}
	return &t
}

// walk is a user's way through the pages.
type walk struct {
	at     State
	before []State // where back leads to, the last one first
}

// step moves as the original does. Its rows are tried in their order until their sum exceeds a
// number below 1, so what comes after a sum of 1 never happens; where the sum stays below 1, the
// user stays. A state that does not lead back forgets what was before.
func (w *walk) step(t *table, r *rand.Rand) (move State) {
	from, sum, n := w.at, 0.0, r.Float64()
	move = from
	for to, chance := range t[from] {
		if sum += chance; n < sum {
			move = State(to)
			break
		}
	}
	switch {
	case move == end:
		*w = walk{at: Home}
	case move == back && len(w.before) > 0:
		last := len(w.before) - 1
		w.at, w.before = w.before[last], w.before[:last]
	case move == back: // no state that leads back is entered without one before it
		panic("rubis: there is no page to go back to")
	case t[move][back] == 0:
		*w = walk{at: move}
	default:
		w.at, w.before = move, append(w.before, from)
	}
	return move
}
