package dash_test

import (
	"crypto/subtle"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"

	"github.com/foresay/foresay/control"
	"github.com/foresay/foresay/dash"
)

func Example() {
	ctl, err := control.New(control.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	debug := http.NewServeMux()
	debug.Handle(dash.Path, dash.Handler(dash.Config{
		Control: ctl,
		Name:    "checkout",
		Authorize: func(r *http.Request) error {
			if subtle.ConstantTimeCompare([]byte(r.Header.Get("Authorization")), []byte("Bearer sesame")) != 1 {
				return errors.New("the token is missing or wrong")
			}
			return nil
		},
	}))
	w := httptest.NewRecorder()
	debug.ServeHTTP(w, httptest.NewRequest(http.MethodGet, dash.Path+"rights", nil))
	fmt.Print(w.Body)
	// Output:
	// {"name":"checkout","switch":false,"reason":"the token is missing or wrong","report":false}
}
