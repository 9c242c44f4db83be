package setup_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/foresay/foresay/dash"
	"github.com/foresay/foresay/setup"
)

func Example() {
	debug := http.NewServeMux() // where the process's other debug endpoints are
	speculation, err := setup.New(debug, setup.Config{Name: "checkout"})
	if err != nil {
		fmt.Println(err)
		return
	}
	conn, err := speculation.NewClient("dns:///users.internal:443",
		grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer conn.Close()
	mux := http.NewServeMux() // what the service serves, with stubs on conn
	mux.HandleFunc("GET /page", func(http.ResponseWriter, *http.Request) {})
	speculation.Handler(mux).ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/page", nil))

	w := httptest.NewRecorder()
	debug.ServeHTTP(w, httptest.NewRequest(http.MethodGet, dash.Path+"rights", nil))
	fmt.Print(w.Body)
	fmt.Println(speculation.Collector().Report(speculation.Control()).Requests[0].Name)
	// Output:
	// {"name":"checkout","switch":false,"reason":"this dashboard is read-only: its service configured no Authorize","report":true}
	// GET /page
}
