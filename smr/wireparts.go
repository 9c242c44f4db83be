package smr

import "github.com/foresay/foresay/internal/wirefmt"

// AppendRequest adds the bytes of a Request to w, for protocols whose messages hold one.
func AppendRequest(w *wirefmt.Writer, m Request) { appendRequest(w, m) }

// TakeRequest takes a Request from r.
func TakeRequest(r *wirefmt.Reader) Request { return readRequest(r) }
