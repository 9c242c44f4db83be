package specgrpc

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/foresay/foresay/driver"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/mem"
)

// attempts follows one call of a confirmed caller through the attempts that grpc makes of it: those
// of the service config's retryPolicy, and those after a stream that the peer did not process. grpc
// decides on them inside of RecvMsg, and each waits for a stream again, while speculative calls
// that wait for its answer may have them all. Nobody is told when such an attempt begins but stats
// handlers, which every call would pay for, and per-RPC credentials, which are asked for once in
// each attempt, right before it asks for its stream. So attempts is that: credentials around the
// caller's own, if there are any.
//
// Where nobody else watches whether the call gets its first stream, attempts is grpc's codec, too,
// which is asked for the request once that stream is there. No later one is seen. Unless that is
// certain for another reason, a speculative stream gives way after suspectAfter, and others as long
// as the call goes on and no call gets a stream, at intervals that double: on a connection where
// little happens a slow answer looks the same. Where as many streams were open at once before, they
// give way much later, as the peer may admit fewer now.
type attempts struct {
	conn    *ClientConn
	attempt *driver.Attempt // of a call that was sent plainly ahead; nil for others
	option  grpc.PerRPCCredsCallOption
	coded   grpc.ForceCodecV2CallOption
	few     [5]grpc.CallOption            // what the options begin with
	own     credentials.PerRPCCredentials // the caller's, or nil
	method  string                        // that the call is one of, if its stream's path is another one
	made    atomic.Int32

	mu    sync.Mutex
	stage stage
	since look // it waits
	over  bool
	stop  func() // ends the watch for a later attempt; nil if there is none
}

// stage is how far a call is on the way to its first stream.
type stage uint8

const (
	stageElsewhere stage = iota // others watch it
	stageUnasked                // grpc is not asked yet
	stageWaiting
	stageOpen
)

// follow returns the options with which to make the call.
func (a *attempts) follow(opts []grpc.CallOption) []grpc.CallOption {
	a.option.Creds = a
	out := a.few[:0]
	if a.stage == stageUnasked {
		a.coded.CodecV2 = a
		out = append(out, &a.coded)
	}
	for i := len(opts) - 1; i >= 0; i-- {
		switch o := opts[i].(type) {
		case grpc.PerRPCCredsCallOption:
			a.own = o.Creds
		case *grpc.PerRPCCredsCallOption:
			a.own = o.Creds
		default:
			continue
		}
		i += len(out)
		out = append(out, opts...)
		out[i] = &a.option
		return out
	}
	// Options that follow may hold credentials that are not seen here. They count then.
	return append(append(out, &a.option), opts...)
}

// firstSeen has the call's first stream seen if nobody else watches for it.
func (a *attempts) firstSeen(opts []grpc.CallOption) bool {
	if a.conn.codec == nil || !plainCodec(opts) || !a.conn.half.room.asksLater() {
		return false
	}
	a.stage = stageUnasked
	return true
}

// Marshal is that of grpc's codec for protocol buffers, and so is Unmarshal. The call has its
// stream.
func (a *attempts) Marshal(v any) (mem.BufferSlice, error) {
	a.mu.Lock()
	a.asks()
	if a.stage == stageWaiting {
		a.stage = stageOpen
		a.conn.half.opened.Add(1)
		a.conn.half.room.got(a.since, true)
	}
	a.mu.Unlock()
	return a.conn.codec.Marshal(v)
}

func (a *attempts) Unmarshal(data mem.BufferSlice, v any) error {
	return a.conn.codec.Unmarshal(data, v)
}

// Name is empty, as that of no codec is: the call does not name one to the peer either.
func (a *attempts) Name() string { return "" }

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
	a.mu.Lock()
	a.asks()
	a.mu.Unlock()
	if a.made.Add(1) > 1 && (a.attempt == nil || !a.attempt.Speculative()) {
		a.again()
	}
	return md, nil
}

// asks notes that the call asks for its stream. Under mu.
func (a *attempts) asks() {
	if a.stage == stageUnasked {
		a.stage = stageWaiting
		a.since = a.conn.half.room.asksNow()
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
	a.asks()
	switch room := &a.conn.half.room; a.stage {
	case stageWaiting:
		room.got(a.since, false)
	case stageOpen:
		room.gone(false, false)
	}
	a.stage = stageElsewhere
}

// stopWatch ends the watch for an attempt. Under mu.
func (a *attempts) stopWatch() {
	if a.stop != nil {
		a.stop()
	}
}
