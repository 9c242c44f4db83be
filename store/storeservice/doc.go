// Package storeservice connects programs to a store that "foresay store serve" runs, and runs its
// machines.
//
// A program reads the clients' file with [storeconfig.ReadClient], connects with [Dial], and makes
// transactions with what [Client.Transactions] returns. A [Machine] is one machine with its disk
// and its page of figures, for a program that runs the store itself. [OpenCluster] starts a whole
// store in this process, to try things with.
package storeservice
