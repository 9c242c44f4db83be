package transcript_test

import (
	"fmt"

	"github.com/foresay/foresay/smr/multipaxos"
	"github.com/foresay/foresay/smr/smrtest/talk"

	"github.com/foresay/foresay/sim/transcript"
)

// A command of a client, as Multi-Paxos has it.
func Example() {
	script := transcript.New(talk.New(multipaxos.Protocol(), nil))
	for _, command := range []string{"begin leader=1", "hide Accept-without-entries", "call c1 x=1", "run until answered",
		"state"} {
		told, err := script.Do(command)
		fmt.Print(told)
		if err != nil {
			fmt.Println(command, "does not hold:", err)
		}
	}
	// Output:
	// 0ms  c1 -> 1    Request session=1 acked=1 commands=[x=1]
	//       10ms  1 -> 2,3   Accept ballot=1.1 first=2 commit=1 entries=[x=1]
	//       20ms  2,3 -> 1   Accepted ballot=1.1 match=2
	//       20ms  1 -> c1    Replies session=1 items=[committed in slot 2]
	//       20ms  c1         x=1 is committed in slot 2
	//        1: leader, ballot 1.1, committed 2, applied 2, holds x=1
	//        2: follower of 1, ballot 1.1, committed 1, applied 1, holds nothing
	//        3: follower of 1, ballot 1.1, committed 1, applied 1, holds nothing
}
