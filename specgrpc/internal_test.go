package specgrpc

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
)

func _UserStore_GetUser2X_Handler(any, context.Context, func(any) error, grpc.UnaryServerInterceptor) (any, error) { //nolint:revive // named as protoc-gen-go-grpc does
	return nil, nil
}

// TestGeneratedHandlers: a generated Handler is known by its name, however the service and the
// method are written.
func TestGeneratedHandlers(t *testing.T) {
	for _, tt := range []struct {
		service, method string
		want            bool
	}{
		{"pkg.UserStore", "GetUser2X", true}, {"user_store", "get_user2x", true}, {"pkg.user_store", "getUser2x", true},
		{"pkg.UserStore", "GetUser", false}, {"pkg.Store", "GetUser2X", false}, {"pkg.User_Store", "GetUser2X", false},
	} {
		md := grpc.MethodDesc{MethodName: tt.method, Handler: _UserStore_GetUser2X_Handler}
		if got := generated(tt.service, &md); got != tt.want {
			t.Errorf("%s/%s: %v", tt.service, tt.method, got)
		}
	}
	for name, want := range map[string]string{"_a": "XA", "a_1": "A_1", "a1b": "A1B", "A_B": "A_B", "a_": "A_",
		"a__b": "A_B"} {
		if got := inGo(name); got != want {
			t.Errorf("%s is %s, want %s", name, got, want)
		}
	}
}

// TestTimerToldBefore: a timer that told of the end of the lease, and was heard
// only after the word was given, ends nothing.
func TestTimerToldBefore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for name, given := range map[string]func(s *specStream){
			"no time limit":                  func(s *specStream) { s.timer.Stop(); s.due = time.Time{} },
			"a time limit":                   func(s *specStream) { s.after(time.Second) },
			"a frame that renewed the lease": func(s *specStream) { s.word = noWord; s.beat() },
		} {
			ctx, cancel := context.WithCancel(t.Context())
			s := &specStream{stop: cancel, lease: time.Second, reading: true, armed: true, word: confirmed}
			s.after(time.Second)
			s.timer.Stop()
			time.Sleep(time.Second)
			given(s)
			s.tick()
			if ctx.Err() != nil || s.why != "" {
				t.Errorf("%s: the stream was given up: %q", name, s.why)
			}
			s.timer.Stop()
			cancel()
		}
	})
}

// What was left unread long before a stop is no reason to cut anything: nobody knows that it was
// not read.
func TestStuckByRecentCallsOnly(t *testing.T) {
	since := time.Now()
	for _, tc := range []struct {
		name    string
		unread  time.Time
		running int64
		waiting int64
		want    bool
	}{
		{"nothing was ever left", time.Time{}, 0, 0, false},
		{"long ago", since.Add(-time.Hour), 0, 0, false},
		{"just now", since.Add(time.Millisecond), 0, 0, true},
		{"just now, and a call runs", since.Add(time.Millisecond), 1, 0, false},
		{"a stream without a request", time.Time{}, 1, 1, true},
		{"a stream without a request, and a call runs", time.Time{}, 2, 1, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r := new(ServiceRegistrar)
			if !tc.unread.IsZero() {
				r.unread.Store(tc.unread.UnixNano())
			}
			r.running.Store(tc.running)
			r.waiting.Store(tc.waiting)
			if got := stuck([]*ServiceRegistrar{new(ServiceRegistrar), r}, since); got != tc.want {
				t.Errorf("stuck = %v, want %v", got, tc.want)
			}
		})
	}
}

func TestParseCallSitesRefuses(t *testing.T) {
	site := func(fields string) string { return "{\"sites\": [\n{\"method\": \"/a.B/C\", " + fields + "}]}" }
	for _, c := range []struct{ file, want string }{
		{`{"sites":[]} ]`, "line 1"},
		{`{"sites":[]} {}`, "more after the first"},
		{`{"sites":[]`, "line 1"},
		{site(`"limits": {"Depth": 3}`), `line 2: field "sites": field "limits": field "Depth"`},
		{site(`"ordered": null`), `field "ordered": null`},
		{site(`"predictors": null`), `field "predictors": null`},
		{site(`"limits": null`), `field "limits": null`},
		{site(`"ordered": true, "ordered": false`), `"ordered" is repeated`},
		{site(`"ignore_metadata": ["x\nfoo"]`), "no metadata name"},
		{site(`"predictors": ["last"]`), "the program gave none"},
		{`{"sites": [{"method": "/ /C"}]}`, `"/ /C"`},
	} {
		if _, err := ParseCallSites([]byte(c.file), nil); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want one with %q", c.file, err, c.want)
		}
	}
}

// TestHeaderAfterSend: as with grpc, a header that was sent stays as it is.
func TestHeaderAfterSend(t *testing.T) {
	ctx, b := withBuffer(t.Context(), "/a.B/C")
	if err := grpc.SendHeader(ctx, metadata.Pairs("a", "1")); err != nil {
		t.Fatal(err)
	}
	if grpc.SetHeader(ctx, metadata.Pairs("b", "2")) == nil {
		t.Error("SetHeader after SendHeader returned nil")
	}
	if grpc.SendHeader(ctx, metadata.Pairs("c", "3")) == nil {
		t.Error("a second SendHeader returned nil")
	}
	if md := b.all(); md.Len() != 1 {
		t.Errorf("the header is %v, want only a", md)
	}
}
