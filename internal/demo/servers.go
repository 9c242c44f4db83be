package demo

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/foresay/foresay"
	demov1 "github.com/foresay/foresay/api/foresay/demo/v1"
	"github.com/foresay/foresay/wan/shape"
)

// How long the servers take.
const (
	syncDelay    = 80 * time.Millisecond // the data server asks the primary replica
	analyseDelay = 5 * time.Millisecond
	gatherDelay  = 60 * time.Millisecond // the analysis server gathers aggregate information
	compute      = 30 * time.Millisecond // the client's own work
)

// dataServer keeps the users' histories. It holds a local replica, which it
// predicts from, and must ask the primary before it answers.
type dataServer struct {
	demov1.UnimplementedDataServiceServer
	demov1.UnimplementedShopServer

	mu        sync.Mutex
	histories map[string][]*demov1.Purchase
	// stale users' local replicas lack the newest purchases, as many as lag says:
	// what is predicted from them is often wrong.
	stale map[string]bool
	lag   int
	keep  int // how many purchases of a user are kept; 0: all
}

func newDataServer(users, staleUsers int) *dataServer {
	d := &dataServer{histories: map[string][]*demov1.Purchase{}, stale: map[string]bool{}, lag: 2}
	for i := range users {
		u := user(i)
		for n := range 3 {
			d.histories[u] = append(d.histories[u], item(i+n))
		}
		d.stale[u] = i < staleUsers
	}
	return d
}

func user(i int) string { return fmt.Sprintf("user%02d", i) }

// interests of the demo's world, each with an item.
var interests = [...]string{"chess", "sailing", "jazz", "botany", "maps", "tea", "clocks"} //tidy:ok a constant table

func item(n int) *demov1.Purchase {
	interest := interests[n%len(interests)]
	return &demov1.Purchase{Item: fmt.Sprintf("%s book %d", interest, n), Interest: interest,
		PriceCents: uint32(1000 + 10*n)}
}

func (d *dataServer) history(u string, replica bool) *demov1.GetPHResponse {
	d.mu.Lock()
	defer d.mu.Unlock()
	h := d.histories[u]
	if replica && d.stale[u] {
		h = h[:max(0, len(h)-d.lag)]
	}
	return &demov1.GetPHResponse{Purchases: slices.Clone(h)}
}

// GetPH answers early from the local replica, and then as the primary says.
func (d *dataServer) GetPH(ctx context.Context, req *demov1.GetPHRequest) (*demov1.GetPHResponse, error) {
	if err := foresay.Predict(ctx, d.history(req.GetUser(), true)); err != nil {
		return nil, err
	}
	if err := shape.Pause(ctx, syncDelay); err != nil {
		return nil, err
	}
	return d.history(req.GetUser(), false), nil
}

// Buy records a purchase.
func (d *dataServer) Buy(_ context.Context, req *demov1.BuyRequest) (*demov1.BuyResponse, error) {
	if req.GetPurchase() == nil {
		return nil, status.Error(codes.InvalidArgument, "no purchase")
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	h := append(d.histories[req.GetUser()], proto.CloneOf(req.GetPurchase()))
	if d.keep > 0 {
		h = h[max(0, len(h)-d.keep):]
	}
	d.histories[req.GetUser()] = h
	return &demov1.BuyResponse{Number: uint32(len(h))}, nil
}

// analysisServer finds out what users like.
type analysisServer struct {
	demov1.UnimplementedAnalysisServiceServer
	data demov1.DataServiceClient

	mu    sync.Mutex
	known map[string]*demov1.GetAIResponse // what it answered before
}

// GetPI is ordinary code: its call of GetPH may return a prediction.
func (a *analysisServer) GetPI(ctx context.Context, req *demov1.GetPIRequest) (*demov1.GetPIResponse, error) {
	h, err := a.data.GetPH(ctx, &demov1.GetPHRequest{User: req.GetUser()})
	if err != nil {
		return nil, err
	}
	if err := shape.Pause(ctx, analyseDelay); err != nil {
		return nil, err
	}
	count := map[string]int{}
	var names []string
	for _, p := range h.GetPurchases() {
		if count[p.GetInterest()] == 0 {
			names = append(names, p.GetInterest())
		}
		count[p.GetInterest()]++
	}
	slices.SortFunc(names, func(a, b string) int {
		if count[a] != count[b] {
			return count[b] - count[a]
		}
		return strings.Compare(a, b)
	})
	return &demov1.GetPIResponse{Interests: names[:min(len(names), 3)]}, nil
}

// GetAI answers early what it answered before, and gathers the actual answer.
func (a *analysisServer) GetAI(ctx context.Context, req *demov1.GetAIRequest) (*demov1.GetAIResponse, error) {
	key := strings.Join(req.GetInterests(), ",")
	a.mu.Lock()
	before := a.known[key]
	a.mu.Unlock()
	if before != nil {
		if err := foresay.Predict(ctx, before); err != nil {
			return nil, err
		}
	}
	if err := shape.Pause(ctx, gatherDelay); err != nil {
		return nil, err
	}
	answer := &demov1.GetAIResponse{Users: uint32(100 + len(key))}
	for i, interest := range req.GetInterests() {
		answer.Popular = append(answer.Popular, &demov1.Popular{
			Item: interest + " almanac", Interest: interest, PriceCents: uint32(500 + 10*len(interest)), Buyers: uint32(10 - i),
		})
	}
	// What the server learns must be confirmed: see "Containment" in docs/guide.md.
	foresay.OnCommit(ctx, func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		a.known[key] = answer
	})
	return answer, nil
}
