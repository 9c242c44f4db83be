package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	demov1 "github.com/foresay/foresay/api/foresay/demo/v1"
	"github.com/foresay/foresay/bft/client"
	smrclient "github.com/foresay/foresay/smr/client"
	"github.com/foresay/foresay/smr/kv"
)

// front is a generated gRPC service over a replicated key-value service: ordinary code, in which
// nothing says what is a guess. The server runs it as a task, so its calls to the group return
// first replies where the gRPC caller may have a prediction.
type front struct {
	demov1.UnimplementedShopServer
	demov1.UnimplementedDataServiceServer

	group client.Typed[[]byte, []byte, kv.Result]
}

// typed returns a client of a group's key-value service.
func typed(c *client.Client) client.Typed[[]byte, []byte, kv.Result] {
	same := func(b []byte) ([]byte, error) { return b, nil }
	return client.Typed[[]byte, []byte, kv.Result]{Client: c,
		Coding: smrclient.Coding[[]byte, []byte, kv.Result]{Command: same, Query: same, Result: kv.DecodeResult}}
}

// Buy adds a purchase to those of a user.
func (f *front) Buy(ctx context.Context, req *demov1.BuyRequest) (*demov1.BuyResponse, error) {
	key := []byte("purchases/" + req.GetUser())
	for {
		before, err := f.group.Read(ctx, kv.Get(key))
		if err != nil {
			return nil, failed(err)
		}
		all := append(slices.Clip(before.Value), req.GetPurchase().GetItem()+"\n"...)
		after, err := f.group.Execute(ctx, kv.CompareAndSet(key, before.Version, all))
		switch {
		case err != nil:
			return nil, failed(err)
		case after.Status == kv.OK:
			return &demov1.BuyResponse{Number: uint32(strings.Count(string(all), "\n"))}, nil
		case after.Status != kv.Conflict: // else somebody has bought meanwhile
			return nil, status.Error(codes.Internal, fmt.Sprint(after.Status, ": ", after.Message))
		}
	}
}

// GetPH tells a user's purchases.
func (f *front) GetPH(ctx context.Context, req *demov1.GetPHRequest) (*demov1.GetPHResponse, error) {
	r, err := f.group.Read(ctx, kv.Get([]byte("purchases/"+req.GetUser())))
	if err != nil {
		return nil, failed(err)
	}
	out := new(demov1.GetPHResponse)
	for item := range strings.Lines(string(r.Value)) {
		out.Purchases = append(out.Purchases, &demov1.Purchase{Item: strings.TrimSpace(item)})
	}
	return out, nil
}

// failed returns the status of a call that the group did not answer. That of an outcome that is not
// known must not be one after which callers try again by themselves.
func failed(err error) error {
	if _, ok := errors.AsType[*client.RejectedError](err); ok {
		return status.Error(codes.Unavailable, err.Error())
	}
	return err
}
