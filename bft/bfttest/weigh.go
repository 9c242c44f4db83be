package bfttest

import (
	"github.com/foresay/foresay/bft"
	"github.com/foresay/foresay/protocol"
)

// weighing is a codec that notes how large messages are.
type weighing struct {
	protocol.Codec[bft.Message]
	report *Report
}

// Append is part of protocol.Codec.
func (w weighing) Append(to []byte, msg bft.Message) ([]byte, error) {
	b, err := w.Codec.Append(to, msg)
	w.report.Largest = max(w.report.Largest, len(b)-len(to))
	return b, err
}
