package foresay_test

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/foresay/foresay/driver"

	"github.com/foresay/foresay"
	"github.com/foresay/foresay/control"
	"github.com/foresay/foresay/report"
)

// shopClient stands for a generated gRPC client on a specgrpc connection. Its
// calls take 20 ms.
type shopClient struct {
	prices, orders *control.CallSite
	listed         int // what a cup of tea costs, in cents
}

func newShop() *shopClient {
	return &shopClient{
		prices: declare(control.CallSiteConfig{Name: "/shop.Prices/Get", Mode: control.ModeOn, Effect: control.EffectNone}),
		orders: declare(control.CallSiteConfig{Name: "/shop.Orders/Put", Mode: control.ModeOn,
			Effect: control.EffectImmediate}),
		listed: 225,
	}
}

func declare(cfg control.CallSiteConfig) *control.CallSite {
	s, err := control.NewCallSite(cfg)
	if err != nil {
		panic(err)
	}
	return s
}

// Price returns an article's price in cents.
func (s *shopClient) Price(ctx context.Context, article string) (int, error) {
	return s.call(ctx, s.prices, article, s.listed)
}

// Shipping returns what it costs to send something of this value.
func (s *shopClient) Shipping(ctx context.Context, cents int) (int, error) {
	return s.call(ctx, s.prices, fmt.Sprint("shipping ", cents), cents/10)
}

// Order returns the number of the order.
func (s *shopClient) Order(ctx context.Context, cents int) (int, error) {
	return s.call(ctx, s.orders, fmt.Sprint("order ", cents), 4711)
}

func (s *shopClient) call(ctx context.Context, site *control.CallSite, request string, response int) (int, error) {
	v, err := driver.Perform(ctx, &driver.Operation{
		CallSite: site, Conn: "shop", Identity: request, Request: request, CanSpeculate: true, Transport: answer(response),
	})
	if err != nil {
		return 0, err
	}
	return v.(int), nil
}

// answer is a transport that gives this answer to every call.
type answer int

func (v answer) Start(ctx context.Context, a *driver.Attempt) {
	go func() {
		select {
		case <-time.After(20 * time.Millisecond):
			a.Finish(int(v), nil)
		case <-ctx.Done():
			a.Finish(nil, ctx.Err())
		}
	}()
}

func (answer) Equal(prediction, actual any) bool { return prediction == actual }
func (answer) Same(a, b any) bool                { return a == b }
func (answer) Accept(prediction any) (any, bool) { _, ok := prediction.(int); return prediction, ok }

// The price is predicted, so the call that depends on it does not wait for it:
// both together take as long as one.
func ExampleDo() {
	shop := newShop()
	total, err := foresay.Do(context.Background(), func(ctx context.Context) (int, error) {
		price, err := shop.Price(foresay.Predicting(ctx, 225), "tea")
		if err != nil {
			return 0, err
		}
		shipping, err := shop.Shipping(ctx, price)
		if err != nil {
			return 0, err
		}
		return price + shipping, nil
	})
	fmt.Println(total, err)
	// Output: 247 <nil>
}

// A wrong prediction costs time and changes nothing: the function runs again
// with the actual price.
func ExamplePredicting() {
	shop := newShop()
	total, err := foresay.Do(context.Background(), func(ctx context.Context) (int, error) {
		price, err := shop.Price(foresay.Predicting(ctx, 300, 250), "tea")
		return price, err
	})
	fmt.Println(total, err)
	// Output: 225 <nil>
}

// Futures run again only what depends on a wrong guess: here the function given
// to Then, once for 250 and once for 225.
func ExampleThen() {
	shop := newShop()
	ctx := context.Background()
	price := foresay.Go(ctx, func(ctx context.Context) (int, error) {
		return shop.Price(ctx, "tea")
	}, foresay.Guess(250))
	total := foresay.Then(price, func(ctx context.Context, price int) (int, error) {
		shipping, err := shop.Shipping(ctx, price)
		return price + shipping, err
	})
	fmt.Println(total.Wait(ctx))
	// Output: 247 <nil>
}

// Goroutines within a task are a Group's, so that a run that takes the place of
// another knows which of them made which call.
func ExampleGroup() {
	shop := newShop()
	total, err := foresay.Do(context.Background(), func(ctx context.Context) (int, error) {
		articles := []string{"tea", "cup", "pot"}
		prices := make([]int, len(articles)) // of this run: each has its own
		g := foresay.NewGroup(ctx)
		for i, article := range articles {
			g.Go(func(ctx context.Context) (err error) {
				prices[i], err = shop.Price(foresay.Predicting(ctx, 225), article)
				return err
			})
		}
		if err := g.Wait(); err != nil {
			return 0, err
		}
		return prices[0] + prices[1] + prices[2], nil
	})
	fmt.Println(total, err)
	// Output: 675 <nil>
}

// After a Barrier the run is confirmed: what follows happens once and may touch
// the world.
func ExampleBarrier() {
	shop := newShop()
	_, err := foresay.Do(context.Background(), func(ctx context.Context) (int, error) {
		price, err := shop.Price(foresay.Predicting(ctx, 250), "tea")
		if err != nil {
			return 0, err
		}
		if err := foresay.Barrier(ctx); err != nil {
			return 0, err // the price was another one
		}
		fmt.Println("the price is", price)
		return price, nil
	})
	fmt.Println(err)
	// Output:
	// the price is 225
	// <nil>
}

// Act is for an effect in the middle of a task. The function runs twice, since
// the price is another one than predicted, and prints one receipt.
func ExampleAct() {
	shop := newShop()
	number, err := foresay.Do(context.Background(), func(ctx context.Context) (int, error) {
		if _, err := foresay.Act(ctx, "receipt", func(context.Context) (bool, error) {
			fmt.Println("printing a receipt")
			return true, nil
		}); err != nil {
			return 0, err
		}
		price, err := shop.Price(foresay.Predicting(ctx, 250), "tea")
		if err != nil {
			return 0, err
		}
		return shop.Order(ctx, price)
	})
	fmt.Println(number, err)
	// Output:
	// printing a receipt
	// 4711 <nil>
}

// A loop hands its state on from step to step. The guess at the second price is wrong: that repeats
// the second step and what followed, and not the first one.
func ExampleLoop() {
	shop := newShop()
	articles := []string{"tea", "more tea", "yet more tea"}
	guesses := []int{225, 250, 225}
	type bill struct{ lines, total int }
	sum, err := foresay.Loop(context.Background(), bill{}, func(ctx context.Context, b bill) (bill, bool, error) {
		price, err := shop.Price(foresay.Predicting(ctx, guesses[b.lines]), articles[b.lines])
		if err != nil {
			return b, true, err
		}
		b = bill{b.lines + 1, b.total + price}
		foresay.OnCommit(ctx, func() { fmt.Println("line", b.lines, "total", b.total) })
		return b, b.lines == len(articles), nil
	})
	fmt.Println(sum.total, err)
	// Output:
	// line 1 total 225
	// line 2 total 450
	// line 3 total 675
	// 675 <nil>
}

// Memo keeps what a run finds by chance the same for the runs after it.
func ExampleMemo() {
	shop := newShop()
	drawn := 0
	number, err := foresay.Do(context.Background(), func(ctx context.Context) (int, error) {
		lot, err := foresay.Memo(ctx, "lot", func(context.Context) (int, error) {
			drawn++ // a random number, the time, a local file
			return drawn, nil
		})
		if err != nil {
			return 0, err
		}
		_, err = shop.Price(foresay.Predicting(ctx, 250), "tea") // wrong: all this runs twice
		return lot, err
	})
	fmt.Println(number, err, "drawn:", drawn)
	// Output: 1 <nil> drawn: 1
}

// Hooks hold back what the code does besides its calls, or undo it. The first
// run goes on with 250 and is discarded; the second one counts.
func ExampleOnCommit() {
	shop := newShop()
	_, err := foresay.Do(context.Background(), func(ctx context.Context) (int, error) {
		foresay.OnRollback(ctx, func() { fmt.Println("put the tea back") })
		price, err := shop.Price(foresay.Predicting(ctx, 250), "tea")
		if err != nil {
			return 0, err
		}
		foresay.OnCommit(ctx, func() { fmt.Println("sold for", price) })
		return price, nil
	})
	fmt.Println(err)
	// Output:
	// put the tea back
	// sold for 225
	// <nil>
}

// What depends on a quorum goes on with the first replica's answer.
func ExampleQuorum() {
	ctx := context.Background()
	shop := newShop()
	read := func(ctx context.Context) (int, error) { return shop.Price(ctx, "tea") }
	price := foresay.Quorum(2, nil, foresay.Go(ctx, read), foresay.Go(ctx, read), foresay.Go(ctx, read))
	total := foresay.Then(price, func(ctx context.Context, price int) (int, error) {
		shipping, err := shop.Shipping(ctx, price)
		return price + shipping, err
	})
	fmt.Println(total.Wait(ctx))
	// Output: 247 <nil>
}

// Tasks report to whoever asks. The timeline of a real task has real times.
func ExampleWithReport() {
	shop := newShop()
	_, err := foresay.Do(context.Background(), func(ctx context.Context) (int, error) {
		return shop.Price(foresay.Predicting(ctx, 225), "tea")
	}, foresay.WithName("buy"), foresay.WithReport(func(r *report.Report) {
		if err := r.WriteTimeline(os.Stdout, 100); err != nil {
			fmt.Println(err)
		}
	}))
	if err != nil {
		fmt.Println(err)
	}
}
