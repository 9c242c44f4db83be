package dump

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"time"
	"unicode/utf8"

	"github.com/foresay/foresay/clock"
	"github.com/foresay/foresay/store"
)

// format is that of the files; a reader refuses others.
const format = 1

// A Header is a file's first line: which snapshot it has.
type Header struct {
	Format int    `json:"foresay_store_export"`
	Store  string `json:"store"` // its cluster's name
	// StoreID is the store's alone: see storeconfig.Store.Identity. Earlier versions wrote none.
	StoreID  string `json:"store_id,omitempty"`
	Protocol string `json:"protocol"` // the store's
	Shards   int    `json:"shards"`
	At       string `json:"at"` // RFC 3339
}

// FormatTime returns a timestamp as people read it.
func FormatTime(at clock.Stamp) string { return time.Unix(0, int64(at)).UTC().Format(time.RFC3339Nano) }

// time returns the snapshot's timestamp.
func (h Header) time() (clock.Stamp, error) {
	t, err := time.Parse(time.RFC3339Nano, h.At)
	if err != nil || t.UnixNano() <= 0 {
		return 0, fmt.Errorf("at: %q is no time such as 2006-01-02T15:04:05Z", h.At)
	}
	return clock.Stamp(t.UnixNano()), nil
}

// line is any line but the first one: an item, the end of a page, or the end of all.
type line struct {
	Key         *string `json:"key,omitempty"`
	KeyBase64   []byte  `json:"key_base64,omitempty"` // instead of Key, if that is no text
	Value       *string `json:"value,omitempty"`
	ValueBase64 []byte  `json:"value_base64,omitempty"` // likewise

	Shard *int   `json:"shard,omitempty"` // whose page ends
	Next  []byte `json:"next,omitempty"`  // where the next one begins; absent: the shard has no other
	End   bool   `json:"end,omitempty"`
	Keys  *int   `json:"keys,omitempty"` // how many lines before have one
}

// kind says what a line is, or what is wrong with it.
func (l *line) kind() (kind string, err error) {
	hasKey, hasValue := l.Key != nil || l.KeyBase64 != nil, l.Value != nil || l.ValueBase64 != nil
	switch {
	case l.Key != nil && l.KeyBase64 != nil:
		return "", fmt.Errorf("key: there is key_base64, too")
	case l.Value != nil && l.ValueBase64 != nil:
		return "", fmt.Errorf("value: there is value_base64, too")
	case hasKey && (l.Shard != nil || l.Next != nil || l.End || l.Keys != nil):
		return "", fmt.Errorf("key: the line ends a page, too")
	case hasKey && !hasValue:
		return "", fmt.Errorf("value: it is missing")
	case hasKey:
		return "item", nil
	case hasValue:
		return "", fmt.Errorf("key: it is missing")
	case l.Keys == nil:
		return "", fmt.Errorf("keys: it is missing")
	case l.End && l.Shard == nil && l.Next == nil:
		return "end", nil
	case l.Shard != nil && !l.End:
		return "page", nil
	}
	return "", fmt.Errorf("shard: it is missing")
}

// item returns that of a line of the kind.
func (l *line) item() (store.Item, error) {
	i := store.Item{Value: store.Value{Present: true, Bytes: l.ValueBase64}, Key: store.Key(l.KeyBase64)}
	if l.Key != nil {
		i.Key = store.Key(*l.Key)
	}
	if l.Value != nil {
		i.Value.Bytes = []byte(*l.Value)
	}
	switch {
	case len(i.Key) > store.MaxKeyBytes:
		return i, fmt.Errorf("key: it has %d bytes (the limit is %d)", len(i.Key), store.MaxKeyBytes)
	case len(i.Value.Bytes) > store.MaxValueBytes:
		return i, fmt.Errorf("value: it has %d bytes (the limit is %d)", len(i.Value.Bytes), store.MaxValueBytes)
	}
	return i, nil
}

func itemLine(i store.Item) line {
	var l line
	if text := string(i.Key); utf8.ValidString(text) {
		l.Key = &text
	} else {
		l.KeyBase64 = []byte(i.Key)
	}
	if text := string(i.Value.Bytes); utf8.ValidString(text) {
		l.Value = &text
	} else {
		l.ValueBase64 = i.Value.Bytes
	}
	return l
}

// appendLine appends a line as it is in the file.
func appendLine(b []byte, v any) []byte {
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		panic(fmt.Sprintf("dump: a line cannot be encoded: %v", err)) // it has no field that could not
	}
	return append(b, out.Bytes()...)
}

// decode reads a line, which must have nothing else in it.
func decode(b []byte, v any) error {
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	if err := d.Decode(v); err != nil {
		return fmt.Errorf("it is no line of an export: %w", err)
	}
	if _, err := d.Token(); err != io.EOF {
		return fmt.Errorf("it has more than one value")
	}
	return nil
}
