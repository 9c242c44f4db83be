package storecmd

import (
	"context"
	"errors"
	"time"

	"github.com/foresay/foresay/store/client"
)

// A liveTxn is a transaction whose commands come one by one, from somebody who sees each answer
// before the next. What was shown cannot be taken back, so nothing is guessed, and it is tried
// once.
type liveTxn struct {
	steps   chan liveStep
	done    chan error // what became of it; has room for one
	stop    context.CancelFunc
	timeout time.Duration // of each step
}

type liveStep struct {
	op     op
	answer chan<- liveAnswer // has room for one
}

type liveAnswer struct {
	read *read
	err  error
}

// beginLive begins a transaction. It must be committed or aborted, or its steps fail.
func beginLive(ctx context.Context, c *client.Client, timeout time.Duration, opts ...client.Option) *liveTxn {
	ctx, stop := context.WithCancel(ctx)
	l := &liveTxn{steps: make(chan liveStep), done: make(chan error, 1), stop: stop, timeout: timeout}
	go func() {
		l.done <- c.Txn(ctx, l.run, opts...)
		stop()
	}()
	return l
}

// run is the transaction's function.
func (l *liveTxn) run(ctx context.Context, tx *client.Tx) error {
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case step, ok := <-l.steps:
			if !ok {
				time.AfterFunc(l.timeout, l.stop) // the commit does not wait longer
				return nil
			}
			stepCtx, cancel := context.WithTimeout(ctx, l.timeout)
			got, err := step.op.run(stepCtx, tx)
			cancel()
			step.answer <- liveAnswer{got, err}
			if err != nil {
				return err
			}
		}
	}
}

// do carries out a command. An error ends the transaction, without any effect.
func (l *liveTxn) do(o op) (*read, error) {
	answer := make(chan liveAnswer, 1)
	select {
	case l.steps <- liveStep{o, answer}:
	case err := <-l.done:
		return nil, errors.Join(err, errLiveEnded)
	}
	a := <-answer
	if a.err != nil {
		<-l.done
	}
	return a.read, a.err
}

var errLiveEnded = errors.New("the transaction has ended")

// commit ends the transaction and returns what became of it.
func (l *liveTxn) commit() error {
	close(l.steps)
	return <-l.done
}

// abort ends the transaction without any effect.
func (l *liveTxn) abort() {
	l.stop()
	<-l.done
}
