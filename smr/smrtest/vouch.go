package smrtest

import (
	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/smr"
	"github.com/foresay/foresay/smr/kit"
)

// Unheard has the time pass for which a replica that was started again waits for members to say
// whether they know that its disk was further: nobody does, and it takes part.
func Unheard(n protocol.Node[smr.Message], env *protocol.Env[smr.Message]) {
	for range 5 {
		n.Expire(env, kit.AdmissionTimer{})
	}
}
