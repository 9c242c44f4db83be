package calls

import (
	"context"

	"google.golang.org/grpc"
)

// grpcStack is plain grpc-go, what every other stack is compared with.
func grpcStack() stack {
	return stack{
		name: "grpc",
		newServer: func(opts ...grpc.ServerOption) serving {
			s := grpc.NewServer(append(opts, grpc.WaitForHandlers(true))...)
			return serving{server: s, registrar: s, stop: s.Stop}
		},
		dial: func(target string, opts ...grpc.DialOption) (conn, error) {
			return grpc.NewClient(target, opts...)
		},
		chain: sequentialChain,
	}
}

// sequentialChain makes the calls as ordinary code does.
func sequentialChain(ctx context.Context, c caller, a ask, r request) ([]byte, error) {
	payload := firstPayload(r.seed)
	for i := range r.guesses {
		response, err := c[i%len(c)].Work(ctx, a.request(payload))
		if err != nil {
			return nil, err
		}
		payload = response.GetPayload()
	}
	return payload, nil
}
