package command

import (
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"text/tabwriter"
	"unicode/utf8"

	"github.com/foresay/foresay/smr/kv"
)

// A KVAnswer is what a call to a key-value service came to. A value that is no text is in Base64, a
// key that is none in both ways.
type KVAnswer struct {
	Key         string     `json:"key"`
	KeyBase64   []byte     `json:"key_base64,omitempty"`
	Value       string     `json:"value,omitempty"`
	ValueBase64 []byte     `json:"value_base64,omitempty"`
	Version     uint64     `json:"version"`
	Lease       kv.LeaseID `json:"lease,omitempty"`
	Deleted     bool       `json:"deleted,omitempty"`

	raw  []byte
	show bool // the value, not the version
}

// MarshalJSON adds the key in Base64 if JSON cannot have it as text.
func (a KVAnswer) MarshalJSON() ([]byte, error) {
	if !utf8.ValidString(a.Key) {
		a.KeyBase64 = []byte(a.Key)
	}
	type plain KVAnswer
	return json.Marshal(plain(a))
}

// Text is what people see of it.
func (a KVAnswer) Text() string {
	if a.show {
		return string(a.raw)
	}
	return "version " + strconv.FormatUint(a.Version, 10)
}

// WithValue adds a value, for showing it.
func (a KVAnswer) WithValue(v []byte) KVAnswer {
	a.raw, a.show = v, true
	if utf8.Valid(v) {
		a.Value = string(v)
	} else {
		a.ValueBase64 = v
	}
	return a
}

// Value returns the value that an argument means: itself, or what is on standard input if it is a
// dash. It has so many bytes at most.
func (p *Program) Value(most int, arg string) ([]byte, error) {
	b := []byte(arg)
	if arg == "-" {
		var err error
		if b, err = io.ReadAll(io.LimitReader(p.In, int64(most)+1)); err != nil {
			return nil, err
		}
	}
	if len(b) > most {
		return nil, fmt.Errorf("the value has more than %d bytes", most)
	}
	return b, nil
}

// WriteScan shows the keys of a range.
func (p *Program) WriteScan(items []kv.Item, more, asJSON bool) error {
	answers := []KVAnswer{}
	for _, i := range items {
		answers = append(answers, KVAnswer{Key: string(i.Key), Version: i.Version, Lease: i.Lease}.WithValue(i.Value))
	}
	if asJSON {
		return p.WriteJSON(struct {
			Items []KVAnswer `json:"items"`
			More  bool       `json:"more"`
		}{answers, more})
	}
	t := tabwriter.NewWriter(p.Out, 0, 8, 2, ' ', 0)
	fmt.Fprintln(t, "key\tversion\tvalue")
	for _, a := range answers {
		fmt.Fprintf(t, "%s\t%d\t%s\n", Printable(a.Key), a.Version, Printable(string(a.raw)))
	}
	if err := t.Flush(); err != nil {
		return err
	}
	if more {
		fmt.Fprintln(p.Err, "there are more; go on from the last key")
	}
	return nil
}

// WriteChange shows what is at a key since a change.
func (p *Program) WriteChange(i kv.Item, asJSON bool) error {
	a := KVAnswer{Key: string(i.Key), Version: i.Version, Deleted: i.Deleted, Lease: i.Lease}
	if !a.Deleted {
		a = a.WithValue(i.Value)
	}
	var err error
	switch {
	case asJSON:
		return p.WriteJSONLine(a)
	case a.Deleted:
		_, err = fmt.Fprintf(p.Out, "%s is not there\n", i.Key)
	default:
		_, err = fmt.Fprintf(p.Out, "%s = %s (version %d)\n", i.Key, a.raw, a.Version)
	}
	return err
}
