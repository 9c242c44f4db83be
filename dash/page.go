package dash

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"net/http"
	"strings"
)

//go:embed assets
var assets embed.FS

// policy lets the page load from where it came, and nothing else.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// servePage serves the page and its parts.
func servePage(w http.ResponseWriter, r *http.Request, name string) {
	if name == "" {
		name = "index.html"
	}
	b, err := assets.ReadFile("assets/" + name)
	if err != nil {
		http.Error(w, fmt.Sprintf("dash: there is no %s here", r.URL.Path), http.StatusNotFound)
		return
	}
	if !allow(w, r, http.MethodGet) {
		return
	}
	sum := sha256.Sum256(b)
	h := w.Header()
	h.Set("Content-Security-Policy", policy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Cache-Control", "no-cache")
	h.Set("Content-Type", contentType(name))
	tag := `"` + hex.EncodeToString(sum[:12]) + `"`
	h.Set("ETag", tag)
	if strings.Contains(r.Header.Get("If-None-Match"), tag) {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	_, _ = w.Write(b) // a requester that left needs no answer
}

func contentType(name string) string {
	switch name[strings.LastIndexByte(name, '.')+1:] {
	case "html":
		return "text/html; charset=utf-8"
	case "css":
		return "text/css; charset=utf-8"
	case "js":
		return "text/javascript; charset=utf-8"
	case "svg":
		return "image/svg+xml"
	}
	return "application/octet-stream"
}
