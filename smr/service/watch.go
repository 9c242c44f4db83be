package service

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/foresay/foresay/smr/client"
	"github.com/foresay/foresay/smr/kv"
)

// WatchOptions say which keys are watched, and how. The zero value watches all keys, from now on.
type WatchOptions struct {
	// From and To bound the keys: those from From up to, but not including, To; an empty To is no
	// end.
	From, To string
	// After is the version to go on after, as of a watch that ended: its last change's. 0 begins
	// with what is there.
	After uint64
	// Every is the time between two reads while too few members tell of changes, 0 for 200 ms.
	Every time.Duration
	// Within bounds how long one read waits for an answer, 0 for 10 s.
	Within time.Duration
}

const (
	// watchPause is the least time between the beginnings of two reads, if Every is not less: what
	// changes all the time is read so often.
	watchPause = 20 * time.Millisecond
	// watchAnyway is the longest time between two reads, however quiet it is.
	watchAnyway = time.Minute
)

// OnlyKey returns the options for watching one key.
func OnlyKey(key string) WatchOptions { return WatchOptions{From: key, To: key + "\x00"} }

// A CompactedError says that the service does not remember the changes that a watch wanted. It
// keeps the newest 10,000, or 4 MiB of them.
type CompactedError struct {
	After   uint64 // what the watch wanted the changes after
	Version uint64 // the service's newest version
}

func (e *CompactedError) Error() string {
	return fmt.Sprintf("the changes after version %d are not kept any more; the newest version is %d", e.After, e.Version)
}

// Watch is Client.Watch of one group.
func (c *groupClient) Watch(ctx context.Context, o WatchOptions) iter.Seq2[[]kv.Item, error] {
	return watchGroups(ctx, []*groupClient{c}, o)
}

// watchGroups watches keys of several groups.
func watchGroups(ctx context.Context, groups []*groupClient, o WatchOptions) iter.Seq2[[]kv.Item, error] {
	if o.Every <= 0 {
		o.Every = 200 * time.Millisecond
	}
	if o.Within <= 0 {
		o.Within = 10 * time.Second
	}
	return func(yield func([]kv.Item, error) bool) {
		w := watches{began: o.After > 0, wake: make(chan struct{}, 1)}
		for _, c := range groups {
			l := c.whole.lookOut(c.number, span{o.From, o.To}, w.wake)
			defer l.close()
			w.each = append(w.each, &watch{c: c, o: o, after: o.After, began: o.After > 0, lookout: l})
		}
		for ctx.Err() == nil {
			first := !w.began
			items, more, err := w.read(ctx)
			if ctx.Err() != nil {
				return
			}
			if (first && w.began || len(items) > 0) && !yield(items, nil) {
				return
			}
			if err != nil {
				if _, unknown := errors.AsType[*client.UnknownError](err); !yield(nil, err) || !unknown {
					return
				}
			}
			if !more {
				w.rest(ctx)
			}
		}
	}
}

// watches are those of several groups.
type watches struct {
	each  []*watch
	wake  chan struct{}
	began bool      // all have
	held  []kv.Item // what those that have begun have told before all had
}

// rest waits until it is time for one of them.
func (w *watches) rest(ctx context.Context) {
	now := time.Now()
	next := now.Add(watchAnyway)
	for _, one := range w.each {
		if t := one.next(now); t.Before(next) {
			next = t
		}
	}
	timer := time.NewTimer(next.Sub(now))
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	case <-w.wake:
	}
}

// read returns what is new in the groups that it is time for, also if there is an error: that of
// one, an unknown outcome only if there is no other.
func (w *watches) read(ctx context.Context) (items []kv.Item, more bool, err error) {
	news := make([]struct {
		items []kv.Item
		err   error
	}, len(w.each))
	var group errgroup.Group
	group.SetLimit(eachAtOnce)
	for i, one := range w.each {
		n := &news[i]
		group.Go(func() error {
			n.items, n.err = one.step(ctx)
			return nil
		})
	}
	_ = group.Wait() // none returns an error
	began := true
	for i, n := range news {
		items, more, began = append(items, n.items...), more || w.each[i].more, began && w.each[i].began
		if _, unknown := errors.AsType[*client.UnknownError](err); err == nil || n.err != nil && unknown {
			err = n.err
		}
	}
	if w.began {
		return items, more, err
	}
	w.held = append(w.held, items...)
	if w.began = began; !began {
		return nil, more, err
	}
	items, w.held = w.held, nil
	slices.SortStableFunc(items, func(a, b kv.Item) int { return bytes.Compare(a.Key, b.Key) })
	return items, more, err
}

// watch is where a Watch is.
type watch struct {
	c       *groupClient
	o       WatchOptions
	lookout *lookout
	after   uint64
	began   bool
	pages   []page    // of the first batch
	looked  time.Time // when the last read began
	failed  bool      // it did
	more    bool      // there is more to be had at once
}

// due returns when it is time to read.
func (w *watch) due(now time.Time) time.Time {
	switch {
	case w.more:
		return now
	case w.failed:
		return w.looked.Add(w.o.Every)
	case w.lookout.hinted():
		return w.looked.Add(min(w.o.Every, watchPause))
	case w.lookout.stands(now).IsZero():
		return w.looked.Add(w.o.Every)
	}
	return w.looked.Add(watchAnyway)
}

// next returns when something is to be done.
func (w *watch) next(now time.Time) time.Time {
	next := w.due(now)
	if !w.began {
		return next
	}
	for _, t := range []time.Time{w.lookout.renewal(now), w.lookout.stands(now)} {
		if !t.IsZero() && t.Before(next) {
			next = t
		}
	}
	return next
}

// step reads what is new, if it is time to, and renews the lookout, if it is time for that.
func (w *watch) step(ctx context.Context) (items []kv.Item, err error) {
	now := time.Now()
	reads := !w.due(now).After(now)
	if reads {
		w.looked = now
		items, w.more, err = w.read(ctx)
		w.failed = err != nil
	}
	if w.began && !w.more {
		w.lookout.renew(time.Now(), w.after, reads && !w.failed)
	}
	return items, err
}

// page is a part of the first batch: the keys before end, or all that are left, as they were at a
// version. Pages are read one after the other, so the changes up to it are in it.
type page struct {
	end     string
	last    bool
	version uint64
}

// read returns what is new, and whether there is more to be had at once.
func (w *watch) read(ctx context.Context) (items []kv.Item, more bool, err error) {
	if !w.began {
		items, err = w.begin(ctx)
		return items, false, err
	}
	ctx, cancel := context.WithTimeout(ctx, w.o.Within)
	defer cancel()
	r, err := known(w.c.kv.Read(ctx, kv.Changes([]byte(w.o.From), []byte(w.o.To), w.after, 0)))
	if err == nil && r.Status == kv.Compacted {
		err = &CompactedError{After: w.after, Version: r.Version}
	}
	if err != nil {
		return nil, false, err
	}
	w.after = r.Version
	for _, i := range w.c.outerItems(r.Items) {
		if !w.told(i) {
			items = append(items, i)
		}
	}
	if !r.More {
		w.pages = nil // all later changes are newer than they
	}
	return items, r.More, nil
}

// begin reads what is there. Changes are told after the first page's version.
func (w *watch) begin(ctx context.Context) ([]kv.Item, error) {
	var items []kv.Item
	w.pages = nil
	for from := w.o.From; ; {
		call, cancel := context.WithTimeout(ctx, w.o.Within)
		r, err := known(w.c.kv.Read(call, kv.Scan([]byte(from), []byte(w.o.To), 0)))
		cancel()
		if err != nil {
			return nil, err
		}
		items = append(items, w.c.outerItems(r.Items)...)
		if !r.More {
			w.pages = append(w.pages, page{last: true, version: r.Version})
			w.after, w.began = w.pages[0].version, true
			return items, nil
		}
		from = string(r.Items[len(r.Items)-1].Key) + "\x00"
		w.pages = append(w.pages, page{end: from, version: r.Version})
	}
}

// told says whether the first batch has a change, or what came after it.
func (w *watch) told(i kv.Item) bool {
	for _, p := range w.pages {
		if p.last || string(i.Key) < p.end {
			return i.Version <= p.version
		}
	}
	return false
}
