// Package bench holds Foresay's experiments: what they run, how they measure,
// and how their results are told.
//
// An experiment plays the same requests through several systems: plain grpc-go
// ("grpc"), Foresay installed but switched off ("foresay-off"), Foresay with
// straight-line code ("foresay-do") and with futures ("foresay-then"). A request
// is a chain of dependent calls; whether the prediction of each call is right is
// fixed beforehand, exactly and reproducibly from the seed. Each answer is
// compared with the one that plain execution gives: an experiment whose answers
// are wrong fails.
//
// The experiments whose names begin with rc put the clients of the geo-replicated store
// (package store/client), in their modes, under the workloads of SpecRPC's evaluation:
// see package geostore. Their rows tell attempts that committed and whole transactions,
// all attempts and pauses included, apart.
//
// In virtual mode everything runs in testing/synctest bubbles, one for each
// measured point: computing takes no time there, so that latencies are exact and
// the same on every machine. In real mode it runs on the wall clock over loopback TCP,
// which is what throughput and CPU figures come from. The systems take turns in short
// shuffled rounds, so that whatever disturbs the machine disturbs all of them, and
// ratios are medians over the rounds, while means and quantiles are of all requests. On
// a busy machine, experiments in which calls mostly wait measure well with real-time
// priority (chrt -f 5 on Linux); overhead wants an idle one.
package bench
