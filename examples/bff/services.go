package main

import (
	"context"
	"sync/atomic"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	bffv1 "github.com/foresay/foresay/api/foresay/bff/v1"
)

// backend is the four services. They know nothing of Foresay.
type backend struct {
	bffv1.UnimplementedUsersServer
	bffv1.UnimplementedPermissionsServer
	bffv1.UnimplementedPricingServer
	bffv1.UnimplementedStockServer

	seed  uint64
	data  *data
	calls atomic.Int64 // begun
	down  atomic.Bool  // permissions cannot be checked
}

// register registers the i-th service.
func (b *backend) register(i int, r grpc.ServiceRegistrar) {
	switch i {
	case 0:
		bffv1.RegisterUsersServer(r, b)
	case 1:
		bffv1.RegisterPermissionsServer(r, b)
	case 2:
		bffv1.RegisterPricingServer(r, b)
	default:
		bffv1.RegisterStockServer(r, b)
	}
}

// work takes a call's time.
func (b *backend) work(ctx context.Context, method string, req proto.Message) error {
	return pause(ctx, latency(b.seed, method, requestIDOf(ctx), req))
}

// GetUser implements the Users service.
func (b *backend) GetUser(ctx context.Context, req *bffv1.GetUserRequest) (*bffv1.GetUserResponse, error) {
	b.calls.Add(1)
	a, ok := get(b.data, b.data.users, req.GetUser())
	if !ok {
		return nil, status.Errorf(codes.NotFound, "there is no user %q", req.GetUser())
	}
	if err := b.work(ctx, bffv1.Users_GetUser_FullMethodName, req); err != nil {
		return nil, err
	}
	return &bffv1.GetUserResponse{Name: a.name, Plan: a.plan}, nil
}

// RecordView implements the Users service.
func (b *backend) RecordView(ctx context.Context, req *bffv1.RecordViewRequest) (*bffv1.RecordViewResponse, error) {
	b.calls.Add(1)
	if err := b.work(ctx, bffv1.Users_RecordView_FullMethodName, req); err != nil {
		return nil, err
	}
	d := b.data
	d.mu.Lock()
	defer d.mu.Unlock()
	d.views[req.GetRequest()] = append(d.views[req.GetRequest()], proto.CloneOf(req))
	return &bffv1.RecordViewResponse{}, nil
}

// Check implements the Permissions service.
func (b *backend) Check(ctx context.Context, req *bffv1.CheckRequest) (*bffv1.CheckResponse, error) {
	b.calls.Add(1)
	if b.down.Load() {
		return nil, status.Error(codes.Unavailable, "permissions are out of order")
	}
	allowed, ok := get(b.data, b.data.may, req.GetPlan())
	if !ok || req.GetAction() != seePrices {
		return nil, status.Errorf(codes.NotFound, "there is no plan %q or no action %q", req.GetPlan(), req.GetAction())
	}
	if err := b.work(ctx, bffv1.Permissions_Check_FullMethodName, req); err != nil {
		return nil, err
	}
	return &bffv1.CheckResponse{Allowed: allowed}, nil
}

// Quote implements the Pricing service.
func (b *backend) Quote(ctx context.Context, req *bffv1.QuoteRequest) (*bffv1.QuoteResponse, error) {
	b.calls.Add(1)
	price, ok := get(b.data, b.data.prices, offer{req.GetSku(), req.GetPlan()})
	if !ok {
		return nil, status.Errorf(codes.NotFound, "there is no article %q for plan %q", req.GetSku(), req.GetPlan())
	}
	if err := b.work(ctx, bffv1.Pricing_Quote_FullMethodName, req); err != nil {
		return nil, err
	}
	return &bffv1.QuoteResponse{PriceCents: price}, nil
}

// GetLevel implements the Stock service.
func (b *backend) GetLevel(ctx context.Context, req *bffv1.GetLevelRequest) (*bffv1.GetLevelResponse, error) {
	b.calls.Add(1)
	pieces, ok := get(b.data, b.data.stock, req.GetSku())
	if !ok {
		return nil, status.Errorf(codes.NotFound, "there is no article %q", req.GetSku())
	}
	if err := b.work(ctx, bffv1.Stock_GetLevel_FullMethodName, req); err != nil {
		return nil, err
	}
	return &bffv1.GetLevelResponse{Pieces: pieces}, nil
}
