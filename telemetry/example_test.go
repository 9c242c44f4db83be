package telemetry_test

import (
	"context"
	"fmt"
	"log"

	"go.opentelemetry.io/otel"

	"github.com/foresay/foresay"
	"github.com/foresay/foresay/control"
	"github.com/foresay/foresay/telemetry"
)

// The global providers are the program's choice; where it has chosen none, nothing
// is recorded, and nothing is different.
func Example() {
	meter := otel.Meter("checkout")
	requests, err := telemetry.Requests(meter)
	if err != nil {
		log.Fatal(err)
	}
	ctl, err := control.New(control.Config{
		Tracer:    telemetry.NewTracer(otel.GetTracerProvider()),
		OnRequest: []func(*control.RequestRecord){requests},
	})
	if err != nil {
		log.Fatal(err)
	}
	registration, err := telemetry.Register(ctl, meter)
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = registration.Unregister() }()

	ctx, request := ctl.Begin(context.Background(), "/shop.Checkout/Page", "")
	page, err := foresay.Do(ctx, func(context.Context) (string, error) { return "a page", nil }, foresay.WithName("page"))
	request.End(err)
	fmt.Println(page, err)
	// Output: a page <nil>
}
