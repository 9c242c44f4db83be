package dump_test

import (
	"context"
	"fmt"
	"io"
	"os"

	"github.com/foresay/foresay/clock"
	"github.com/foresay/foresay/store"
	"github.com/foresay/foresay/store/mvcc"
	"github.com/foresay/foresay/store/storeservice/dump"
)

// shop is a store with one key; usually a storeservice.Client is the source.
type shop struct{}

func (shop) Page(context.Context, int, clock.Stamp, mvcc.Cursor) (store.PageReply, error) {
	v := store.Value{Present: true, Bytes: []byte("hello")}
	return store.PageReply{At: 1e9, Items: []store.Item{{Key: "greeting", Value: v}}}, nil
}

// A snapshot is written to a file, and read again.
func Example() {
	f, err := os.CreateTemp("", "export")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.Remove(f.Name())
	h := dump.Header{Store: "shop", Protocol: "carousel", Shards: 1}
	if _, _, err := dump.Write(context.Background(), f, shop{}, h, 0, nil); err != nil {
		fmt.Println(err)
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		fmt.Println(err)
	}
	r, err := dump.NewReader(f.Name(), f)
	if err != nil {
		fmt.Println(err)
		return
	}
	i, err := r.Next()
	fmt.Printf("%s: %s = %s %v\n", r.Header.At, i.Key, i.Value.Bytes, err)
	// Output: 1970-01-01T00:00:01Z: greeting = hello <nil>
}
