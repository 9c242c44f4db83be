package observe

import (
	"bufio"
	"io"
	"net"
	"net/http"
)

// statusWriter notes a response's status. Handlers ask writers for more than http.ResponseWriter,
// by type assertion: like returns one that can what the original can.
type statusWriter struct {
	http.ResponseWriter
	status int
}

func (w *statusWriter) WriteHeader(status int) {
	if w.status == 0 && status >= http.StatusOK { // not for 103 Early Hints
		w.status = status
	}
	w.ResponseWriter.WriteHeader(status)
}

// Unwrap is for http.ResponseController.
func (w *statusWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func (w *statusWriter) Flush() { w.ResponseWriter.(http.Flusher).Flush() }

// FlushError is what http.ResponseController asks for before Flush.
func (w *statusWriter) FlushError() error {
	return http.NewResponseController(w.ResponseWriter).Flush()
}

// flusher is http.Flusher with the error that http.ResponseController looks for.
type flusher interface {
	http.Flusher
	FlushError() error
}

func (w *statusWriter) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	return w.ResponseWriter.(http.Hijacker).Hijack()
}

func (w *statusWriter) ReadFrom(r io.Reader) (int64, error) {
	return w.ResponseWriter.(io.ReaderFrom).ReadFrom(r)
}

func (w *statusWriter) Push(target string, opts *http.PushOptions) error {
	return w.ResponseWriter.(http.Pusher).Push(target, opts)
}

// bareWriter hides what not every writer can.
type bareWriter interface {
	http.ResponseWriter
	Unwrap() http.ResponseWriter
}

// like returns the writer with the abilities of the original, as net/http's servers combine them.
func (w *statusWriter) like(original http.ResponseWriter) http.ResponseWriter {
	_, flushes := original.(http.Flusher)
	_, hijacker := original.(http.Hijacker)
	_, reader := original.(io.ReaderFrom)
	_, pusher := original.(http.Pusher)
	switch {
	case flushes && hijacker && reader: // HTTP/1
		return struct {
			bareWriter
			flusher
			http.Hijacker
			io.ReaderFrom
		}{w, w, w, w}
	case flushes && pusher: // HTTP/2
		return struct {
			bareWriter
			flusher
			http.Pusher
		}{w, w, w}
	case flushes && hijacker:
		return struct {
			bareWriter
			flusher
			http.Hijacker
		}{w, w, w}
	case flushes:
		return struct {
			bareWriter
			flusher
		}{w, w}
	default:
		return struct{ bareWriter }{w}
	}
}
