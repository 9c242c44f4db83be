// The program shop sells from a store with copies at three sites, over the loopback interface with
// the delays of a wide-area network. Customers hear at once that their order is placed, as long as
// little can go wrong, and by mail what has become of it.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"os"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/foresay/foresay/wan"
	"github.com/foresay/foresay/wan/shape"
)

func main() {
	if err := run(os.Stdout, shape.NewLoopback(network(), 1)); err != nil {
		log.Fatal(err)
	}
}

// roundTrip is how long a message and its answer are under way between two sites.
const roundTrip = 200 * time.Millisecond

// network is that of the three sites.
func network() wan.Matrix { return wan.Uniform(roundTrip, "oregon", "ireland", "seoul") }

func run(out io.Writer, network *shape.Network) (err error) {
	s, err := open(network, []wan.Site{"oregon", "ireland", "seoul"})
	defer func() { err = errors.Join(err, s.close()) }()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	d := &diary{out: out}
	ann, err := s.join(ctx, "ann", "oregon", d)
	if err != nil {
		return err
	}
	ben, err := s.join(ctx, "ben", "seoul", d)
	if err != nil {
		return err
	}
	if err := stock(ctx, ann.shop, map[string]item{"book": {12, 9}, "sofa": {900, 2}, "lamp": {40, 1}}); err != nil {
		return err
	}
	return visit(ctx, d, ann, ben)
}

// visit has the customers order.
func visit(ctx context.Context, d *diary, ann, ben *customer) error {
	d.begin("ann orders a book for 12:")
	if err := ann.order(ctx, "book"); err != nil {
		return fmt.Errorf("a book: %w", err)
	}
	d.begin("ann orders a sofa for 900, which is too much to be wrong about:")
	if err := ann.order(ctx, "sofa"); err != nil {
		return fmt.Errorf("a sofa: %w", err)
	}
	d.begin("ann and ben order the last lamp at the same time, in oregon and in seoul:")
	var both errgroup.Group
	both.Go(func() error { return ann.order(ctx, "lamp") })
	both.Go(func() error { return ben.order(ctx, "lamp") })
	if err := both.Wait(); err != nil {
		return fmt.Errorf("a lamp: %w", err)
	}
	d.begin("ben orders a book, from a shop that was wrong in seoul just now:")
	if err := ben.order(ctx, "book"); err != nil {
		return fmt.Errorf("a book: %w", err)
	}
	return nil
}
