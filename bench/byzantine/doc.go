// Package byzantine has the experiments on replicated services whose replicas may lie: the
// evaluation of the paper on client speculation (PBFT-CS) with a shared counter, the latencies in
// networks of nine and six sites, and what clients notice of replicas that are killed or betray the
// others. Their clients' programs use the engine as users' programs do.
package byzantine
