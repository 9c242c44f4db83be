package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"sync"
	"time"
)

// answer is what came of a request.
type answer struct {
	request    request
	page       Page
	begun, end time.Time
	// took counts from when the request was due.
	took time.Duration
	err  error
}

// drive sends the requests when they are due, whether or not earlier ones are
// answered, and returns all answers. If ctx ends before, it returns those to
// the requests that it sent.
func drive(ctx context.Context, client *http.Client, address string, d *data, requests []request) []answer {
	answers := make([]answer, len(requests))
	var wg sync.WaitGroup
	defer wg.Wait()
	start := time.Now()
	for i, r := range requests {
		due := start.Add(r.at)
		if pause(ctx, time.Until(due)) != nil {
			return answers[:i]
		}
		d.apply(r.changes)
		wg.Go(func() {
			a := answer{request: r, begun: time.Now()}
			a.err = ask(context.WithoutCancel(ctx), client, address, r, &a.page)
			a.end = time.Now()
			a.took = a.end.Sub(due)
			answers[i] = a
		})
	}
	return answers
}

// ask gets one page.
func ask(ctx context.Context, client *http.Client, address string, r request, page *Page) error {
	query := url.Values{"user": {r.user}, "sku": {r.sku}}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+"/page?"+query.Encode(), nil)
	if err != nil {
		return err
	}
	req.Header.Set("X-Request-Id", r.id)
	res, err := client.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		return err
	}
	if res.StatusCode != http.StatusOK {
		return fmt.Errorf("request %s: %s: %s", r.id, res.Status, body)
	}
	return json.Unmarshal(body, page)
}

// newClient returns what the customers' browsers are.
func newClient(n network) *http.Client {
	return &http.Client{Transport: &http.Transport{
		DialContext: func(ctx context.Context, _, address string) (net.Conn, error) {
			return n.Dial(ctx, customers, address)
		},
		MaxIdleConnsPerHost: 100,
	}}
}
