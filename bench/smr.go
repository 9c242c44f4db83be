package bench

import (
	"github.com/foresay/foresay/smr"
)

// acks are what a call of a replicated service waits for, of what all protocols have.
func acks() []smr.Ack { return []smr.Ack{smr.AckDurable, smr.AckExecuted} }

func durableName(durable bool) string {
	if durable {
		return "yes"
	}
	return "no"
}

// replicationExperiments returns the experiments on state machine replication, in the order in which
// they are best read.
func ReplicationExperiments() []Experiment {
	return []Experiment{
		DominoCommit(), dominoPercentile(), dominoExecution(), dominoAdapt(),
		smrThroughput(), smrSnapshots(), smrLarge(), smrIdle(), smrFailover(),
	}
}
