package metrics

import (
	"github.com/foresay/foresay/host"
	"github.com/foresay/foresay/transport"
)

// Node adds what a node has done. Names begin with the prefix.
func Node(page *Page, prefix string, n host.NodeStats, labels ...string) {
	page.Counter(prefix+"steps_total", "Calls of the node.", n.Steps, labels...)
	page.Gauge(prefix+"queued_messages", "Messages that the node has not looked at.", float64(n.Queued), labels...)
	page.Gauge(prefix+"queued_bytes", "Their size.", float64(n.QueuedBytes), labels...)
	page.Gauge(prefix+"held_messages", "Messages that wait for the disk.", float64(n.Held), labels...)
	page.Counter(prefix+"dropped_messages_total", "Messages that came to a full queue.", n.Dropped, labels...)
	page.Counter(prefix+"malformed_messages_total", "Messages that could not be read.", n.Malformed, labels...)
	page.Counter(prefix+"disk_operations_total", "Operations that were committed to the disk.", n.Ops, labels...)
	page.Counter(prefix+"disk_records_total", "Records of logs among them.", n.Records, labels...)
}

// Network adds what a host's network has done. Names begin with the prefix.
func Network(page *Page, prefix string, n transport.Stats) {
	page.Counter(prefix+"received_messages_total", "Messages that arrived.", n.Received)
	page.Gauge(prefix+"client_streams", "Clients that are connected.", float64(n.Clients))
	page.Counter(prefix+"refused_handshakes_total", "Connections without a valid certificate.", n.RefusedHandshakes)
}
