package demo

import (
	"fmt"
	"net"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/foresay/foresay/control"

	demov1 "github.com/foresay/foresay/api/foresay/demo/v1"
	"github.com/foresay/foresay/predict"
	"github.com/foresay/foresay/specgrpc"
	"github.com/foresay/foresay/wan"
	"github.com/foresay/foresay/wan/shape"
)

// The sites of the demo.
const (
	client   wan.Site = "client"
	analysis wan.Site = "analysis"
	data     wan.Site = "data"
)

// matrix holds the round-trip times between the sites.
func matrix() wan.Matrix {
	return wan.Uniform(0, client, analysis, data).
		WithRTT(client, analysis, 60*time.Millisecond).
		WithRTT(client, data, 80*time.Millisecond).
		WithRTT(analysis, data, 40*time.Millisecond)
}

// world is one set of servers and the connections to them. A plain world's are
// plain gRPC; otherwise they are the same servers and stubs with Foresay around.
type world struct {
	net      *shape.Network
	data     *dataServer
	servers  []server
	closers  []func() error
	analysis demov1.AnalysisServiceClient
	shop     demov1.ShopClient
	sites    []*control.CallSite
	control  *control.Control // of all connections; nil: each has its own
}

func newWorld(o Options, plain bool, seed uint64) (*world, error) {
	w := &world{net: shape.NewLoopback(matrix(), seed), data: newDataServer(o.Users, o.Stale), control: o.control}
	w.data.keep = o.keep
	if o.lag > 0 {
		w.data.lag = o.lag
	}
	if err := w.open(plain); err != nil {
		w.close()
		return nil, err
	}
	return w, nil
}

func (w *world) open(plain bool) error {
	dataAddr, err := w.serve(data, plain, func(r grpc.ServiceRegistrar) {
		demov1.RegisterDataServiceServer(r, w.data)
		demov1.RegisterShopServer(r, w.data)
	})
	if err != nil {
		return err
	}
	toData, err := w.connect(plain, analysis, dataAddr,
		control.CallSiteConfig{Name: demov1.DataService_GetPH_FullMethodName,
			ServerPredictions: true})
	if err != nil {
		return err
	}
	a := &analysisServer{data: demov1.NewDataServiceClient(toData), known: map[string]*demov1.GetAIResponse{}}
	analysisAddr, err := w.serve(analysis, plain, func(r grpc.ServiceRegistrar) {
		demov1.RegisterAnalysisServiceServer(r, a)
	})
	if err != nil {
		return err
	}
	last := predict.LastValue(func(r *demov1.GetPIRequest) string { return r.GetUser() }, 1000)
	toAnalysis, err := w.connect(plain, client, analysisAddr,
		control.CallSiteConfig{Name: demov1.AnalysisService_GetPI_FullMethodName, ServerPredictions: true,
			Predictors: []control.Predictor{last}},
		control.CallSiteConfig{Name: demov1.AnalysisService_GetAI_FullMethodName, ServerPredictions: true})
	if err != nil {
		return err
	}
	var shopSites []control.CallSiteConfig
	if w.control != nil {
		// It has effects and is never predicted. Observed, it does not count as if it were.
		shopSites = append(shopSites, control.CallSiteConfig{Name: demov1.Shop_Buy_FullMethodName, Mode: control.ModeObserve})
	}
	toShop, err := w.connect(plain, client, dataAddr, shopSites...)
	if err != nil {
		return err
	}
	w.analysis, w.shop = demov1.NewAnalysisServiceClient(toAnalysis), demov1.NewShopClient(toShop)
	return nil
}

// server is what both kinds of server are.
type server interface {
	grpc.ServiceRegistrar
	Serve(net.Listener) error
	GracefulStop()
}

// serve starts a server at a site and returns its address.
func (w *world) serve(at wan.Site, plain bool, register func(grpc.ServiceRegistrar)) (string, error) {
	lis, err := w.net.Listen(at)
	if err != nil {
		return "", fmt.Errorf("demo: listen at %s: %w", at, err)
	}
	var s server = grpc.NewServer()
	if !plain {
		s = specgrpc.NewServer(specgrpc.AllReplayable(), specgrpc.SideEffectFree(demov1.AnalysisService_GetAI_FullMethodName))
	}
	register(s)
	w.servers = append(w.servers, s)
	go func() { _ = s.Serve(lis) }() // ends with GracefulStop
	return lis.Addr().String(), nil
}

// connection is what both kinds of client connection are.
type connection interface {
	grpc.ClientConnInterface
	Close() error
}

func (w *world) connect(plain bool, from wan.Site, addr string, sites ...control.CallSiteConfig) (connection, error) {
	opts := []grpc.DialOption{
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(w.net.DialContext(from)),
	}
	var cc connection
	var err error
	if plain {
		cc, err = grpc.NewClient("passthrough:///"+addr, opts...)
	} else {
		ctl := w.control
		if ctl == nil {
			// wrong guesses are part of the show
			if ctl, err = control.New(control.Config{Budget: -1}); err != nil {
				return nil, err
			}
		}
		cc, err = specgrpc.NewClient("passthrough:///"+addr, append(opts, specgrpc.WithCallSites(sites...),
			specgrpc.WithMode(control.ModeOn), specgrpc.WithControl(ctl))...)
	}
	if err != nil {
		return nil, fmt.Errorf("demo: connect %s to %s: %w", from, addr, err)
	}
	if sc, ok := cc.(*specgrpc.ClientConn); ok {
		for _, s := range sites {
			w.sites = append(w.sites, sc.CallSite(s.Name))
		}
	}
	w.closers = append(w.closers, cc.Close)
	return cc, nil
}

func (w *world) close() {
	for i := len(w.closers) - 1; i >= 0; i-- {
		_ = w.closers[i]() // nothing depends on an orderly goodbye
	}
	for _, s := range w.servers {
		s.GracefulStop()
	}
	_ = w.net.Close()
}
