package dump

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/foresay/foresay/clock"
	"github.com/foresay/foresay/store"
	"github.com/foresay/foresay/store/mvcc"
)

// fake is a store whose pages have two keys each. It fails once after so many pages.
type fake struct {
	shards [][]store.Item
	now    clock.Stamp
	fails  int
}

func (s *fake) Page(_ context.Context, shard int, at clock.Stamp, from mvcc.Cursor) (store.PageReply, error) {
	if s.fails--; s.fails == 0 {
		return store.PageReply{}, errors.New("the power fails")
	}
	s.now++
	out := store.PageReply{At: uint64(at)}
	if at == 0 {
		out.At = uint64(s.now)
	}
	items := s.shards[shard]
	if len(from) > 0 {
		items = items[from[0]:]
	} else {
		from = mvcc.Cursor{0}
	}
	if out.Items = items; len(items) > 2 {
		out.Items, out.Next = items[:2], []byte{from[0] + 2}
	}
	return out, nil
}

func item(key, value string) store.Item {
	return store.Item{Key: store.Key(key), Value: store.Value{Present: true, Bytes: []byte(value)}}
}

func newFake(fails int) *fake {
	return &fake{now: 1e9, fails: fails, shards: [][]store.Item{
		{item("\x00", "short"), item("\x00\xff", "binary"), item("a", "\xff\x00"), item("b<>&", ""), item("c", "\"\n")},
		nil, {item("ä", "ö")},
	}}
}

var header = Header{Store: "shop", StoreID: "one", Protocol: "carousel", Shards: 3}

func open(t *testing.T, name string) *os.File {
	t.Helper()
	f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

// TestWriteGoesOn interrupts writing after each page, and in the middle of what that has written.
// What the file has in the end is one snapshot, each key once.
func TestWriteGoesOn(t *testing.T) {
	want := ""
	for fails := range 6 {
		for torn := range 3 {
			name := filepath.Join(t.TempDir(), "export")
			src := newFake(fails)
			_, _, err := Write(t.Context(), open(t, name), src, header, 0, nil)
			if (err != nil) != (fails > 0) {
				t.Fatalf("with a failure at page %d: %v", fails, err)
			}
			if err != nil {
				b, err := os.ReadFile(name)
				if err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(name, b[:max(0, len(b)-7*torn)], 0o600); err != nil {
					t.Fatal(err)
				}
				if torn > 0 {
					src.now = 1e9 // what is left may not say of when it was
				}
				if _, _, err := Write(t.Context(), open(t, name), src, header, 0, nil); err != nil {
					t.Fatalf("with a failure at page %d, after which %d bytes are missing: %v", fails, 7*torn, err)
				}
			}
			b, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			if fails == 1 {
				b = bytes.ReplaceAll(b, []byte("000000002Z"), []byte("000000001Z")) // no page was there before
			}
			if want == "" {
				want = string(b)
			}
			if diff := cmp.Diff(want, string(b)); diff != "" {
				t.Fatalf("with a failure at page %d, after which %d bytes are missing (-want +got):\n%s", fails, 7*torn, diff)
			}
		}
	}
	if _, err := Check("export", strings.NewReader(want)); err != nil {
		t.Error(err)
	}
}

// TestRead reads what Write has written.
func TestRead(t *testing.T) {
	name := filepath.Join(t.TempDir(), "export")
	src := newFake(0)
	keys, at, err := Write(t.Context(), open(t, name), src, header, 5e9, nil)
	if err != nil || keys != 6 || at != 5e9 {
		t.Fatalf("%d keys at %v were written, %v", keys, at, err)
	}
	r, err := NewReader(name, open(t, name))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for {
		i, err := r.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, fmt.Sprintf("%q=%q", i.Key, i.Value.Bytes))
	}
	var want []string
	for _, items := range src.shards {
		for _, i := range items {
			want = append(want, fmt.Sprintf("%q=%q", i.Key, i.Value.Bytes))
		}
	}
	if diff := cmp.Diff(want, got); diff != "" || r.At != 5e9 {
		t.Errorf("at %v (-want +got):\n%s", r.At, diff)
	}
	for _, tc := range []struct {
		at   clock.Stamp
		h    Header
		want string
	}{
		{0, header, name + ": the export is complete"},
		{6e9, header, name + `:1: at: the file has the snapshot of 1970-01-01T00:00:05Z, and that of 1970-01-01T00:00:06Z`},
		{0, Header{Store: "shop2", Shards: 3}, name + `:1: store: the file has an export of "shop", and the store is "shop2"`},
		{0, Header{Store: "shop", StoreID: "two", Shards: 3},
			name + `:1: store_id: the export was begun at another store that is named "shop"; remove ` + name},
		{0, Header{Store: "shop", StoreID: "one", Shards: 4}, name + ":1: shards: the file has 3, and the store 4"},
	} {
		_, _, err := Write(t.Context(), open(t, name), src, tc.h, tc.at, nil)
		if err == nil || !strings.HasPrefix(err.Error(), tc.want) {
			t.Errorf("error %v, want %s", err, tc.want)
		}
	}
}

// TestGoesOnAtItsStore: what was begun at a store is gone on with at that one, not at another of
// the same name; where an earlier version began it, nobody knows.
func TestGoesOnAtItsStore(t *testing.T) {
	for id, want := range map[string]string{"one": "", "two": "begun at another store", "": "begun at another store"} {
		name := filepath.Join(t.TempDir(), "export")
		if _, _, err := Write(t.Context(), open(t, name), newFake(3), header, 0, nil); err == nil {
			t.Fatal("writing was not interrupted")
		}
		before, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		h, resumed := header, 0
		h.StoreID = id
		_, _, err = Write(t.Context(), open(t, name), newFake(0), h, 0, func(p Progress) {
			if p.Resumed {
				resumed = p.Keys
			}
		})
		if want == "" {
			if err != nil || resumed != 4 {
				t.Errorf("it went on behind %d keys, want 4 (%v)", resumed, err)
			}
			continue
		}
		if err == nil || !strings.Contains(err.Error(), want) || resumed != 0 {
			t.Errorf("at the store %q: error %v, want %q; %d keys are gone on behind", id, err, want, resumed)
		}
		if after, err := os.ReadFile(name); err != nil || !bytes.Equal(before, after) {
			t.Errorf("at the store %q the file was changed (%v)", id, err)
		}
		old := bytes.Replace(before, []byte(`"store_id":"one",`), nil, 1)
		if err := os.WriteFile(name, old, 0o600); err != nil {
			t.Fatal(err)
		}
		if _, _, err := Write(t.Context(), open(t, name), newFake(0), header, 0, nil); err == nil ||
			!strings.Contains(err.Error(), "store_id: it is missing: an earlier version began the export") {
			t.Errorf("the file of an earlier version: %v", err)
		}
	}
}

// TestErrors: what does not fit is told by file, line and field.
func TestErrors(t *testing.T) {
	const first = `{"foresay_store_export":1,"store":"s","protocol":"carousel","shards":1,"at":"2026-01-02T03:04:05Z"}` + "\n"
	for _, tc := range []struct{ file, want string }{
		{"", "f: it is empty"},
		{"{\"foresay", "f:1: the line has no end"},
		{"hello\n", "f:1: it is no line of an export: invalid character"},
		{strings.Replace(first, "export\":1", "export\":2", 1),
			"f:1: foresay_store_export: the format is 2; this program reads 1"},
		{strings.Replace(first, "2026-01-02T", "", 1), `f:1: at: "03:04:05Z" is no time such as 2006-01-02T15:04:05Z`},
		{strings.Replace(first, "shards\":1", "shards\":0", 1), "f:1: shards: it is 0"},
		{first, "f: the export is not complete"},
		{first + `{"key":"a","value":"b"}` + "\n" + `{"key":"a"`, "f:3: the line has no end"},
		{first + `{"key":"a","value":"b","colour":1}` + "\n", `f:2: it is no line of an export: json: unknown field "colour"`},
		{first + `{"key":"a","value":"b"} {}` + "\n", "f:2: it has more than one value"},
		{first + `{"key":"a"}` + "\n", "f:2: value: it is missing"},
		{first + `{"value":"a"}` + "\n", "f:2: key: it is missing"},
		{first + `{"key":"a","key_base64":"YQ==","value":"b"}` + "\n", "f:2: key: there is key_base64, too"},
		{first + `{"key":"b","value":""}` + "\n" + `{"key":"a","value":""}` + "\n", `f:3: key: "a" comes after "b"`},
		{first + `{"key":"b","value":""}` + "\n" + `{"key":"b","value":""}` + "\n", `f:3: key: "b" is there twice`},
		{first + `{"key":"","value":"b"}` + "\n", "f:2: key: it is empty, which no store takes"},
		{first + `{"shard":1,"keys":0}` + "\n", "f:2: shard: it is 1, where shard 0 is"},
		{first + `{"shard":0,"keys":1}` + "\n", "f:2: keys: it says 1, and there are 0"},
		{first + `{"end":true,"keys":0}` + "\n", "f:2: end: shard 0 of 1 has not ended"},
		{first + `{"shard":0,"keys":0}` + "\n" + `{"end":true,"keys":0}` + "\n" + `{"end":true,"keys":0}` + "\n",
			"f:4: there is a line behind the end"},
		{first + `{"shard":0,"keys":0}` + "\n" + `{"key":"a","value":"b"}` + "\n", "f:3: key: all 1 shards have ended"},
		{first + `{"key":"` + strings.Repeat("k", store.MaxKeyBytes+1) + `","value":""}` + "\n",
			"f:2: key: it has 4097 bytes (the limit is 4096)"},
	} {
		_, err := Check("f", strings.NewReader(tc.file))
		if err == nil || !strings.HasPrefix(err.Error(), tc.want) {
			t.Errorf("%.200s\nerror %v, want %s", tc.file, err, tc.want)
		}
	}
}

// FuzzCheck: whatever a file has, it is read or refused.
func FuzzCheck(f *testing.F) {
	f.Add([]byte(`{"foresay_store_export":1,"shards":1,"at":"2026-01-02T03:04:05Z"}` + "\n" + `{"key":"a","value":"b"}` + "\n"))
	f.Fuzz(func(_ *testing.T, b []byte) { _, _ = Check("f", bytes.NewReader(b)) })
}
