package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/foresay/foresay/store/client"
	"github.com/foresay/foresay/wan"
)

// An item is what the shop knows of what it sells.
type item struct {
	Price, Quantity int
}

var errSoldOut = errors.New("it is sold out")

// customer orders at a site of the store.
type customer struct {
	name  string
	shop  *client.Client
	diary *diary
	mails chan string // those that were not read yet
}

// join makes a customer, who can order from now on: a first transaction waits for connections to
// all sites.
func (s *sites) join(ctx context.Context, name string, at wan.Site, d *diary) (*customer, error) {
	shop, err := s.dial(at)
	if err != nil {
		return nil, err
	}
	c := &customer{name: name, shop: shop, diary: d, mails: make(chan string, 1)}
	return c, shop.Txn(ctx, func(_ context.Context, tx *client.Tx) error {
		return tx.Put("customer/"+name, []byte(at))
	})
}

// order buys one of an item, and returns when the last mail about that has come.
func (c *customer) order(ctx context.Context, name string) error {
	err := c.buy(ctx, name)
	if errors.Is(err, errSoldOut) {
		c.diary.note(c.name, "the shop says: "+err.Error())
		return nil
	}
	if err != nil {
		return err
	}
	c.diary.note(c.name, "(goes on)")
	select {
	case mail := <-c.mails:
		c.diary.note(c.name, "mail: "+mail)
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// buy takes one of an item from stock. It returns when the customer may be told that the order is
// placed: at once if little can go wrong, and otherwise when the order is final [STR §4, Listing
// 1].
func (c *customer) buy(ctx context.Context, name string) error {
	return c.shop.Txn(client.WithClass(ctx, "buy"), func(ctx context.Context, tx *client.Tx) error {
		it, err := read(ctx, tx, name)
		if err != nil {
			return err
		}
		if it.Quantity == 0 {
			return errSoldOut
		}
		it.Quantity--
		tx.Note("price", it.Price)
		return write(tx, name, it)
	}, client.Tentative{
		Allow: func(i client.TentativeInfo) bool {
			return i.Notes["price"].(int) < 100 && i.CommitRate > 0.9
		},
		Speculated: func() { c.diary.note(c.name, "the shop says: your order of a "+name+" is placed") },
		Final:      func() { c.mails <- "your " + name + " is on its way" },
		Apology:    func(error) { c.mails <- "we are sorry, somebody else has got the " + name },
	})
}

func read(ctx context.Context, tx *client.Tx, name string) (it item, err error) {
	b, ok, err := tx.Get(ctx, "item/"+name)
	if err != nil || !ok {
		return it, err
	}
	return it, json.Unmarshal(b, &it)
}

func write(tx *client.Tx, name string, it item) error {
	b, err := json.Marshal(it)
	if err != nil {
		return err
	}
	return tx.Put("item/"+name, b)
}

// stock fills the shop, and returns when that is final.
func stock(ctx context.Context, c *client.Client, items map[string]item) error {
	return c.Txn(ctx, func(_ context.Context, tx *client.Tx) error {
		for name, it := range items {
			if err := write(tx, name, it); err != nil {
				return err
			}
		}
		return nil
	})
}

// A diary is what customers hear, and how long after they have begun.
type diary struct {
	mu    sync.Mutex
	out   io.Writer
	start time.Time
}

func (d *diary) begin(title string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.start = time.Now()
	fmt.Fprintln(d.out, title)
}

func (d *diary) note(who, what string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	fmt.Fprintf(d.out, "%5d ms  %s: %s\n", time.Since(d.start).Milliseconds(), who, what)
}
