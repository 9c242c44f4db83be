package predict_test

import (
	"context"
	"fmt"

	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/foresay/foresay/control"
	"github.com/foresay/foresay/predict"
)

// PriceRequest and Price stand for generated messages.
type PriceRequest struct{ Article, Customer string }

type Price struct{ Cents int }

// A site that predicts the price that the customer was last told, or else the
// list price.
func Example() {
	list := map[string]int{"tea": 250, "cup": 400}
	last := predict.LastValue(func(r PriceRequest) string {
		return r.Customer + "/" + r.Article // the seller's own credentials are part of the key anyway
	}, 10_000)
	listed := predict.Func(func(_ context.Context, r PriceRequest) (Price, bool) {
		cents, ok := list[r.Article]
		return Price{cents}, ok
	})
	site, err := control.NewCallSite(control.CallSiteConfig{
		Name:       "/shop.Prices/Get",
		Effect:     control.EffectNone,
		Predictors: []control.Predictor{predict.Chain(last, listed)},
	})
	if err != nil {
		fmt.Println(err)
		return
	}

	ctx, p := context.Background(), site.Config().Predictors[0]
	fmt.Println(p.Predict(ctx, PriceRequest{"tea", "ann"}))
	p.Learn(ctx, PriceRequest{"tea", "ann"}, Price{225}) // the engine does this once a response is confirmed
	fmt.Println(p.Predict(ctx, PriceRequest{"tea", "ann"}))
	fmt.Println(p.Predict(ctx, PriceRequest{"tea", "bob"}))
	fmt.Println(p.Predict(ctx, PriceRequest{"pot", "bob"}))
	// Output:
	// [{250}]
	// [{225}]
	// [{250}]
	// []
}

func ExampleNewTable() {
	table, err := predict.NewTable(predict.TableConfig[string]{
		Key:      func(route string) string { return route },
		Guesses:  2,
		MinShare: 0.3,
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx := context.Background()
	for _, replica := range []string{"west", "east", "west", "east", "west", "north"} {
		table.Learn(ctx, "/nearest", replica)
	}
	fmt.Println(table.Predict(ctx, "/nearest"))
	// Output: [west east]
}

func ExamplePerPrincipal() {
	type user struct{}
	p := predict.PerPrincipal(
		func(ctx context.Context) string { name, _ := ctx.Value(user{}).(string); return name },
		1000,
		func() predict.Predictor {
			return predict.LastValue(func(account string) string { return account }, 100)
		},
	)
	ann := context.WithValue(context.Background(), user{}, "ann")
	eve := context.WithValue(context.Background(), user{}, "eve")
	p.Learn(ann, "savings", 12_000)
	fmt.Println(p.Predict(ann, "savings"), p.Predict(eve, "savings"))
	// Output: [12000] []
}

// Prices that are the same for all are predicted whoever asked before; what is
// in the basket only to whom it belongs.
func ExampleNewLast() {
	byArticle := func(r PriceRequest) string { return r.Article }
	prices, err := predict.NewLast(predict.LastConfig[PriceRequest]{
		Key: byArticle, Public: true, MaxEntries: 50_000, MaxBytes: 64e6,
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	baskets := predict.LastValue(byArticle, 50_000)

	ann := metadata.AppendToOutgoingContext(context.Background(), "authorization", "Bearer ann's")
	eve := metadata.AppendToOutgoingContext(context.Background(), "authorization", "Bearer eve's")
	prices.Learn(ann, PriceRequest{Article: "tea"}, Price{250})
	baskets.Learn(ann, PriceRequest{Article: "tea"}, 3)
	fmt.Println(prices.Predict(ann, PriceRequest{Article: "tea"}), prices.Predict(eve, PriceRequest{Article: "tea"}))
	fmt.Println(baskets.Predict(ann, PriceRequest{Article: "tea"}), baskets.Predict(eve, PriceRequest{Article: "tea"}))
	// Output:
	// [{250}] [{250}]
	// [3] []
}

// A predictor from a configuration file.
func ExampleNew() {
	cfg, err := predict.ParseConfig([]byte(`{"kind": "chain", "of": [
	  {"kind": "last", "entries": 10000, "bytes": "64MB", "public": true},
	  {"kind": "constant", "value": "unknown"}
	]}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	text := wrapperspb.File_google_protobuf_wrappers_proto.Messages().ByName("StringValue")
	p, err := predict.New(cfg, predict.Messages{Request: text, Response: text})
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx, request := context.Background(), wrapperspb.String("capital of France")
	fmt.Println(p.Predict(ctx, request)[0].(*wrapperspb.StringValue).GetValue())
	p.Learn(ctx, request, wrapperspb.String("Paris"))
	fmt.Println(p.Predict(ctx, request)[0].(*wrapperspb.StringValue).GetValue())
	// Output:
	// unknown
	// Paris
}
