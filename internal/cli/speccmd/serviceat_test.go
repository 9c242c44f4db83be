package speccmd

import (
	"testing"

	"github.com/foresay/foresay/dash"
)

// TestServiceAt: an address in any form is a page's URL.
func TestServiceAt(t *testing.T) {
	for arg, want := range map[string]dash.Service{
		"a:1":                   {URL: "http://a:1/debug/foresay/"},
		"https://a":             {URL: "https://a/debug/foresay/"},
		"http://a:1/x/foresay/": {URL: "http://a:1/x/foresay/"},
		"pay=[::1]:80":          {Name: "pay", URL: "http://[::1]:80/debug/foresay/"},
	} {
		if got, err := serviceAt(arg); err != nil || got.URL != want.URL || got.Name != want.Name {
			t.Errorf("%s: %+v, %v", arg, got, err)
		}
	}
}
