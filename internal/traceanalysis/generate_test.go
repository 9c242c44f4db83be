package traceanalysis_test

import (
	"bytes"
	"compress/gzip"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"time"
)

// world makes traces of a shop: a BFF over users, permissions, pricing and stock, with carts and
// orders. The services' clocks differ.
type world struct {
	chance *rand.Rand
	lines  map[string][]any // spans of the batch being gathered, by service
	out    bytes.Buffer
	now    time.Duration // since 1970
}

// node is where spans are made.
type node struct {
	w       *world
	service string
	trace   string
	at      time.Duration
}

// skew is how far a service's clock is ahead.
func skew(service string) time.Duration {
	return map[string]time.Duration{"pricing": 3 * time.Millisecond, "stock": -2 * time.Millisecond}[service]
}

func (w *world) id(bytes int) string {
	b := make([]byte, bytes)
	for i := range b {
		b[i] = byte(w.chance.Uint32())
	}
	b[0] |= 1
	return hex.EncodeToString(b)
}

// latency draws from a lognormal distribution: most are near the median, some take several times as
// long.
func (w *world) latency(medianMS float64) time.Duration {
	return time.Duration(medianMS * math.Exp(0.35*w.chance.NormFloat64()) * float64(time.Millisecond))
}

func attribute(key, value string) any {
	return map[string]any{"key": key, "value": map[string]any{"stringValue": value}}
}

func (n *node) span(id, parent, name string, kind int, from, to time.Duration, attributes ...any) {
	s := map[string]any{
		"traceId": n.trace, "spanId": id, "name": name, "kind": kind, "attributes": attributes, "status": map[string]any{},
		"startTimeUnixNano": strconv.FormatInt(int64(from+skew(n.service)), 10),
		"endTimeUnixNano":   strconv.FormatInt(int64(to+skew(n.service)), 10),
	}
	if parent != "" {
		s["parentSpanId"] = parent
	}
	n.w.lines[n.service] = append(n.w.lines[n.service], s)
}

func rpc(method string) []any {
	return []any{attribute("rpc.system.name", "grpc"), attribute("rpc.method", method)}
}

// call makes a call that takes as long as its handler and the network, and returns when it ends.
func (n *node) call(
	parent string, at time.Duration, service, method string, medianMS float64,
	handler func(*node, string, time.Duration) time.Duration,
) time.Duration {
	client, server := n.w.id(8), n.w.id(8)
	network := n.w.latency(0.4)
	began := at + network
	ended := began + n.w.latency(medianMS)
	callee := &node{n.w, service, n.trace, began}
	if handler != nil {
		ended = handler(callee, server, began)
	}
	callee.span(server, client, method, 2, began, ended, rpc(method)...)
	n.span(client, parent, method, 3, at, ended+network, rpc(method)...)
	return ended + network
}

func (n *node) database(parent string, at time.Duration, name string, medianMS float64) time.Duration {
	end := at + n.w.latency(medianMS)
	n.span(n.w.id(8), parent, name, 3, at, end, attribute("db.system.name", "postgresql"), attribute("db.query.text", "…"))
	return end
}

// product is users -> permissions -> pricing beside stock; one of thirty users may not see the
// product.
func (w *world) product() {
	n := &node{w, "bff", w.id(16), w.now}
	root := w.id(8)
	at := w.now + w.latency(0.8)
	at = n.call(root, at, "users", "users.v1.Users/GetSession", 0,
		func(n *node, server string, at time.Duration) time.Duration {
			at = n.database(server, at+w.latency(0.3), "SELECT sessions", 9)
			return n.database(server, at+w.latency(0.2), "SELECT users", 7) + w.latency(0.3)
		})
	at = n.call(root, at+w.latency(0.5), "permissions", "permissions.v1.Permissions/Check", 22, nil)
	if w.chance.IntN(30) > 0 {
		from := at + w.latency(0.5)
		work := w.id(8) // a span between the request's and its calls'
		at = max(n.call(work, from, "pricing", "pricing.v1.Pricing/GetQuote", 31, nil),
			n.call(work, from, "stock", "stock.v1.Stock/ListLevels", 24, nil))
		n.span(work, root, "assemble", 1, from, at)
	}
	at += w.latency(1.2)
	n.span(root, "", "shop.v1.Shop/Product", 2, w.now, at, rpc("shop.v1.Shop/Product")...)
}

// checkout is users -> cart -> an order is placed -> stock.
func (w *world) checkout() {
	n := &node{w, "bff", w.id(16), w.now}
	root := w.id(8)
	at := n.call(root, w.now+w.latency(0.8), "users", "users.v1.Users/GetSession", 16, nil)
	at = n.call(root, at+w.latency(0.4), "cart", "cart.v1.Carts/Get", 12, nil)
	at = n.call(root, at+w.latency(0.4), "orders", "orders.v1.Orders/Place", 35, nil)
	at = n.call(root, at+w.latency(0.4), "stock", "stock.v1.Stock/ListLevels", 20, nil) + w.latency(0.8)
	n.span(root, "", "shop.v1.Shop/Checkout", 2, w.now, at, rpc("shop.v1.Shop/Checkout")...)
}

// flush writes what the services have gathered, one object a line, as the file exporter does.
func (w *world) flush() error {
	for _, service := range []string{"stock", "users", "bff", "pricing", "permissions", "cart", "orders"} {
		if len(w.lines[service]) == 0 {
			continue
		}
		scope := map[string]any{"scope": map[string]any{"name": "otelgrpc"}, "spans": w.lines[service]}
		resource := map[string]any{"resource": map[string]any{"attributes": []any{attribute("service.name", service)}},
			"scopeSpans": []any{scope}}
		b, err := json.Marshal(map[string]any{"resourceSpans": []any{resource}})
		if err != nil {
			return err
		}
		w.out.Write(append(b, '\n'))
	}
	clear(w.lines)
	return nil
}

func generate(requests int) ([]byte, error) {
	w := &world{chance: rand.New(rand.NewPCG(2026, 11)), lines: map[string][]any{}, now: 1_780_000_000 * time.Second}
	for i := range requests {
		if w.chance.IntN(5) == 0 {
			w.checkout()
		} else {
			w.product()
		}
		w.now += w.latency(300)
		if i%7 == 6 || i == requests-1 {
			if err := w.flush(); err != nil {
				return nil, err
			}
		}
	}
	return w.out.Bytes(), nil
}

const shopFile = "testdata/shop.json.gz"

// TestShopFile: the committed file is what the generator makes. FORESAY_WRITE_TESTDATA=1 writes it.
func TestShopFile(t *testing.T) {
	want, err := generate(150)
	if err != nil {
		t.Fatal(err)
	}
	if os.Getenv("FORESAY_WRITE_TESTDATA") != "" {
		var b bytes.Buffer
		z, err := gzip.NewWriterLevel(&b, gzip.BestCompression)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := z.Write(want); err != nil {
			t.Fatal(err)
		}
		if err := z.Close(); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(shopFile, b.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	f, err := os.Open(shopFile)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	var got bytes.Buffer
	if _, err := got.ReadFrom(z); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got.Bytes(), want) {
		t.Errorf("%s is not what the generator makes: %s", shopFile, firstDifference(got.Bytes(), want))
	}
}

func firstDifference(got, want []byte) string {
	for i := range min(len(got), len(want)) {
		if got[i] != want[i] {
			return fmt.Sprintf("byte %d: %.80q, want %.80q", i, got[i:], want[i:])
		}
	}
	return fmt.Sprintf("%d bytes, want %d", len(got), len(want))
}
