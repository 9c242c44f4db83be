// Package replica reads from an authority and takes a near replica's answer for
// its prediction: what the near replica says is there at once, what the authority
// says is what counts.
//
// A [Reader] is made of two functions, Near and Far, such as the Get of a
// follower and of the leader, a stale and a strong read of one database, or a
// cache and its origin. In a foresay.Do, Go or Then both are asked at the same
// time, and the code goes on with the near answer. When the far answer is in, the
// two are compared, by Config.Equal, for which [SameVersion] is the usual choice:
// if they are equal the work that was done meanwhile stands, and if not it is done
// again with the far answer. Nothing that a stale answer led to is ever seen.
// Under a plain context Read only calls Far.
//
// An accepted near answer is the read's result. So what Equal does not compare is
// the near replica's, and may be older.
//
// # What it costs
//
// One near read for each far read, in tasks, while the call site's mode takes
// predictions. In other modes no near read is made. [Correctables, OSDI'16] had
// strong reads 40 % faster in this way, for 10 % more traffic.
package replica
