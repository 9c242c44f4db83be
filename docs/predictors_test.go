package docs_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/metadata"

	"github.com/foresay/foresay"
	"github.com/foresay/foresay/control"

	demov1 "github.com/foresay/foresay/api/foresay/demo/v1"
	"github.com/foresay/foresay/predict"
	"github.com/foresay/foresay/replica"
	"github.com/foresay/foresay/specgrpc"
)

type sessionKey struct{}

// TestPrincipals: who is given a guess is as predictors.md says.
func TestPrincipals(t *testing.T) {
	interests := predict.LastValue(func(r *demov1.GetPIRequest) string { return r.GetUser() }, 50_000)
	popular, err := predict.NewLast(predict.LastConfig[*demov1.GetAIRequest]{
		Key:    func(r *demov1.GetAIRequest) string { return strings.Join(r.GetInterests(), ",") },
		Public: true, MaxEntries: 50_000, MaxBytes: 64e6,
	})
	if err != nil {
		t.Fatal(err)
	}
	mine, err := predict.NewLast(predict.LastConfig[*demov1.GetPIRequest]{
		Key: func(r *demov1.GetPIRequest) string { return r.GetUser() },
		Principal: func(ctx context.Context) (string, bool) {
			session, ok := ctx.Value(sessionKey{}).(string) // no session: neither predicted nor learnt
			return session, ok
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	as := func(token, session string) context.Context {
		ctx := metadata.AppendToOutgoingContext(t.Context(), "authorization", token)
		return context.WithValue(ctx, sessionKey{}, session)
	}
	pi, ai := &demov1.GetPIRequest{User: "ann"}, &demov1.GetAIRequest{Interests: []string{"tea"}}
	for _, tt := range []struct {
		name                   string
		p                      predict.Predictor
		request, response      any
		otherToken, otherLogin bool // are given a guess
	}{
		{"by credentials", interests, pi, &demov1.GetPIResponse{Interests: []string{"tea"}}, false, true},
		{"public", popular, ai, &demov1.GetAIResponse{Users: 3}, true, true},
		{"by session", mine, pi, &demov1.GetPIResponse{Interests: []string{"tea"}}, true, false},
	} {
		tt.p.Learn(as("Bearer 1", "s1"), tt.request, tt.response)
		for ctx, want := range map[context.Context]bool{
			as("Bearer 1", "s1"): true, as("Bearer 2", "s1"): tt.otherToken, as("Bearer 1", "s2"): tt.otherLogin,
		} {
			if got := tt.p.Predict(ctx, tt.request) != nil; got != want {
				t.Errorf("%s: predicted %v, want %v", tt.name, got, want)
			}
		}
	}
}

const predictorFile = `
{"sites": [
  {"method": "/foresay.demo.v1.AnalysisService/GetPI", "predictors": [
    {"kind": "last", "key_fields": ["user"], "entries": 50000, "bytes": "64MB"}]},
  {"method": "/foresay.demo.v1.AnalysisService/GetAI", "predictors": [
    {"kind": "chain", "of": [
      {"kind": "table", "public": true, "min_share": 0.9, "min_responses": 3},
      {"kind": "constant", "value": {"users": 0}}]}]}
]}
`

func TestPredictorFile(t *testing.T) {
	sites, err := specgrpc.ParseCallSites([]byte(predictorFile), nil)
	if err != nil || len(sites) != 2 {
		t.Fatal(sites, err)
	}
	request := &demov1.GetAIRequest{Interests: []string{"tea"}}
	p := sites[1].Predictors[0]
	for i := range 4 {
		got := p.Predict(t.Context(), request)
		if want := int32(i / 3 * 7); len(got) != 1 || int32(got[0].(*demov1.GetAIResponse).GetUsers()) != want {
			t.Errorf("after %d responses: %v, want %d users", i, got, want)
		}
		p.Learn(t.Context(), request, &demov1.GetAIResponse{Users: 7})
	}
}

type account struct{ Balance, Version int }

// TestNearFar: the work is done while the leader is asked, and again if it has to.
func TestNearFar(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		follower := func(context.Context, string) (account, error) { return account{70, 3}, nil }
		now := account{70, 3}
		leader := func(context.Context, string) (account, error) {
			time.Sleep(work)
			return now, nil
		}
		cfg := replica.NearFar(follower, leader)
		cfg.Name, cfg.Mode = "accounts.Get", control.ModeOn
		cfg.Equal = replica.SameVersion(func(a account) int { return a.Version })
		accounts, err := replica.New(cfg)
		if err != nil {
			t.Fatal(err)
		}
		for _, took := range []time.Duration{work, 2 * work} {
			start := time.Now()
			got, err := foresay.Do(t.Context(), func(ctx context.Context) (int, error) {
				a, err := accounts.Read(ctx, "ann")
				if err != nil {
					return 0, err
				}
				time.Sleep(work)
				return a.Balance, nil
			})
			if got != now.Balance || err != nil || time.Since(start) != took {
				t.Errorf("%d, %v after %v; want %d after %v", got, err, time.Since(start), now.Balance, took)
			}
			now = account{50, 4}
		}
	})
}
