package specgrpc

import (
	"context"
	"testing"

	"google.golang.org/grpc"
)

func _UserStore_GetUser2X_Handler(any, context.Context, func(any) error, grpc.UnaryServerInterceptor) (any, error) { //nolint:revive // named as protoc-gen-go-grpc does
	return nil, nil
}

// TestGeneratedHandlers: a generated Handler is known by its name, however the service and the
// method are written.
func TestGeneratedHandlers(t *testing.T) {
	for _, tt := range []struct {
		service, method string
		want            bool
	}{
		{"pkg.UserStore", "GetUser2X", true}, {"user_store", "get_user2x", true}, {"pkg.user_store", "getUser2x", true},
		{"pkg.UserStore", "GetUser", false}, {"pkg.Store", "GetUser2X", false}, {"pkg.User_Store", "GetUser2X", false},
	} {
		md := grpc.MethodDesc{MethodName: tt.method, Handler: _UserStore_GetUser2X_Handler}
		if got := generated(tt.service, &md); got != tt.want {
			t.Errorf("%s/%s: %v", tt.service, tt.method, got)
		}
	}
	for name, want := range map[string]string{"_a": "XA", "a_1": "A_1", "a1b": "A1B", "A_B": "A_B", "a_": "A_",
		"a__b": "A_B"} {
		if got := inGo(name); got != want {
			t.Errorf("%s is %s, want %s", name, got, want)
		}
	}
}
