// Package critpath models a request's waits: when each of its calls began and ended, what each
// therefore waited for, and how early all would have ended had some answers been predicted. It is
// pure arithmetic on durations; where they come from, live traffic or traces, is the caller's.
//
// # What a call waited for
//
// Times alone do not say which answer a call was made from. The rule is careful: a call stands on
// every call of the request that had ended when it began. Its trigger is the one of them that ended
// last, and the gap between the trigger's end and the call's beginning is the program's own
// computing, which no prediction removes. A call that began before another ended did not wait for
// it. The request's own end is treated as a call's beginning is: it stands on all calls that had
// ended by then, and on none that outlived it.
//
// The rule is right for a program that runs its calls in one sequence of steps, each parallel
// within itself. For strands that run beside one another it sees more waits than there are, which
// foresees too little; but it also takes for computing after a call of one strand what another
// strand spends otherwise, which may foresee too much.
//
// # What a prediction changes
//
// A right prediction of a call is there when the call is made: what stood on its answer begins,
// after its gap, when all else that it stood on allows. A call that is not pure is never sent while
// something that it stands on is only predicted: its gap is computed, then it waits until all of
// that has ended. A pure call waits so for the calls with effects that it stands on, and for the
// ordered ones if it is ordered itself. The request ends no earlier than each call's actual answer.
// After a wrong prediction, what stood on it is done again from the actual answer on; what had been
// sent until then was sent in vain. With Request.Redo the program's own computing up to there is
// done again first. Without that, and without barriers, nothing is later than it was without
// predictions.
//
// A barrier waits for the actual answers to all predicted calls that began before, and what is Firm
// is not predicted. A Staged call that is sent on a guess is confirmed, and what follows it begins,
// once all that it stands on is there and the word has gone there and back. An Again call that is
// sent on a guess is sent a second time; so is one that would be if a word took less time.
package critpath
