// Package usercode runs code of the user's that must not take the engine down with it: predictors,
// equivalences, hooks, observers.
package usercode

import "log/slog"

// Contain runs f. A panic of f is logged, by slog.Default if logger is nil, and ends f only.
func Contain(where string, logger *slog.Logger, what string, f func()) {
	defer func() {
		if p := recover(); p != nil {
			if logger == nil {
				logger = slog.Default()
			}
			logger.Error("foresay: panic contained", "in", what, "of", where, "panic", p)
		}
	}()
	f()
}
