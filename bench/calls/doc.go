// Package calls holds the experiments on speculative calls. They play the same requests through
// several systems: plain grpc-go ("grpc"), Foresay installed but switched off ("foresay-off"),
// Foresay with straight-line code ("foresay-do") and with futures ("foresay-then"). A request is a
// chain of dependent calls; whether the prediction of each call is right is fixed beforehand,
// exactly and reproducibly from the seed. Each answer is compared with the one that plain execution
// gives: an experiment whose answers are wrong fails.
package calls
