package dash

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
)

// maxEvent bounds one event of a stream, in bytes.
const maxEvent = 8 << 20

// readEvents reads server-sent events until the stream ends or take fails. data
// is only valid during the call. Comments are told as events without a kind.
func readEvents(r io.Reader, take func(kind string, data []byte) error) error {
	lines := bufio.NewScanner(r)
	lines.Buffer(make([]byte, 0, 16<<10), maxEvent)
	kind, data, some := "", []byte(nil), false
	for lines.Scan() {
		line := lines.Bytes()
		if len(line) == 0 {
			if some || kind == "" {
				if err := take(kind, data); err != nil {
					return err
				}
			}
			kind, data, some = "", data[:0], false
			continue
		}
		field, value, _ := bytes.Cut(line, []byte(":"))
		value = bytes.TrimPrefix(value, []byte(" "))
		switch string(field) {
		case "event":
			kind = string(value)
		case "data":
			if some {
				data = append(data, '\n')
			}
			data, some = append(data, value...), true
			if len(data) > maxEvent {
				return fmt.Errorf("an event is longer than %d bytes", maxEvent)
			}
		}
	}
	if err := lines.Err(); err != nil {
		if errors.Is(err, bufio.ErrTooLong) {
			return fmt.Errorf("an event is longer than %d bytes", maxEvent)
		}
		return fmt.Errorf("the stream broke: %w", err)
	}
	return errors.New("the service ended the stream")
}
