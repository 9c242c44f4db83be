// Package talk plays scenarios of replicated protocols that are written as text, and writes down
// what replicas and clients say to each other. Package transcript says how they are written.
//
// Replicas are 1, 2, ... and clients c1, c2, ..., each beside a replica. Commands of clients are
// x=1, which sets x, and x, which reads it. The family's own commands are
//
//	begin replicas=5 clients=2 apart leader=1 rtt=20ms told=100ms disk=1ms settle=2s
//	                      makes the group: three replicas and a client, 20 ms apart but told that it
//	                      may be 100, so that they are patient, on disks that take no time, with
//	                      nobody who is to lead first, after 2 s; or as is said. With apart, clients
//	                      are at sites of their own
//	call c1 x=1           has a client make a call; with a further word durable, it waits only until the
//	                      position is fixed
//	call c1 remove 3      has the members changed
//	state                 tells how the replicas are that are up, and what they hold
//
// Not shown are what disks tell each other (Hello, Welcome), and what measures the network (Ping,
// Pong). What can be expected is
//
//	answered              all calls are
//	answered-by c1        the last call of this client is
//	leader 2              all replicas that are up follow 2, and it leads
//	x=1                   all replicas that are up hold that
//	equal                 all of them have applied the same
package talk
