package specgrpc_test

import (
	"context"
	"errors"
	"io"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/foresay/foresay/control"

	spb "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/foresay/foresay"

	specv1 "github.com/foresay/foresay/api/foresay/spec/v1"

	kvpb "github.com/foresay/foresay/api/foresay/testkv/v1"
	"github.com/foresay/foresay/specgrpc"
	"github.com/foresay/foresay/wan"
)

// script is a server's part on a speculative stream, after the Request.
type script func(s *scripted) error

// scripted is a speculative stream as a server that follows a script sees it.
type scripted struct {
	grpc.ServerStream
	request *specv1.Request
}

// serveScript serves impl plainly, and the speculative streams of Get and Put
// by a script.
func (w *world) serveScript(site wan.Site, impl kvpb.TestKVServer, play script, opts ...grpc.ServerOption) string {
	w.Helper()
	_, addr := w.serve(site, func(s *grpc.Server) {
		desc := kvpb.TestKV_ServiceDesc
		desc.Streams = slices.Clone(desc.Streams)
		for _, name := range []string{"Get.spec", "Put.spec"} {
			desc.Streams = append(desc.Streams, grpc.StreamDesc{
				StreamName: name, ClientStreams: true, ServerStreams: true,
				Handler: func(_ any, ss grpc.ServerStream) error {
					f := new(specv1.ClientFrame)
					if err := ss.RecvMsg(f); err != nil {
						return err
					}
					return play(&scripted{ss, f.GetRequest()})
				},
			})
		}
		s.RegisterService(&desc, impl)
	}, opts...)
	return addr
}

// word receives the caller's word: "confirm", "abort", or how the stream ended.
func (s *scripted) word() string {
	f := new(specv1.ClientFrame)
	switch err := s.RecvMsg(f); {
	case errors.Is(err, io.EOF):
		return "half-close"
	case err != nil:
		return "loss"
	case f.GetConfirm() != nil:
		return "confirm"
	case f.GetAbort() != nil:
		return "abort"
	}
	return f.String()
}

func (s *scripted) predict(m proto.Message) {
	b, _ := proto.Marshal(m)
	_ = s.SendMsg(&specv1.ServerFrame{Frame: &specv1.ServerFrame_Prediction{Prediction: &specv1.Prediction{Payload: b}}})
}

func (s *scripted) final(m proto.Message, tentative bool) {
	b, _ := proto.Marshal(m)
	s.sendFinal(&specv1.Final{Result: &specv1.Final_Payload{Payload: b}, Tentative: tentative})
}

func (s *scripted) sendFinal(f *specv1.Final) {
	_ = s.SendMsg(&specv1.ServerFrame{Frame: &specv1.ServerFrame_Final{Final: f}})
}

func (s *scripted) refuse(reason specv1.Refused_Reason) {
	_ = s.SendMsg(&specv1.ServerFrame{Frame: &specv1.ServerFrame_Refused{Refused: &specv1.Refused{Reason: reason}}})
}

// staged is the configuration of a client that takes Put for staged.
var staged = control.CallSiteConfig{Name: putMethod, Effect: control.EffectStaged}

// getThenPut reads "slow", predicted right and confirmed after 100 ms, and then
// writes on that guess.
func getThenPut(w *world, cc *specgrpc.ClientConn) (*kvpb.PutResponse, error) {
	return foresay.Do(w.Context(), func(ctx context.Context) (*kvpb.PutResponse, error) {
		c := kvpb.NewTestKVClient(cc)
		got, err := guessed(ctx, c, "slow", value("slow"))
		if err != nil {
			return nil, err
		}
		return c.Put(ctx, &kvpb.PutRequest{Key: got.GetValue()})
	})
}

const putNote = "put value of slow="

func newSlowServer() *kvServer { return &kvServer{get: slow("slow", 100*time.Millisecond)} }

// Whatever a server does on the stream before the Confirm, the call is then
// made plainly, once, and its result is the actual one.
func TestServersThatGiveNoResult(t *testing.T) {
	payload := func(m proto.Message) []byte { b, _ := proto.Marshal(m); return b }
	good := payload(&kvpb.PutResponse{Version: 99})
	scripts := map[string]script{
		"unknown method":   func(*scripted) error { return status.Error(codes.Unimplemented, "unknown method Put.spec") },
		"denied":           func(*scripted) error { return status.Error(codes.PermissionDenied, "no streams for you") },
		"internal":         func(*scripted) error { return status.Error(codes.Internal, "proxy") },
		"OK at once":       func(*scripted) error { return nil },
		"refused":          func(s *scripted) error { s.refuse(specv1.Refused_REASON_EFFECTS); return nil },
		"refused, waiting": func(s *scripted) error { s.refuse(specv1.Refused_REASON_LIMIT); s.word(); return nil },
		"prediction, then the end": func(s *scripted) error {
			s.predict(&kvpb.PutResponse{Version: 99})
			return nil
		},
		"prediction, then unimplemented": func(s *scripted) error {
			s.predict(&kvpb.PutResponse{Version: 99})
			return status.Error(codes.Unimplemented, "changed my mind")
		},
		"tentative, then OK": func(s *scripted) error { s.final(&kvpb.PutResponse{Version: 99}, true); return nil },
		"tentative, then an error": func(s *scripted) error {
			s.final(&kvpb.PutResponse{Version: 99}, true)
			return status.Error(codes.Aborted, "crashed")
		},
		"empty frame": func(s *scripted) error { return s.SendMsg(&specv1.ServerFrame{}) },
		"final without result": func(s *scripted) error {
			s.sendFinal(&specv1.Final{})
			s.word()
			return nil
		},
		"reference to nothing": func(s *scripted) error {
			s.sendFinal(&specv1.Final{Result: &specv1.Final_Prediction{Prediction: 0}})
			s.word()
			return nil
		},
		"reference to garbage": func(s *scripted) error {
			_ = s.SendMsg(&specv1.ServerFrame{Frame: &specv1.ServerFrame_Prediction{
				Prediction: &specv1.Prediction{Payload: []byte{0xff}}}})
			s.sendFinal(&specv1.Final{Result: &specv1.Final_Prediction{Prediction: 0}})
			s.word()
			return nil
		},
		"status OK": func(s *scripted) error {
			s.sendFinal(&specv1.Final{Result: &specv1.Final_Status{Status: payload(&spb.Status{})}})
			s.word()
			return nil
		},
		"status garbage": func(s *scripted) error {
			s.sendFinal(&specv1.Final{Result: &specv1.Final_Status{Status: []byte{0xff}}})
			s.word()
			return nil
		},
		"refused after a prediction": func(s *scripted) error {
			s.predict(&kvpb.PutResponse{Version: 99})
			s.refuse(specv1.Refused_REASON_EFFECTS)
			s.word()
			return nil
		},
		"final after refused": func(s *scripted) error {
			s.refuse(specv1.Refused_REASON_EFFECTS)
			s.sendFinal(&specv1.Final{Result: &specv1.Final_Payload{Payload: good}})
			s.word()
			return nil
		},
		"two tentative results": func(s *scripted) error {
			s.final(&kvpb.PutResponse{Version: 99}, true)
			s.final(&kvpb.PutResponse{Version: 98}, true)
			s.word()
			return nil
		},
		"prediction after the result": func(s *scripted) error {
			s.final(&kvpb.PutResponse{Version: 99}, true)
			s.predict(&kvpb.PutResponse{Version: 98})
			s.word()
			return nil
		},
		"endless predictions": func(s *scripted) error {
			for i := range uint64(1000) {
				s.predict(&kvpb.PutResponse{Version: 100 + i})
			}
			s.word()
			return nil
		},
		"oversized frame": func(s *scripted) error {
			_ = s.SendMsg(&specv1.ServerFrame{Frame: &specv1.ServerFrame_Prediction{
				Prediction: &specv1.Prediction{Payload: make([]byte, 5<<20)}}})
			s.word()
			return nil
		},
	}
	for name, play := range scripts {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				impl := newSlowServer()
				var streams atomic.Int32
				addr := w.serveScript("a", impl, func(s *scripted) error {
					streams.Add(1)
					return play(s)
				})
				cc := w.dial(addr, specgrpc.WithCallSites(staged))
				got, err := getThenPut(w, cc)
				if err != nil || got.GetVersion() != 1 {
					w.Errorf("got %v, %v; want the plain call's result", got, err)
				}
				if streams.Load() != 1 {
					w.Errorf("%d speculative streams, want 1", streams.Load())
				}
				wantNotes(w, impl, "get slow", putNote)
				w.quiet(cc)
			})
		})
	}
}

// After Confirm the call may have taken effect: it is never sent again.
func TestLossAfterConfirmIsUnknown(t *testing.T) {
	scripts := map[string]struct {
		play script
		want codes.Code
	}{
		"unavailable": {func(s *scripted) error {
			s.word()
			return status.Error(codes.Unavailable, "gone")
		}, codes.Unavailable},
		"internal": {func(s *scripted) error {
			s.word()
			return status.Error(codes.Internal, "proxy")
		}, codes.Unavailable},
		"OK without a result": {func(s *scripted) error { s.word(); return nil }, codes.Unavailable},
		"tentative, then lost": {func(s *scripted) error {
			s.final(&kvpb.PutResponse{Version: 99}, true)
			s.word()
			return status.Error(codes.Unavailable, "gone")
		}, codes.Unavailable},
		"tentative, then denied": {func(s *scripted) error {
			s.final(&kvpb.PutResponse{Version: 99}, true)
			s.word()
			return status.Error(codes.PermissionDenied, "not any more")
		}, codes.PermissionDenied},
		"prediction, then refused": {func(s *scripted) error {
			s.predict(&kvpb.PutResponse{Version: 99})
			s.word()
			s.refuse(specv1.Refused_REASON_EFFECTS) // which is not true: something ran
			return nil
		}, codes.Unavailable},
		"prediction, then unimplemented": {func(s *scripted) error {
			s.predict(&kvpb.PutResponse{Version: 99})
			s.word()
			return status.Error(codes.Unimplemented, "")
		}, codes.Unimplemented},
		"garbage": {func(s *scripted) error { s.word(); return s.SendMsg(&specv1.ServerFrame{}) }, codes.Unavailable},
	}
	for name, tt := range scripts {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				impl := newSlowServer()
				var words []string
				addr := w.serveScript("a", impl, func(s *scripted) error {
					r := tt.play(s)
					words = append(words, s.word())
					return r
				})
				cc := w.dial(addr, specgrpc.WithCallSites(staged))
				got, err := getThenPut(w, cc)
				wantCode(w, err, tt.want)
				if got != nil {
					w.Errorf("got %v besides the error", got)
				}
				wantNotes(w, impl, "get slow")
				w.quiet(cc)
			})
		})
	}
}

// A call free of side effects may be made again.
func TestLossOfAPureCallAfterConfirm(t *testing.T) {
	inWorld(t, func(w *world) {
		impl := newSlowServer()
		addr := w.serveScript("a", impl, func(s *scripted) error {
			s.word()
			return status.Error(codes.Unavailable, "gone")
		})
		cc := w.dial(addr)
		got, _, err := doChain(w, cc, "value of slow")
		if err != nil || got != "value of next to value of slow" {
			w.Errorf("got %q, %v", got, err)
		}
		wantNotes(w, impl, "get slow", "get next to value of slow")
		w.quiet(cc)
	})
}

func TestTentativeResultStandsWithOKAfterConfirm(t *testing.T) {
	inWorld(t, func(w *world) {
		impl := newSlowServer()
		addr := w.serveScript("a", impl, func(s *scripted) error {
			s.final(&kvpb.PutResponse{Version: 99}, true)
			if got := s.word(); got != "confirm" {
				return status.Errorf(codes.Internal, "%s, want confirm", got)
			}
			time.Sleep(time.Minute) // hooks take their time
			return nil
		})
		cc := w.dial(addr, specgrpc.WithCallSites(staged))
		start := time.Now()
		got, err := getThenPut(w, cc)
		if err != nil || got.GetVersion() != 99 {
			w.Errorf("got %v, %v", got, err)
		}
		if took := time.Since(start); took < time.Minute {
			w.Errorf("took %v: the result was released before the server's OK", took)
		}
		wantNotes(w, impl, "get slow")
	})
}

// The words that a server hears.
func TestWordsAreMessages(t *testing.T) {
	for prediction, want := range map[string]string{"value of slow": "confirm", "something else": "abort"} {
		t.Run(want, func(t *testing.T) {
			inWorld(t, func(w *world) {
				heard := make(chan string, 4)
				addr := w.serveScript("a", newSlowServer(), func(s *scripted) error {
					if key := new(kvpb.GetRequest); proto.Unmarshal(s.request.GetPayload(), key) == nil {
						s.final(value(key.GetKey()), false)
					}
					heard <- s.word()
					heard <- s.word()
					return nil
				})
				cc := w.dial(addr)
				if _, _, err := doChain(w, cc, prediction); err != nil {
					w.Fatal(err)
				}
				if got := <-heard; got != want {
					w.Errorf("heard %s, want %s", got, want)
				}
				if got := <-heard; got != "half-close" {
					w.Errorf("then heard %s, want half-close", got)
				}
				w.quiet(cc)
			})
		})
	}
}

// A server that is silent after Abort has its stream reset.
func TestSilentServerIsReset(t *testing.T) {
	inWorld(t, func(w *world) {
		var took time.Duration
		addr := w.serveScript("a", newSlowServer(), func(s *scripted) error {
			if s.word() == "abort" {
				start := time.Now()
				<-s.Context().Done()
				took = time.Since(start)
			}
			return nil
		})
		cc := w.dial(addr)
		if _, _, err := doChain(w, cc, "something else"); err != nil {
			w.Fatal(err)
		}
		w.quiet(cc)
		if took == 0 || took > 2*time.Second {
			w.Errorf("reset %v after Abort", took)
		}
	})
}

func TestSilentServerIsLostAfterTheLease(t *testing.T) {
	inWorld(t, func(w *world) {
		impl := &kvServer{get: slow("slow", 3*time.Second)}
		var lease uint32
		addr := w.serveScript("a", impl, func(s *scripted) error {
			lease = s.request.GetLeaseMs()
			<-s.Context().Done()
			return nil
		})
		cc := w.dial(addr, specgrpc.WithLease(time.Second))
		got, took, err := doChain(w, cc, "value of slow")
		if err != nil || got != "value of next to value of slow" || took > 4*time.Second {
			w.Errorf("got %q, %v after %v", got, err, took)
		}
		if lease != 1000 {
			w.Errorf("the request asks for a lease of %d ms, want 1000", lease)
		}
		w.quiet(cc)
	})
}

func TestLeaseIsWithinTheDeadline(t *testing.T) {
	inWorld(t, func(w *world) {
		var lease uint32
		addr := w.serveScript("a", newSlowServer(), func(s *scripted) error {
			lease = s.request.GetLeaseMs()
			return status.Error(codes.Unimplemented, "")
		})
		cc := w.dial(addr)
		ctx, cancel := context.WithTimeout(w.Context(), 2*time.Second)
		defer cancel()
		_, err := foresay.Do(ctx, func(ctx context.Context) (string, error) {
			return chain(ctx, kvpb.NewTestKVClient(cc), "value of slow")
		})
		if err != nil {
			w.Fatal(err)
		}
		if lease == 0 || lease > 2000 {
			w.Errorf("lease %d ms, want less than the deadline's 2000", lease)
		}
	})
}
