package dash_test

import (
	"crypto/subtle"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"

	"github.com/foresay/foresay"
	"github.com/foresay/foresay/dash"
)

func Example() {
	control, err := foresay.NewControl(foresay.ControlConfig{})
	if err != nil {
		fmt.Println(err)
		return
	}
	debug := http.NewServeMux()
	debug.Handle(dash.Path, dash.Handler(dash.Config{
		Control: control,
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
