package specgrpc_test

import (
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/foresay/foresay/control"
	"github.com/foresay/foresay/specgrpc"
)

// A site of code is refused as one of a file is: for a method that its service does
// not have, under the name of a stream, twice.
func TestCallSitesOfNoMethod(t *testing.T) {
	for name, tt := range map[string]struct {
		methods []string
		want    string
	}{
		"no such method":       {[]string{"/foresay.testkv.v1.TestKV/Gett"}, "it has: "},
		"an unknown service":   {[]string{"/foresay.testkv.v1.Other/Gett"}, ""},
		"a misspelt service":   {[]string{"/foresay.testkv.v1.TestVK/Get"}, "did you mean foresay.testkv.v1.TestKV?"},
		"a speculative stream": {[]string{getMethod + ".spec"}, "name the method itself"},
		"twice":                {[]string{getMethod, getMethod}, "configured twice"},
		"no method":            {[]string{"Get"}, "/pkg.Service/Method"},
	} {
		t.Run(name, func(t *testing.T) {
			var sites []control.CallSiteConfig
			for _, m := range tt.methods {
				sites = append(sites, control.CallSiteConfig{Name: m})
			}
			cc, err := specgrpc.NewClient("passthrough:///nobody", grpc.WithTransportCredentials(insecure.NewCredentials()),
				specgrpc.WithCallSites(sites...))
			if err == nil {
				cc.Close()
			}
			if got := err == nil; got != (tt.want == "") || !got && (!strings.Contains(err.Error(), tt.want)) {
				t.Errorf("got %v, want an error that says %q", err, tt.want)
			}
		})
	}
}
