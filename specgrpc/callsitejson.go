package specgrpc

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"
)

// checkJSON refuses what encoding/json lets pass: a second value, null, a
// repeated key, a key in another case. Errors name the line.
func checkJSON(data []byte) error {
	d := json.NewDecoder(bytes.NewReader(data))
	err := checkValue(d)
	if err == nil {
		var t json.Token
		if t, err = d.Token(); err == io.EOF {
			return nil
		} else if err == nil {
			err = fmt.Errorf("more after the first JSON value: %v", t)
		}
	}
	if err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	at := min(int(d.InputOffset()), len(data))
	return fmt.Errorf("line %d: %w", 1+bytes.Count(data[:at], []byte("\n")), err)
}

func checkValue(d *json.Decoder) error {
	t, err := d.Token()
	if err != nil {
		return err
	}
	switch t {
	case nil:
		return fmt.Errorf("null; leave the field out instead")
	case json.Delim('['):
		for d.More() {
			if err := checkValue(d); err != nil {
				return err
			}
		}
	case json.Delim('{'):
		if err := checkFields(d); err != nil {
			return err
		}
	default:
		return nil
	}
	_, err = d.Token()
	return err
}

func checkFields(d *json.Decoder) error {
	seen := make(map[string]bool)
	for d.More() {
		t, err := d.Token()
		if err != nil {
			return err
		}
		key, _ := t.(string)
		switch {
		case seen[key]:
			return fmt.Errorf("field %q is repeated", key)
		case strings.Contains(key, "/"):
			return fmt.Errorf("field %q is unknown: \"sites\" is a list, and what is in it names its method in \"method\"", key)
		case key != strings.ToLower(key):
			return fmt.Errorf("field %q is unknown: fields are in lower case", key)
		}
		seen[key] = true
		if err := checkValue(d); err != nil {
			return fmt.Errorf("field %q: %w", key, err)
		}
	}
	return nil
}

// unknownIn returns the field that an error of strictly calls unknown, or "".
func unknownIn(err error) string {
	_, rest, _ := strings.Cut(err.Error(), `unknown field "`)
	name, _, _ := strings.Cut(rest, `"`)
	return name
}

// lineOf returns the line on which the i-th call site of a file has a field, or begins if it has
// none of this name; with -1 that of a field of the file. The file is JSON; where it is of another
// form the line is that up to which it is not.
func lineOf(data []byte, i int, field string) int {
	d := json.NewDecoder(bytes.NewReader(data))
	at := func() int { return 1 + bytes.Count(data[:min(int(d.InputOffset()), len(data))], []byte("\n")) }
	// find goes behind a key of the object that comes next.
	find := func(key string) bool {
		if t, err := d.Token(); err != nil || t != json.Delim('{') {
			return false
		}
		for d.More() {
			t, err := d.Token()
			if err != nil {
				return false
			}
			if name, _ := t.(string); strings.EqualFold(name, key) {
				return true
			}
			if d.Decode(new(json.RawMessage)) != nil {
				return false
			}
		}
		return false
	}
	if i < 0 {
		if !find(field) {
			return 1
		}
		return at()
	}
	if !find("sites") {
		return 1
	}
	if t, err := d.Token(); err != nil || t != json.Delim('[') {
		return at()
	}
	for ; i > 0; i-- {
		if d.Decode(new(json.RawMessage)) != nil {
			return at()
		}
	}
	var site json.RawMessage
	if d.Decode(&site) != nil {
		return at()
	}
	first := at() - bytes.Count(site, []byte("\n"))
	if d = json.NewDecoder(bytes.NewReader(site)); !find(field) {
		return first
	}
	return first + bytes.Count(site[:d.InputOffset()], []byte("\n"))
}
