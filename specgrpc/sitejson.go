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
