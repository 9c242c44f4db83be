package docs_test

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"google.golang.org/grpc"

	"github.com/foresay/foresay/specgrpc"
)

// authorised is what the guide shows.
func authorised(policy struct {
	UnaryInterceptor  grpc.UnaryServerInterceptor
	StreamInterceptor grpc.StreamServerInterceptor
}) *specgrpc.Server {
	server := specgrpc.NewServer(grpc.ChainUnaryInterceptor(policy.UnaryInterceptor),
		grpc.ChainStreamInterceptor(policy.StreamInterceptor))
	return server
}

// TestRulesByPath: the guide's expressions for a method match it and its speculative
// stream, and nothing else; where there are none, both paths are named.
func TestRulesByPath(t *testing.T) {
	authorised(struct {
		UnaryInterceptor  grpc.UnaryServerInterceptor
		StreamInterceptor grpc.StreamServerInterceptor
	}{}).Stop()
	page, err := os.ReadFile("guide.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(page), "## Proxies and rules by path\n")
	section, _, _ = strings.Cut(section, "\n## ")
	rules := 0
	for _, block := range strings.Split(section, "```")[1:] {
		for _, m := range regexp.MustCompile(`(?:regex: |location ~ |method: )['"](.*?)['"]`).FindAllStringSubmatch(block,
			-1) {
			rules++
			rule := regexp.MustCompile("^(?:" + m[1] + ")$")
			prefix := ""
			if strings.HasPrefix(strings.TrimPrefix(m[1], "^"), "/") {
				prefix = "/shop.Shop/"
			}
			for path, want := range map[string]bool{"Buy": true, "Buy.spec": true, "BuyAll": false, "Buyxspec": false,
				"Sell.spec": false} {
				if got := rule.MatchString(prefix + path); got != want {
					t.Errorf("%s matches %s%s: %v", m[1], prefix, path, got)
				}
			}
		}
		if strings.Contains(block, `"/shop.Shop/Buy"`) && !strings.Contains(block, `"/shop.Shop/Buy.spec"`) {
			t.Errorf("a rule without the speculative stream:%s", block)
		}
	}
	if rules != 4 {
		t.Errorf("found %d expressions, want 4", rules)
	}
}
