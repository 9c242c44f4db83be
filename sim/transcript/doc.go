// Package transcript plays scenarios that are written as text, and writes down what nodes say to
// each other, so that a reader sees a protocol talk. A scenario is a file of steps, each with what
// it makes nodes say:
//
//	# A client's command goes to the leader, which has it accepted by a majority.
//	call c1 x=1
//	run until answered
//	----
//	   0ms  c1 -> 1    Request session=1 commands=[x=1]
//	  10ms  1 -> 2,3   Accept ballot=1.1 first=3 entries=[x=1]
//	  20ms  2,3 -> 1   Accepted ballot=1.1 match=3
//	  20ms  c1         x=1 is committed in slot 3
//
// A line is a message when it arrives: the time since the group began, who says it to whom, its
// kind and the fields that are not zero. Messages that say the same at the same time are one line.
// The steps are those of github.com/cockroachdb/datadriven: commands, a line of dashes, and what
// they put out; go test -rewrite writes that anew. Commands, one a line:
//
//	begin ...               makes the nodes; the family says of what, and it is a file's first command
//	run 30ms                lets time pass
//	run until WORDS         lets time pass until WORDS can be expected
//	run until FROM->TO KIND lets time pass until there was such a message
//	expect WORDS            fails the test if WORDS do not hold, whatever is rewritten
//	crash 1                 ends nodes; restart 1 brings them back with their disks
//	hold FROM->TO KIND      keeps messages that come from now on
//	lose FROM->TO KIND      loses them
//	pass                    ends all of hold and lose; what is held stays so
//	deliver FROM->TO KIND   hands over what is held, in the order in which it came
//	drop FROM->TO KIND      loses what is held
//	hide KIND ...           does not show messages of kinds
//	omit FIELD ...          does not show fields of messages
//
// Of FROM->TO and KIND either may be left out, and * is any node. Accept-with-entries is messages
// of the kind Accept that have the field entries, Accept-without-entries those that have not.
//
// All others are the family's: see its description.
package transcript
