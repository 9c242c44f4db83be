package calls

import (
	"context"

	"github.com/foresay/foresay"
	benchv1 "github.com/foresay/foresay/api/foresay/bench/v1"
	"github.com/foresay/foresay/control"
	"github.com/foresay/foresay/specgrpc"
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

// A variant says how Foresay is configured. Stacks of one name and variant share their connections.
type variant struct {
	// off switches predictions off at all sites.
	off bool
	// fused has sites trip by what their guesses are worth, as they do by default. Else all guesses
	// are made.
	fused bool
	// calls is how many a chain has, where that decides what guesses are worth: then connections
	// are not shared by loads of different chains.
	calls int
	// asking has clients ask servers for predictions, which takes all calls of tasks over
	// speculative streams.
	asking bool
	// replayable lets handlers run again, so that their own calls may return predictions.
	replayable bool
	// streams is how many streams servers admit on a connection, 0 for any number.
	streams int
	// halfOpen is how many calls servers run for speculative callers, 0 for the default, and staged
	// says that their calls have effects, which they keep back until the callers' word, and which
	// commute.
	halfOpen int
	staged   bool
	// bytes is the size of the payloads, if it is not the usual one, and grouped says that each
	// chain is a request to be observed.
	bytes   int
	grouped bool
}

// foresayStack is Foresay, installed at clients and servers.
func foresayStack(name string, v variant, chain chainFunc) stack {
	site := control.CallSiteConfig{Name: benchv1.Bench_Work_FullMethodName, ServerPredictions: v.asking}
	if v.off {
		site.Mode = control.ModeOff
	}
	if v.staged {
		site.Effect = control.EffectStaged
		site.ConflictKey = func(request any) string { return string(request.(*benchv1.WorkRequest).GetPayload()) }
	}
	return stack{
		name:    name,
		variant: v,
		newServer: func(opts ...grpc.ServerOption) serving {
			s := grpc.NewServer(append(opts, grpc.WaitForHandlers(true))...)
			var options []specgrpc.ServerOption
			if v.replayable {
				options = append(options, specgrpc.AllReplayable())
			}
			if v.halfOpen > 0 {
				options = append(options, specgrpc.WithMaxHalfOpenCalls(v.halfOpen))
			}
			if v.staged {
				options = append(options, specgrpc.Stages(benchv1.Bench_Work_FullMethodName))
			}
			return serving{server: s, registrar: specgrpc.Registrar(s, options...), stop: s.Stop}
		},
		dial: func(target string, opts ...grpc.DialOption) (conn, error) {
			var cfg control.Config
			if !v.fused {
				cfg.Budget = -1 // guesses are what is measured
			}
			ctl, err := control.New(cfg)
			if err != nil {
				return nil, err
			}
			return specgrpc.NewClient(target, append(opts, specgrpc.WithCallSites(site), specgrpc.WithMode(control.ModeOn),
				specgrpc.WithControl(ctl))...)
		},
		predict: func(ctx context.Context, response *benchv1.WorkResponse) error {
			return foresay.Predict(ctx, response)
		},
		chain: chain,
	}
}

// foresayOff is everything installed and nothing used: plain code over the same connections.
func foresayOff(v variant) stack {
	v.off, v.asking = true, false
	return foresayStack("foresay-off", v, sequentialChain)
}

// foresayDo runs the plain code in Do.
func foresayDo(v variant) stack {
	return foresayStack("foresay-do", v, func(ctx context.Context, c caller, a ask, r request) ([]byte, error) {
		return foresay.Do(ctx, func(ctx context.Context) ([]byte, error) {
			payload := firstPayload(r.seed)
			for i, g := range r.guesses {
				var err error
				if payload, err = predictedCall(ctx, c[i%len(c)], a, payload, g); err != nil {
					return nil, err
				}
			}
			return payload, nil
		})
	})
}

// foresayThen makes the calls as futures, each attached to the one before.
func foresayThen(v variant) stack {
	return foresayStack("foresay-then", v, func(ctx context.Context, c caller, a ask, r request) ([]byte, error) {
		f := foresay.Go(ctx, func(ctx context.Context) ([]byte, error) {
			return predictedCall(ctx, c[0], a, firstPayload(r.seed), r.guesses[0])
		})
		for i, g := range r.guesses[1:] {
			client := c[(i+1)%len(c)]
			f = foresay.Then(f, func(ctx context.Context, payload []byte) ([]byte, error) {
				return predictedCall(ctx, client, a, payload, g)
			})
		}
		return f.Wait(ctx)
	})
}

// predictedCall makes one call and offers the guess as its prediction.
func predictedCall(ctx context.Context, client benchv1.BenchClient, a ask, payload []byte, g guess) ([]byte, error) {
	switch g {
	case rightGuess:
		ctx = foresay.Predicting(ctx, &benchv1.WorkResponse{Payload: answer(payload)})
	case wrongGuess:
		ctx = foresay.Predicting(ctx, &benchv1.WorkResponse{Payload: wrongAnswer(payload)})
	}
	response, err := client.Work(ctx, a.request(payload))
	return response.GetPayload(), err
}
