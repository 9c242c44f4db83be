package specgrpc

import (
	"context"
	"fmt"
	"hash/maphash"
	"net"

	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
)

// admitted are the half-open calls of a registrar, in all and by caller: by the host
// that a call comes from, and by whom it is made for. Under the registrar's mutex.
type admitted struct {
	calls map[*serverCall]caller
	held  map[caller]int // by host alone and by principal alone
	stats ServerStats
}

// caller is a host, a principal, or both. A principal is kept as a hash only.
type caller struct {
	host      string
	principal uint64 // 0 for none
}

// each yields under what a call counts.
func (c caller) each(yield func(caller) bool) {
	if yield(caller{host: c.host}) && c.principal != 0 {
		yield(caller{principal: c.principal})
	}
}

// callerOf returns who makes the call of this context.
func (c *serverConfig) callerOf(ctx context.Context) caller {
	var out caller
	if p, ok := peer.FromContext(ctx); ok && p.Addr != nil {
		out.host = p.Addr.String()
		if host, _, err := net.SplitHostPort(out.host); err == nil {
			out.host = host
		}
	}
	principal := c.principal
	if principal == nil {
		principal = credentialsOf
	}
	if who := principal(ctx); who != "" {
		out.principal = max(1, maphash.String(c.seed, who))
	}
	return out
}

// credentialsOf returns the client's certificate and the authorization that it sent.
func credentialsOf(ctx context.Context) string {
	var who string
	if p, ok := peer.FromContext(ctx); ok {
		if info, ok := p.AuthInfo.(credentials.TLSInfo); ok && len(info.State.PeerCertificates) > 0 {
			who = string(info.State.PeerCertificates[0].Raw)
		}
	}
	for _, v := range metadata.ValueFromIncomingContext(ctx, "authorization") {
		who += "\x00" + v
	}
	return who
}

// take takes a place for a call, or says why there is none, and where to count it.
// Nobody holds more places than are free, so that there is one left for whoever
// comes next.
func (s *admitted) take(c *serverCall, by caller, cfg *serverConfig) (count *int64, why string) {
	free := cfg.maxHalfOpen - len(s.calls)
	if free <= 0 {
		return &s.stats.RefusedFull, fmt.Sprintf("%d calls of speculative callers are under way", len(s.calls))
	}
	for k := range by.each {
		if n := s.held[k]; n >= min(free, cfg.maxPerCaller) {
			who := "its principal"
			if k.principal == 0 {
				who = "host " + k.host
			}
			return &s.stats.RefusedCaller, fmt.Sprintf("%s has %d speculative calls under way; %d places are free", who, n, free)
		}
	}
	s.calls[c] = by
	for k := range by.each {
		s.held[k]++
	}
	return nil, ""
}

// give gives a call's place back.
func (s *admitted) give(c *serverCall) {
	for k := range s.calls[c].each {
		if s.held[k]--; s.held[k] <= 0 {
			delete(s.held, k)
		}
	}
	delete(s.calls, c)
}

// ServerStats counts what became of calls of speculative callers, since the server
// was made. A call that was refused is made plainly once its caller is confirmed.
type ServerStats struct {
	HalfOpen        int   // under way now
	Admitted        int64 // ran
	RefusedEffects  int64 // of methods that may not run for a speculative caller
	RefusedLimit    int64 // over WithMaxDepth or WithMaxPayload
	RefusedFull     int64 // all places were taken: WithMaxHalfOpenCalls
	RefusedCaller   int64 // its host or principal had too many: WithMaxHalfOpenCallsPerCaller
	RefusedStopping int64 // the server was stopping
	RefusedUnknown  int64 // the server's interceptors were not known yet
}
