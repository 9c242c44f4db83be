// Package bench says what an experiment is: a question that is put to several systems, the modes
// and sizes in which it runs, its rows and its figures. What is asked stands by subject:
//
//   - package calls: speculative calls beside plain gRPC;
//   - package replicated: state machine replication, in simulated wide-area networks and as real
//     processes, beside etcd;
//   - package geostore: the geo-replicated store, in all modes of its clients.
//
// Package experiments has the list of all; packages table and figure show what they found.
//
// In virtual mode whatever waits does so in testing/synctest bubbles, or in simulations: computing
// takes no time there, so that latencies are exact and the same on every machine. In real mode an
// experiment runs on the wall clock over loopback TCP, which is what throughput and processor time
// come from. The systems take turns in short shuffled rounds, so that whatever disturbs the machine
// disturbs all of them, and ratios are medians over the rounds, while means and quantiles are of
// all requests. On a busy machine, experiments in which calls mostly wait measure well with
// real-time priority (chrt -f 5 on Linux); overhead wants an idle one.
package bench
