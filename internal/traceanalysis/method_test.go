package traceanalysis

import (
	"strings"
	"testing"

	"github.com/foresay/foresay/internal/otlp"
)

func TestMethodOf(t *testing.T) {
	for _, row := range []struct {
		kind             otlp.Kind
		name, attributes string // key=value,...
		want             string
	}{
		{otlp.Client, "users.v1.Users/Get", "", "users.v1.Users/Get"},
		{otlp.Client, "/users.v1.Users/Get", "", "users.v1.Users/Get"},
		{otlp.Client, "users.v1.Users/Get.spec", "rpc.service=users.v1.Users,rpc.method=Get.spec", "users.v1.Users/Get"},
		{otlp.Client, "users.v1.Users/Get.spec", "", "users.v1.Users/Get"},
		{otlp.Client, "users.v1.Users/Get", "rpc.system=grpc,rpc.service=users.v1.Users,rpc.method=Get",
			"users.v1.Users/Get"},
		{otlp.Client, "whatever", "rpc.system.name=grpc,rpc.method=users.v1.Users/Get", "users.v1.Users/Get"},
		{otlp.Client, "users.v1.Users/Get", "rpc.method=Get", "users.v1.Users/Get"},
		{otlp.Client, "", "rpc.method=Get", "Get"},
		{otlp.Client, "GET", "http.request.method=GET,server.address=api.local,url.template=/user/{id}",
			"GET api.local/user/{id}"},
		{otlp.Client, "HTTP GET", "http.method=GET,net.peer.name=api.local", "GET api.local"},
		{otlp.Client, "GET", "http.request.method=GET", "GET"},
		{otlp.Server, "GET /user/:id", "http.request.method=GET,http.route=/user/{id},server.address=me", "GET /user/{id}"},
		{otlp.Client, "SELECT users", "db.system=postgresql", "postgresql: SELECT users"},
		{otlp.Client, "", "", "(a span without a name)"},
	} {
		s := &otlp.Span{Name: row.name, Kind: row.kind}
		for _, a := range strings.Split(row.attributes, ",") {
			if key, value, ok := strings.Cut(a, "="); ok {
				s.Attributes = append(s.Attributes, otlp.Attribute{Key: key, Value: value})
			}
		}
		if got := methodOf(s); got != row.want {
			t.Errorf("%s (%s) is %q, want %q", row.name, row.attributes, got, row.want)
		}
	}
}

func TestReadsByName(t *testing.T) {
	for method, want := range map[string]string{
		"users.v1.Users/Get": "get", "users.v1.Users/GetUser": "get", "users.v1.Users/BatchGetUsers": "get",
		"a.B/get_user": "get",
		"a.B/ListV2":   "list", "a.B/IsAllowed": "is", "a.B/Check": "check", "a.B/HasAccess": "has", "a.B/Lookup": "lookup",
		"GET api.local/user": "GET", "HEAD /x": "HEAD", "GET": "get", "postgresql: SELECT users": "select",
		"redis: MGET": "mget", "redis: HGETALL k": "hgetall",

		"a.B/Getaway": "", "a.B/Issue": "", "a.B/Checkout": "", "a.B/Place": "", "a.B/BatchDelete": "", "a.B/Readjust": "",
		"a.B/Listen":         "",
		"POST api.local/get": "", "DELETE /x": "", "postgresql: INSERT users": "", "redis: SET getter": "",
		"publish orders": "", "": "", "/": "", "a.B/42": "",
	} {
		if got := readsByName(method); got != want {
			t.Errorf("%q reads by %q, want %q", method, got, want)
		}
	}
}

func TestMatches(t *testing.T) {
	for _, row := range []struct {
		pattern, name string
		want          bool
	}{
		{"users", "shop.Users/Get", true},
		{"user*", "shop.Users/Get", false},
		{"*users*", "shop.Users/Get", true},
		{"shop.*/get", "shop.Users/Get", true},
		{"shop.*/get", "shop.Users/GetAll", false},
		{"*get*all", "shop.Users/GetAll", true},
		{"*all*get", "shop.Users/GetAll", false},
		{"*", "", true},
		{"a*a", "a", false},
		{"a*a", "aa", true},
	} {
		if got := matches(row.pattern, row.name); got != row.want {
			t.Errorf("%s fits %s: %v, want %v", row.pattern, row.name, got, row.want)
		}
	}
}
