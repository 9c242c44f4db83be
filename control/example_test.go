package control_test

import (
	"fmt"

	"github.com/foresay/foresay/control"
)

// CallSites observe until somebody switches them on, and go back to that with one call.
func Example() {
	c, err := control.New(control.Config{Budget: 0.2}) // up to 20 % more calls
	if err != nil {
		fmt.Println(err)
		return
	}
	// A connection of specgrpc makes its sites itself.
	site, err := c.NewCallSite(control.CallSiteConfig{Name: "/shop.Prices/Get", Effect: control.EffectNone}, "prices:443")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(site.Mode())
	if err := c.SetMode("/shop.Prices/Get", control.ModeCanary, 0.05); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(site.Mode())
	c.Kill(true)
	for _, s := range c.Status().CallSites {
		fmt.Println(s.Name, s.Mode, s.Origin, "killed:", c.Killed())
	}
	// Output:
	// observe 0
	// canary 0.05
	// /shop.Prices/Get canary runtime killed: true
}
