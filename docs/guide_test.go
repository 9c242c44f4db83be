package docs_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"github.com/foresay/foresay"
	"github.com/foresay/foresay/control"
	"github.com/foresay/foresay/report"

	demov1 "github.com/foresay/foresay/api/foresay/demo/v1"
	"github.com/foresay/foresay/predict"
	"github.com/foresay/foresay/specgrpc"
	"github.com/foresay/foresay/wan"
	"github.com/foresay/foresay/wan/shape"
)

// The code that guide.md shows and that is no program of examples/ is here, so
// that it compiles and does what the page says. TestSnippets compares the two.

// work is what each call takes at its server.
const work = 50 * time.Millisecond

// services are an analysis server and a shop, and connections to them.
type services struct {
	*testing.T
	demov1.UnimplementedAnalysisServiceServer
	demov1.UnimplementedShopServer
	conn     *specgrpc.ClientConn
	analysis demov1.AnalysisServiceClient
	shop     demov1.ShopClient
	start    time.Time

	mu   sync.Mutex
	seen []string
}

func (s *services) note(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.seen = append(s.seen, fmt.Sprintf(format, args...))
}

// notes returns what was noted, sorted: siblings and groups run at once.
func (s *services) notes() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Sorted(slices.Values(s.seen))
}

func (s *services) GetPI(ctx context.Context, req *demov1.GetPIRequest) (*demov1.GetPIResponse, error) {
	return interestsOf(req.GetUser()), wait(ctx)
}

func interestsOf(user string) *demov1.GetPIResponse {
	return &demov1.GetPIResponse{Interests: []string{user + "'s"}}
}

func (s *services) GetAI(ctx context.Context, req *demov1.GetAIRequest) (*demov1.GetAIResponse, error) {
	return &demov1.GetAIResponse{Popular: []*demov1.Popular{{Item: req.GetInterests()[0] + " book"}}}, wait(ctx)
}

func (s *services) Buy(ctx context.Context, req *demov1.BuyRequest) (*demov1.BuyResponse, error) {
	if err := wait(ctx); err != nil {
		return nil, err
	}
	s.note("sold %s", req.GetPurchase().GetItem())
	return &demov1.BuyResponse{Number: 1}, nil
}

func wait(ctx context.Context) error {
	select {
	case <-time.After(work):
		return nil
	case <-ctx.Done():
		return status.FromContextError(ctx.Err()).Err()
	}
}

// with runs f with services in a bubble of virtual time, in which nothing but
// the servers' work takes time.
func with(t *testing.T, f func(s *services), sites ...control.CallSiteConfig) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		net := shape.NewNetwork(wan.Uniform(0, "client", "server"), 1)
		lis, err := net.Listen("server")
		if err != nil {
			t.Fatal(err)
		}
		s := &services{T: t}
		server := specgrpc.NewServer()
		demov1.RegisterAnalysisServiceServer(server, s)
		demov1.RegisterShopServer(server, s)
		served := make(chan error, 1)
		go func() { served <- server.Serve(lis) }()
		s.conn, err = specgrpc.NewClient("passthrough:///"+lis.Addr().String(), specgrpc.WithCallSites(sites...),
			specgrpc.WithMode(control.ModeOn),
			grpc.WithContextDialer(net.DialContext("client")), grpc.WithTransportCredentials(insecure.NewCredentials()))
		if err != nil {
			t.Fatal(err)
		}
		s.analysis, s.shop = demov1.NewAnalysisServiceClient(s.conn), demov1.NewShopClient(s.conn)
		if _, err := s.analysis.GetPI(t.Context(), &demov1.GetPIRequest{}); err != nil {
			t.Fatal(err)
		}
		s.start = time.Now()
		f(s)
		s.conn.Close()
		server.GracefulStop()
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
}

// took checks how long it is since the services were ready.
func (s *services) took(want time.Duration) {
	s.Helper()
	if got := time.Since(s.start); got != want {
		s.Errorf("took %v, want %v", got, want)
	}
}

func TestPredicting(t *testing.T) {
	with(t, func(s *services) {
		t := s.T
		_, err := foresay.Do(t.Context(), func(ctx context.Context) (*demov1.GetAIResponse, error) {
			analysis, guess := s.analysis, interestsOf("ann")
			pi, err := analysis.GetPI(foresay.Predicting(ctx, guess), &demov1.GetPIRequest{User: "ann"})
			if err != nil {
				return nil, err
			}
			return analysis.GetAI(ctx, &demov1.GetAIRequest{Interests: pi.GetInterests()})
		})
		if err != nil {
			t.Fatal(err)
		}
		s.took(work)
	})
}

// TestEffects: what the page says of Act, Memo, Barrier and hooks.
func TestEffects(t *testing.T) {
	for _, guess := range []string{"ann", "bob"} {
		with(t, func(s *services) {
			t := s.T
			body := func(ctx context.Context) (time.Time, error) {
				foresay.OnRollback(ctx, func() { s.note("nothing kept") })
				now, err := foresay.Memo(ctx, "now", func(context.Context) (time.Time, error) { return time.Now(), nil })
				if err != nil {
					return now, err
				}
				pi, err := s.analysis.GetPI(foresay.Predicting(ctx, interestsOf(guess)), &demov1.GetPIRequest{User: "ann"})
				if err != nil {
					return now, err
				}
				ticket, err := foresay.Act(ctx, "print a ticket", func(context.Context) (int, error) { return s.print(pi) })
				if err != nil {
					return now, err
				}
				foresay.OnCommit(ctx, func() { s.note("mailed ticket %d", ticket) })
				if err := foresay.Barrier(ctx); err != nil {
					return now, err
				}
				s.note("from here on nothing is a guess")
				return now, nil
			}
			now, err := foresay.Do(t.Context(), body)
			if err != nil || !now.Equal(s.start) {
				t.Error(now, err)
			}
			want := []string{"from here on nothing is a guess", "mailed ticket 7", "printed for ann's"}
			if guess == "bob" {
				want = append(want, "nothing kept")
			}
			slices.Sort(want)
			if got := s.notes(); !slices.Equal(got, want) {
				t.Errorf("guess %s: got %q, want %q", guess, got, want)
			}
			s.took(work)
		})
	}
}

func (s *services) print(pi *demov1.GetPIResponse) (int, error) {
	s.note("printed for %s", pi.GetInterests()[0])
	return 7, nil
}

// TestEffectIsHeld: a call with side effects waits for the guess, in vain if it was wrong.
func TestEffectIsHeld(t *testing.T) {
	for guess, want := range map[string]time.Duration{"ann": 2 * work, "bob": 2 * work} {
		with(t, func(s *services) {
			t := s.T
			_, err := foresay.Do(t.Context(), func(ctx context.Context) (uint32, error) {
				pi, err := s.analysis.GetPI(foresay.Predicting(ctx, interestsOf(guess)), &demov1.GetPIRequest{User: "ann"})
				if err != nil {
					return 0, err
				}
				resp, err := s.shop.Buy(ctx, &demov1.BuyRequest{Purchase: &demov1.Purchase{Item: pi.GetInterests()[0]}})
				return resp.GetNumber(), err
			})
			if got := s.notes(); err != nil || !slices.Equal(got, []string{"sold ann's"}) {
				t.Error(got, err)
			}
			s.took(want)
		})
	}
}

// TestErrors: a failure where success was predicted, seen as in plain code.
func TestErrors(t *testing.T) {
	with(t, func(s *services) {
		t := s.T
		quote := func(ctx context.Context) (string, error) {
			ctx, cancel := context.WithTimeout(ctx, time.Second)
			defer cancel()
			_, err := s.shop.Buy(foresay.Predicting(ctx, &demov1.BuyResponse{Number: 9}), &demov1.BuyRequest{})
			if status.Code(err) == codes.Unimplemented {
				return "no shop", nil
			}
			return "bought", err
		}
		got, err := foresay.Do(t.Context(), quote)
		if got != "bought" || err != nil {
			t.Error(got, err)
		}
		// A run that computed on a wrong guess ends with an error that nobody sees.
		var wrong error
		_, err = foresay.Do(t.Context(), func(ctx context.Context) (int, error) {
			pi, err := s.analysis.GetPI(foresay.Predicting(ctx, interestsOf("bob")), &demov1.GetPIRequest{User: "ann"})
			if err != nil {
				return 0, err
			}
			if pi.GetInterests()[0] == "bob's" {
				<-ctx.Done()
				wrong = context.Cause(ctx)
				return 0, wrong
			}
			return 1, nil
		})
		synctest.Wait()
		if err != nil || !errors.Is(wrong, foresay.ErrMisspeculated) {
			t.Error(err, wrong)
		}
	})
}

func TestGroup(t *testing.T) {
	with(t, func(s *services) {
		t := s.T
		analysis, users := s.analysis, []string{"ann", "bob", "cay"}
		all, err := foresay.Do(t.Context(), func(ctx context.Context) ([]string, error) {
			interests := make([]string, len(users)) // this run's own
			g := foresay.NewGroup(ctx)
			for i, user := range users {
				g.Go(func(ctx context.Context) error {
					pi, err := analysis.GetPI(ctx, &demov1.GetPIRequest{User: user})
					if err != nil {
						return err
					}
					interests[i] = pi.GetInterests()[0]
					return nil
				})
			}
			return interests, g.Wait()
		})
		if err != nil || !slices.Equal(all, []string{"ann's", "bob's", "cay's"}) {
			t.Error(all, err)
		}
		s.took(work)
	})
}

func TestFutures(t *testing.T) {
	with(t, func(s *services) {
		t := s.T
		ctx, analysis, guess := t.Context(), s.analysis, interestsOf("ann")
		pi := foresay.Go(ctx, func(ctx context.Context) (*demov1.GetPIResponse, error) {
			return analysis.GetPI(ctx, &demov1.GetPIRequest{User: "ann"})
		}, foresay.Guess(guess))
		ai := foresay.Then(pi, func(ctx context.Context, pi *demov1.GetPIResponse) (*demov1.GetAIResponse, error) {
			return analysis.GetAI(ctx, &demov1.GetAIRequest{Interests: pi.GetInterests()})
		})
		answer, err := ai.Wait(ctx)
		if err != nil || answer.GetPopular()[0].GetItem() != "ann's book" {
			t.Error(answer, err)
		}
		s.took(work)
	})
}

func TestLoop(t *testing.T) {
	with(t, func(s *services) {
		t := s.T
		ctx, analysis := t.Context(), s.analysis
		type walk struct {
			user  string
			steps int
		}
		last, err := foresay.Loop(ctx, walk{"ann", 0}, func(ctx context.Context, w walk) (walk, bool, error) {
			guess := interestsOf(w.user)
			pi, err := analysis.GetPI(foresay.Predicting(ctx, guess), &demov1.GetPIRequest{User: w.user})
			if err != nil {
				return w, true, err
			}
			return walk{pi.GetInterests()[0], w.steps + 1}, w.steps == 3, nil
		})
		if err != nil || last.user != "ann's's's's" {
			t.Error(last, err)
		}
		s.took(work)
	})
}

// TestCallSites: the settings that the page shows are accepted, and a run's report arrives.
func TestCallSites(t *testing.T) {
	userOf := func(ctx context.Context) string { return "ann" }
	sites := []control.CallSiteConfig{{
		Name: demov1.AnalysisService_GetPI_FullMethodName,
		Predictors: []control.Predictor{
			predict.PerPrincipal(userOf, 10_000, func() predict.Predictor {
				return predict.LastValue(func(r *demov1.GetPIRequest) string { return r.GetUser() }, 10)
			}),
		},
	}, {
		Name: demov1.AnalysisService_GetAI_FullMethodName,
		Equal: func(prediction, actual any) bool {
			p, a := prediction.(*demov1.GetAIResponse), actual.(*demov1.GetAIResponse)
			return slices.EqualFunc(p.GetPopular(), a.GetPopular(), func(x, y *demov1.Popular) bool {
				return x.GetItem() == y.GetItem()
			})
		},
	}, {
		Name:        demov1.Shop_Buy_FullMethodName,
		ConflictKey: func(request any) string { return request.(*demov1.BuyRequest).GetUser() },
	}}
	with(t, func(s *services) {
		t := s.T
		ctx := foresay.WithDefaults(t.Context(),
			foresay.WithLimits(control.Limits{Width: 2, Replays: 8}),
			foresay.WithReport(func(r *report.Report) { s.note("%s %s, %d runs", r.Task, r.Outcome, len(r.Runs)) }))
		for range 2 {
			_, err := foresay.Do(ctx, func(ctx context.Context) (*demov1.GetAIResponse, error) {
				pi, err := s.analysis.GetPI(ctx, &demov1.GetPIRequest{User: "ann"})
				if err != nil {
					return nil, err
				}
				return s.analysis.GetAI(ctx, &demov1.GetAIRequest{Interests: pi.GetInterests()})
			}, foresay.WithName("recommend"))
			if err != nil {
				t.Error(err)
			}
		}
		s.took(2*work + work)
		if got, want := s.notes(), []string{"recommend confirmed, 1 runs", "recommend confirmed, 1 runs"}; !slices.Equal(got,
			want) {
			t.Errorf("got %q, want %q", got, want)
		}
	}, sites...)
}

// TestPlainServerHoldsWhatFollows: towards a server without a registrar nothing overlaps.
func TestPlainServerHoldsWhatFollows(t *testing.T) {
	with(t, func(s *services) {
		t := s.T
		plain := &services{T: t}
		net := shape.NewNetwork(wan.Uniform(0, "client", "server"), 1)
		lis, err := net.Listen("server")
		if err != nil {
			t.Fatal(err)
		}
		server := grpc.NewServer()
		demov1.RegisterAnalysisServiceServer(server, plain)
		go func() { _ = server.Serve(lis) }()
		defer server.Stop()
		conn, err := specgrpc.NewClient("passthrough:///"+lis.Addr().String(), specgrpc.WithMode(control.ModeOn),
			grpc.WithContextDialer(net.DialContext("client")), grpc.WithTransportCredentials(insecure.NewCredentials()))
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		for _, c := range []struct {
			first, second demov1.AnalysisServiceClient
			want          time.Duration
		}{
			{demov1.NewAnalysisServiceClient(conn), s.analysis, work},
			{s.analysis, demov1.NewAnalysisServiceClient(conn), 2 * work},
		} {
			s.start = time.Now()
			_, err := foresay.Do(t.Context(), func(ctx context.Context) (*demov1.GetAIResponse, error) {
				pi, err := c.first.GetPI(foresay.Predicting(ctx, interestsOf("ann")), &demov1.GetPIRequest{User: "ann"})
				if err != nil {
					return nil, err
				}
				return c.second.GetAI(ctx, &demov1.GetAIRequest{Interests: pi.GetInterests()})
			})
			if err != nil {
				t.Error(err)
			}
			s.took(c.want)
		}
	})
}

// callSiteFile is what the page shows of a site file.
const callSiteFile = `
{"sites": [
  {"method": "/foresay.demo.v1.AnalysisService/GetPI", "predictors": ["last"], "server_predictions": true},
  {"method": "/foresay.demo.v1.AnalysisService/GetAI", "equal_ignoring": ["users"]},
  {"method": "/foresay.demo.v1.Shop/Buy", "effect": "staged", "conflict_fields": ["user"],
   "limits": {"pending": 50, "depth": 2, "width": 1, "min_saving": "2ms"}},
  {"method": "/foresay.demo.v1.DataService/GetPH", "mode": "off"}
]}
`

func TestCallSiteFile(t *testing.T) {
	last := predict.LastValue(func(r *demov1.GetPIRequest) string { return r.GetUser() }, 10)
	sites, err := specgrpc.ParseCallSites([]byte(callSiteFile), map[string]control.Predictor{"last": last})
	if err != nil || len(sites) != 4 {
		t.Fatal(sites, err)
	}
	a, b := &demov1.GetAIResponse{Users: 1}, &demov1.GetAIResponse{Users: 2}
	if !sites[1].Equal(a, b) || sites[2].Effect != control.EffectStaged ||
		sites[2].Limits.MinSaving != 2*time.Millisecond || sites[3].Mode != control.ModeOff {
		t.Error(sites)
	}
}
