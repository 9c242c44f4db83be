package driver

import (
	"reflect"
	"testing"

	"github.com/foresay/foresay/internal/engine"
)

// TestInterfacesAreTheEngines: what this package says of transports is what the engine asks them
// for.
func TestInterfacesAreTheEngines(t *testing.T) {
	if reflect.TypeFor[Transport]() != reflect.TypeFor[engine.Transport]() {
		t.Error("Transport is not the engine's, so that Comparer cannot be either")
	}
	for _, pair := range [][2]reflect.Type{
		{reflect.TypeFor[BlockingTransport](), reflect.TypeFor[engine.BlockingTransport]()},
		{reflect.TypeFor[Adopter](), reflect.TypeFor[engine.Adopter]()},
		{reflect.TypeFor[Asker](), reflect.TypeFor[engine.Asker]()},
		{reflect.TypeFor[Comparer](), reflect.TypeFor[engine.Comparer]()},
		{reflect.TypeFor[Digester](), reflect.TypeFor[engine.Digester]()},
		{reflect.TypeFor[PublicDigester](), reflect.TypeFor[engine.PublicDigester]()},
		{reflect.TypeFor[Ender](), reflect.TypeFor[engine.Ender]()},
		{reflect.TypeFor[Keeper](), reflect.TypeFor[engine.Keeper]()},
		{reflect.TypeFor[Releaser](), reflect.TypeFor[engine.Releaser]()},
	} {
		here, engines := pair[0], pair[1]
		if here.Name() != engines.Name() || !here.Implements(engines) || !engines.Implements(here) {
			t.Errorf("%v and %v have different methods", here, engines)
		}
	}
}
