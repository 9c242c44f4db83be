package predict

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"hash"
	"slices"
	"strings"
	"sync"

	"google.golang.org/grpc/metadata"
)

// Principal tells on whose behalf a call is made, by its context: two calls get
// to see what was learnt from each other only if it returns the same for both.
// If it reports false, nothing is predicted or learnt for the call. The ids are
// kept only as hashes, under a random key of the predictor's own, so they may be
// or contain secrets. It must be quick.
type Principal func(ctx context.Context) (id string, ok bool)

// Credentials returns the Principal that predictors have if they are given no
// other: all that the call's connection knows of who makes it, and all credentials in
// the context's gRPC metadata, those of the call that is made and those of the call
// that is being served. Credentials are the metadata authorization,
// proxy-authorization, cookie, x-api-key, x-goog-api-key, x-auth-token and
// x-forwarded-access-token, and those named here. Calls without any of them have one
// principal in common.
//
// A connection of package specgrpc knows the metadata of the call, and what its
// interceptors, credentials and stats handlers look up in the context to add more.
// Where that cannot be told, there is no principal: nothing is predicted or learnt
// before a first call has shown what they look up, nor where they find what cannot be
// compared, such as a pointer. What they add without looking at the context, and the
// TLS certificate, are the same for all calls of a connection: each connection should
// have predictors of its own.
func Credentials(more ...string) Principal {
	names := []string{
		"authorization", "cookie", "proxy-authorization", "x-api-key", "x-auth-token", "x-forwarded-access-token",
		"x-goog-api-key",
	}
	for _, name := range more {
		names = append(names, strings.ToLower(name))
	}
	slices.Sort(names)
	names = slices.Compact(names)
	return func(ctx context.Context) (string, bool) {
		caller := ""
		if of, told := ctx.Value(callerKey{}).(Principal); told {
			var ok bool
			if caller, ok = of(ctx); !ok {
				return "", false
			}
		}
		return credentials(ctx, names, caller), true
	}
}

// credentials returns the values of the named metadata after what is known of the
// caller, each with where it was, so that different ones make different ids.
func credentials(ctx context.Context, names []string, caller string) string {
	md, _ := metadata.FromOutgoingContext(ctx)
	// The values of the call that is made, and then of the one that is served.
	found, idBytes := make([][]string, 1, 16), 0
	if caller != "" {
		found[0] = []string{caller}
	}
	for _, name := range names {
		found = append(found, md[name])
	}
	for _, name := range names {
		found = append(found, metadata.ValueFromIncomingContext(ctx, name))
	}
	for _, values := range found {
		for _, v := range values {
			idBytes += 2*binary.MaxVarintLen32 + len(v)
		}
	}
	if idBytes == 0 {
		return ""
	}
	var id strings.Builder
	id.Grow(idBytes)
	for i, values := range found {
		for _, v := range values {
			where := make([]byte, 0, 2*binary.MaxVarintLen32)
			id.Write(binary.AppendUvarint(binary.AppendUvarint(where, uint64(i)), uint64(len(v))))
			id.WriteString(v)
		}
	}
	return id.String()
}

type callerKey struct{}

// WithCaller returns a context by which a transport tells predictors on whose behalf
// a call is made: Credentials asks it.
func WithCaller(ctx context.Context, caller Principal) context.Context {
	return context.WithValue(ctx, callerKey{}, caller)
}

// principalHash stands for a principal: zero for the empty id.
type principalHash [sha256.Size]byte

// scope makes a predictor's keys.
type scope struct {
	principal Principal // nil: responses are public
	// hashes holds keyed hashes: there is no way to compute what is in a key, nor
	// to find two ids with the same hash, from outside.
	hashes sync.Pool
}

func newScope(public bool, principal Principal) (*scope, error) {
	switch {
	case public && principal != nil:
		return nil, fmt.Errorf("both Public and a Principal are given")
	case !public && principal == nil:
		principal = Credentials()
	}
	s := &scope{principal: principal}
	key := make([]byte, sha256.Size)
	_, _ = rand.Read(key) // crypto/rand.Read never fails
	s.hashes.New = func() any { return &keyedHash{h: hmac.New(sha256.New, key)} }
	return s, nil
}

// key returns the key of a call, and false if nothing may be kept for it.
func (s *scope) key(ctx context.Context, key string) (k cacheKey, ok bool) {
	k.key = key
	if s.principal == nil {
		return k, true
	}
	id, ok := s.principal(ctx)
	if !ok {
		return k, false
	}
	if id != "" {
		k.who = s.hash(id)
	}
	return k, true
}

// keyedHash computes hashes, one at a time.
type keyedHash struct {
	h   hash.Hash
	buf []byte
}

func (s *scope) hash(id string) (sum principalHash) {
	k := s.hashes.Get().(*keyedHash)
	k.h.Reset()
	k.buf = append(k.buf[:0], id...)
	k.h.Write(k.buf)
	clear(k.buf)
	copy(sum[:], k.h.Sum(k.buf[:0]))
	s.hashes.Put(k)
	return sum
}
