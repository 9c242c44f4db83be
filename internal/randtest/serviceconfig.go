package randtest

import (
	"fmt"
	"strings"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// Half of the worlds have a service config: of methods, of the service or of all. In
// those in which it retries, handlers fail now and then, and gRPC makes up for it:
// sequential code never hears of it. Not where the network fails too, since what may
// have taken effect is then sent again, as the config says.

// retries reports whether the world's service config retries.
func (sc *Scenario) retries() bool {
	return sc.retried || !sc.Faults && sc.chance.percent(50, "service config") && sc.chance.percent(60, "retries")
}

// serviceConfig returns the dial options for the world's service config.
func (sc *Scenario) serviceConfig() []grpc.DialOption {
	if !sc.retried && !sc.chance.percent(50, "service config") {
		return nil
	}
	const service = `"service": "foresay.testkv.v1.TestKV"`
	names := []string{
		"{}", "{" + service + "}",
		"{" + service + `, "method": "Get"}, {` + service + `, "method": "Put"}, {` + service + `, "method": "Append"}, {` +
			service + `, "method": "RelayRead"}, {` + service + `, "method": "RelayWrite"}`,
	}
	var says []string
	if sc.retries() {
		says = append(says, `"retryPolicy": {"maxAttempts": 5, "initialBackoff": "0.001s", "maxBackoff": "0.001s", "backoffMultiplier": 1, "retryableStatusCodes": ["UNAVAILABLE"]}`)
	}
	for _, field := range []string{`"timeout": "25s"`, `"waitForReady": true`, `"waitForReady": false`,
		`"maxRequestMessageBytes": 100000`, `"maxResponseMessageBytes": 100000`} {
		name, _, _ := strings.Cut(field, ":")
		if sc.chance.percent(40, "field", field) && !strings.Contains(strings.Join(says, ""), name) {
			says = append(says, field)
		}
	}
	if len(says) == 0 {
		return nil
	}
	name := names[sc.chance.below(len(names), "level")]
	return []grpc.DialOption{grpc.WithDefaultServiceConfig(fmt.Sprintf(`{"methodConfig": [{"name": [%s], %s}]}`, name,
		strings.Join(says, ", ")))}
}

// failures counts how often handlers failed, by place.
type failures struct {
	mu sync.Mutex
	at map[string]int
}

// failing returns an error for the first attempts at some places, if gRPC retries.
func (s *kvServer) failing(in *invocation) error {
	w := s.w
	often := 20
	if w.sc.retried {
		often = 50
	}
	if !w.sc.retries() || !w.sc.chance.percent(often, "fails", in.at) {
		return nil
	}
	w.failures.mu.Lock()
	defer w.failures.mu.Unlock()
	if w.failures.at == nil {
		w.failures.at = make(map[string]int)
	}
	if w.failures.at[in.at] > w.sc.chance.below(3, "failures", in.at) {
		return nil
	}
	w.failures.at[in.at]++
	return status.Error(codes.Unavailable, "try again")
}
