package randtest

import (
	"fmt"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
)

// oracle is what the sequential run tells of the right one.
type oracle struct {
	mu      sync.Mutex
	code    time.Duration       // that the program's own code took
	calls   map[string]*answer  // by place in the program
	digests map[string]string   // at traps and ends of lanes
	pairs   map[string]struct{} // requests with their responses
}

// answer is what a call returned in the sequential run.
type answer struct {
	server   int
	method   methods
	request  proto.Message
	response proto.Message
	code     codes.Code
	took     time.Duration
}

func newOracle() *oracle {
	return &oracle{calls: make(map[string]*answer), digests: make(map[string]string), pairs: make(map[string]struct{})}
}

// computes notes that the program's own code takes time.
func (o *oracle) computes(plain bool, d time.Duration) {
	if plain {
		o.mu.Lock()
		defer o.mu.Unlock()
		o.code += d
	}
}

func (o *oracle) record(at string, a *answer, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	a.code = status.Code(err)
	if err != nil {
		a.response = nil // and not a nil message
	} else {
		a.response = proto.Clone(a.response)
		o.pairs[pair(fmt.Sprintf("%T", a.request), a.request, a.response)] = struct{}{}
	}
	o.calls[at] = a
}

// answer returns what the call at a place returned, or nil if the sequential
// run did not come there.
func (o *oracle) answer(at string) *answer {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.calls[at]
}

func (o *oracle) saw(p string) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	_, ok := o.pairs[p]
	return ok
}

func (o *oracle) mark(at, digest string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.digests[at] = digest
}

func (o *oracle) digest(at string) (string, bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	d, ok := o.digests[at]
	return d, ok
}

// pair names a request with its response.
func pair(method string, request, response proto.Message) string {
	return method + "\x00" + bytesOf(request) + "\x00" + bytesOf(response)
}

func bytesOf(m proto.Message) string {
	b, err := proto.MarshalOptions{Deterministic: true}.Marshal(m)
	if err != nil {
		panic(err) // messages of our own making
	}
	return string(b)
}
