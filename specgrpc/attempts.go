package specgrpc

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/foresay/foresay/driver"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
)

// attempts follows one call of a confirmed caller through the attempts that grpc makes of it: those
// of the service config's retryPolicy, and those after a stream that the peer did not process. grpc
// decides on them inside of RecvMsg, and each waits for a stream again, while speculative calls
// that wait for its answer may have them all. Nobody is told when such an attempt begins but stats
// handlers, which every call would pay for, and per-RPC credentials, which are asked for once in
// each attempt, right before it asks for its stream. So attempts is that: credentials around the
// caller's own, if there are any.
//
// It is not told when the attempt has its stream. Unless that is certain for another reason, a
// speculative stream gives way after suspectAfter, and others as long as the call goes on and no
// call gets a stream, at intervals that double: on a connection where little happens a slow answer
// looks the same. Where as many streams were open at once before, they give way much later, as the
// peer may admit fewer now.
type attempts struct {
	conn    *ClientConn
	attempt *driver.Attempt // of a call that was sent plainly ahead; nil for others
	option  grpc.PerRPCCredsCallOption
	few     [4]grpc.CallOption            // what the options begin with
	own     credentials.PerRPCCredentials // the caller's, or nil
	method  string                        // that the call is one of, if its stream's path is another one
	made    atomic.Int32
	unasked atomic.Bool // it has yet to ask for the stream that it counts as having, see room.ample

	mu   sync.Mutex
	over bool
	stop func() // ends the watch for a later attempt; nil if there is none
}

// follow returns the options with which to make the call.
func (a *attempts) follow(opts []grpc.CallOption) []grpc.CallOption {
	a.option.Creds = a
	for i := len(opts) - 1; i >= 0; i-- {
		switch o := opts[i].(type) {
		case grpc.PerRPCCredsCallOption:
			a.own = o.Creds
		case *grpc.PerRPCCredsCallOption:
			a.own = o.Creds
		default:
			continue
		}
		out := append(a.few[:0], opts...)
		out[i] = &a.option
		return out
	}
	// Options that follow may hold credentials that are not seen here. They count then.
	return append(append(a.few[:0], &a.option), opts...)
}

// RequireTransportSecurity is that of the caller's credentials.
func (a *attempts) RequireTransportSecurity() bool {
	return a.own != nil && a.own.RequireTransportSecurity()
}

// GetRequestMetadata returns that of the caller's credentials.
func (a *attempts) GetRequestMetadata(ctx context.Context, uri ...string) (md map[string]string, err error) {
	own := a.own
	if own != nil && a.method != "" {
		own = methodCredentials{own, a.method}
	}
	if own != nil {
		if md, err = own.GetRequestMetadata(ctx, uri...); err != nil {
			return nil, err
		}
	}
	a.asks()
	if a.made.Add(1) > 1 && (a.attempt == nil || !a.attempt.Speculative()) {
		a.again()
	}
	return md, nil
}

// asks notes that the call asks for its stream, or has ended.
func (a *attempts) asks() {
	if a.unasked.CompareAndSwap(true, false) {
		a.conn.half.room.asked()
	}
}

// surePatience is how long nothing happens on a connection before streams give way to an attempt
// that should have its own.
const surePatience = time.Second

// again makes room for an attempt that is about to ask for a stream.
func (a *attempts) again() {
	half := &a.conn.half
	sure, since := half.room.again()
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.over {
		return
	}
	a.stopWatch()
	relief := time.AfterFunc(suspectAfter, func() {
		if !sure {
			half.room.relieve(since)
		}
	})
	stills, next, still := 0, 1, patience
	if sure {
		still = surePatience
	}
	done := a.conn.whileWaiting(still, func() (again bool) {
		if stills++; stills == next {
			stills, next = 0, 2*next
			half.relent()
		}
		return true
	})
	a.stop = func() {
		relief.Stop()
		done()
	}
}

// end notes that the call is over.
func (a *attempts) end() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.over = true
	a.stopWatch()
}

// stopWatch ends the watch for an attempt. Under mu.
func (a *attempts) stopWatch() {
	if a.stop != nil {
		a.stop()
	}
}
