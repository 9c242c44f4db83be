package driver_test

import (
	"context"
	"fmt"
	"time"

	"github.com/foresay/foresay"
	"github.com/foresay/foresay/control"
	"github.com/foresay/foresay/driver"
)

// stock is a transport whose calls take a while and answer how much of an article there is.
type stock map[string]int

// lookup is a call on its way.
type lookup struct {
	stock   stock
	article string
}

func (l lookup) Start(ctx context.Context, a *driver.Attempt) {
	go func() {
		select {
		case <-time.After(10 * time.Millisecond):
			a.Finish(l.stock[l.article], nil)
		case <-ctx.Done():
			a.Finish(nil, ctx.Err())
		}
	}()
}

func (lookup) Equal(prediction, actual any) bool { return prediction == actual }
func (lookup) Same(a, b any) bool                { return a == b }
func (lookup) Accept(prediction any) (any, bool) { _, ok := prediction.(int); return prediction, ok }

// A stub describes a call, and the engine has it carried: here for code that goes on with a guess.
func Example() {
	site, err := control.NewCallSite(control.CallSiteConfig{Name: "stock/Get", Mode: control.ModeOn,
		Effect: control.EffectNone})
	if err != nil {
		fmt.Println(err)
		return
	}
	all := stock{"tea": 3}
	get := func(ctx context.Context, article string) (int, error) {
		v, err := driver.Perform(ctx, &driver.Operation{
			CallSite: site, Identity: article, Request: article, CanSpeculate: true, Transport: lookup{all, article},
		})
		if err != nil {
			return 0, err
		}
		return v.(int), nil
	}
	n, err := foresay.Do(context.Background(), func(ctx context.Context) (int, error) {
		return get(foresay.Predicting(ctx, 4), "tea") // a wrong guess
	})
	fmt.Println(n, err)
	// Output: 3 <nil>
}
