package observe

import (
	"fmt"
	"net/http"
	"strings"

	"github.com/foresay/foresay/control"
)

// Handler begins a request for each that next gets, and ends it when next returns: failed if the
// status is 500 or above, or next panicked. Its name is the method and the pattern that it fits,
// "GET /users/{id}", which is known if next is a http.ServeMux or Handler stands behind one;
// otherwise the method alone. For the request's id see UnaryServerInterceptor.
func Handler(ctl *control.Control, next http.Handler) http.Handler {
	mustHave(ctl)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx, request := ctl.Begin(r.Context(), requestName(next, r), requestID(r.Context(), r.Header.Values))
		s := &statusWriter{ResponseWriter: w}
		inner := r.WithContext(ctx)
		err := errPanic
		defer func() {
			showMatch(r, inner)
			request.End(err)
		}()
		next.ServeHTTP(s.like(w), inner)
		err = nil
		if s.status >= http.StatusInternalServerError {
			err = fmt.Errorf("observe: status %d", s.status)
		}
	})
}

// showMatch lets who stands outside see what a mux inside matched, as it would without the Handler.
func showMatch(outer, inner *http.Request) {
	outer.Pattern = inner.Pattern
	for _, part := range strings.Split(inner.Pattern, "{")[1:] {
		name, _, _ := strings.Cut(part, "}")
		if name = strings.TrimSuffix(name, "..."); name != "" && name != "$" {
			outer.SetPathValue(name, inner.PathValue(name))
		}
	}
}

// requestName names the kind of a request, of which there must be few.
func requestName(next http.Handler, r *http.Request) string {
	method := r.Method
	switch method {
	case "":
		method = http.MethodGet
	case http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete,
		http.MethodConnect,
		http.MethodOptions, http.MethodTrace:
	default: // anybody can make names up
		method = "OTHER"
	}
	pattern := r.Pattern
	if mux, ok := next.(interface {
		Handler(*http.Request) (http.Handler, string)
	}); ok {
		_, pattern = mux.Handler(r)
	}
	if _, rest, ok := strings.Cut(pattern, " "); ok {
		pattern = strings.TrimLeft(rest, " \t")
	}
	if pattern == "" {
		return method
	}
	return method + " " + pattern
}
