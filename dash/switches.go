package dash

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strings"

	"github.com/foresay/foresay/control"
	"github.com/foresay/foresay/internal/nearest"
)

// maxBody bounds what is posted, in bytes.
const maxBody = 4 << 10

var errReadOnly = errors.New("this dashboard is read-only: its service configured no Authorize")

func (h *handler) authorize(r *http.Request) error {
	if h.cfg.Authorize == nil {
		return errReadOnly
	}
	return h.cfg.Authorize(r)
}

// post sets a mode or the kill switch.
func (h *handler) post(w http.ResponseWriter, r *http.Request, name string) {
	if !allow(w, r, http.MethodPost) {
		return
	}
	if err := h.guard.Check(r); err != nil {
		http.Error(w, "dash: "+name+": "+err.Error(), http.StatusForbidden)
		return
	}
	if err := h.authorize(r); err != nil {
		http.Error(w, "dash: "+name+": "+err.Error(), http.StatusForbidden)
		return
	}
	set := h.setMode
	if name == "kill" {
		set = h.kill
	}
	if code, err := set(w, r); err != nil {
		http.Error(w, "dash: "+name+": "+err.Error(), code)
		return
	}
	h.source.changed.Store(true) // whoever switches sees it at once
	w.WriteHeader(http.StatusNoContent)
}

func (h *handler) setMode(w http.ResponseWriter, r *http.Request) (code int, err error) {
	var to struct {
		CallSite string  `json:"site"`
		Mode     string  `json:"mode"`
		Share    float64 `json:"share"`
	}
	if code, err = decode(w, r, "mode", &to); err != nil {
		return code, err
	}
	mode := control.ModeDefault
	if to.Mode != mode.String() {
		if mode, err = control.ParseMode(to.Mode); err != nil {
			return http.StatusBadRequest, fmt.Errorf("%q is not one of %s%s", to.Mode, strings.Join(modes(), ", "),
				nearest.Hint(to.Mode, modes()))
		}
	}
	known := false
	for _, s := range h.cfg.Control.CallSites() {
		known = known || s.Config().Name == to.CallSite
	}
	if !known {
		return http.StatusNotFound, fmt.Errorf("there is no site %q", to.CallSite)
	}
	if err := h.cfg.Control.SetMode(to.CallSite, mode, to.Share); err != nil {
		return http.StatusBadRequest, err
	}
	return 0, nil
}

// modes are the names of modes that can be posted.
func modes() (names []string) {
	for m := control.ModeDefault; m <= control.ModeOn; m++ {
		names = append(names, m.String())
	}
	return names
}

func (h *handler) kill(w http.ResponseWriter, r *http.Request) (code int, err error) {
	var to struct {
		Killed *bool `json:"killed"`
	}
	if code, err = decode(w, r, "kill", &to); err != nil {
		return code, err
	}
	if to.Killed == nil {
		return http.StatusBadRequest, errors.New(`the body lacks "killed"`)
	}
	h.cfg.Control.Kill(*to.Killed)
	return 0, nil
}

// example returns what is posted to a name.
func example(name string) string {
	if name == "kill" {
		return `{"killed": true}`
	}
	return `{"site": "/pkg.Service/Method", "mode": "canary", "share": 0.1}`
}

// decode reads the one JSON value of a request. That it must be declared as such
// keeps forms of foreign pages out.
func decode(w http.ResponseWriter, r *http.Request, name string, to any) (code int, err error) {
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != "application/json" {
		return http.StatusUnsupportedMediaType, fmt.Errorf("the Content-Type is %q; want application/json",
			r.Header.Get("Content-Type"))
	}
	d := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxBody))
	d.DisallowUnknownFields()
	if err := d.Decode(to); err != nil {
		if large := (*http.MaxBytesError)(nil); errors.As(err, &large) {
			return http.StatusRequestEntityTooLarge, fmt.Errorf("the body is longer than %d bytes", maxBody)
		}
		return http.StatusBadRequest, fmt.Errorf("the body: %swant a JSON object such as %s", fault(nearest.Field(err, to)),
			example(name))
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return http.StatusBadRequest, errors.New("the body has more than one value")
	}
	return 0, nil
}

// fault says what is wrong with a body, in the words of JSON and not of Go.
func fault(err error) string {
	if kind := (*json.UnmarshalTypeError)(nil); errors.As(err, &kind) {
		if kind.Field == "" {
			return ""
		}
		return fmt.Sprintf("%q has a value of the wrong type, %s; ", kind.Field, kind.Value)
	}
	switch {
	case errors.Is(err, io.EOF):
		return "it is empty; "
	case errors.Is(err, io.ErrUnexpectedEOF):
		return "it ends too early; "
	}
	return strings.TrimPrefix(err.Error(), "json: ") + "; "
}
