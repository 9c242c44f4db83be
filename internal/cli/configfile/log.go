package configfile

import (
	"cmp"
	"io"
	"log/slog"
	"slices"

	"github.com/foresay/foresay/internal/nearest"
)

// Log says how a process's log looks.
type Log struct {
	Level  string `json:"level,omitempty"`
	Format string `json:"format,omitempty"`
}

// Check returns an error that names the field that is wrong, or nil.
func (l *Log) Check() error {
	var level slog.Level
	if l.Level != "" && level.UnmarshalText([]byte(l.Level)) != nil {
		return Fieldf("log.level", "%q is not one of debug, info, warn, error%s", l.Level,
			nearest.Hint(l.Level, []string{"debug", "info", "warn", "error"}))
	}
	if !slices.Contains([]string{"", "text", "json"}, l.Format) {
		return Fieldf("log.format", "%q is not one of text, json%s", l.Format,
			nearest.Hint(l.Format, []string{"text", "json"}))
	}
	return nil
}

// New returns a log that writes to w as the configuration says.
func (l Log) New(w io.Writer) *slog.Logger {
	var level slog.Level
	_ = level.UnmarshalText([]byte(cmp.Or(l.Level, "info"))) // Check has seen it
	o := &slog.HandlerOptions{Level: level}
	if l.Format == "json" {
		return slog.New(slog.NewJSONHandler(w, o))
	}
	return slog.New(slog.NewTextHandler(w, o))
}
