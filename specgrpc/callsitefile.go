package specgrpc

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/foresay/foresay/control"
	"github.com/foresay/foresay/internal/fieldpath"
	"github.com/foresay/foresay/internal/nearest"
	"github.com/foresay/foresay/predict"
)

// ParseCallSites reads the configuration of call sites from JSON:
//
//	{"sites": [{
//	  "method": "/pkg.Service/Method",
//	  "mode": "canary",                    // or "off", "observe", "shadow", "on"
//	  "share": 0.1,                        // of the requests, for "canary" and "shadow"
//	  "effect": "none",                    // or "staged", "immediate", "unknown"
//	  "predictors": ["mine",               // a name in the map given here, or what predict.Config says
//	                 {"kind": "last", "key_fields": ["id"], "bytes": "64MB"}],
//	  "equal_ignoring": ["served_by"],     // response fields that may differ from the predicted ones
//	  "conflict_fields": ["account.id"],   // request fields that make the conflict key
//	  "key_fields": ["id"],                // request fields that make the call's identity
//	  "ignore_metadata": ["x-attempt"],    // outgoing metadata that do not belong to it
//	  "ordered": true,
//	  "server_predictions": true,
//	  "send_plainly": true,                // to servers that take no calls on guesses
//	  "limits": {"pending": 100, "depth": 2, "width": 1, "min_saving": "2ms"}
//	}]}
//
// All but the method may be left out; see control.CallSiteConfig for what they
// mean, and control.CallSiteLimits for the limits, of which any may be left out. A
// field path names fields of messages, as in the .proto; the method's generated
// package must be linked in if there is one. Errors name the line, or the method
// and the field.
func ParseCallSites(data []byte, predictors map[string]control.Predictor) ([]control.CallSiteConfig, error) {
	overlays, err := parseOverlays(data, predictors)
	if err != nil {
		return nil, fmt.Errorf("specgrpc: sites: %w", err)
	}
	out := make([]control.CallSiteConfig, len(overlays))
	for i, o := range overlays {
		out[i].Name = o.method
		o.apply(&out[i])
	}
	return out, nil
}

// callSiteOverlay is what a file says of one method.
type callSiteOverlay struct {
	method string
	set    []func(*control.CallSiteConfig)
	fields map[string]json.RawMessage
}

// live are the fields that take effect when a file is read again.
func live(field string) bool { return field == "mode" || field == "share" }

// mode returns what the file says of the mode.
func (o *callSiteOverlay) mode() (control.Mode, float64) {
	var cfg control.CallSiteConfig
	o.apply(&cfg)
	return cfg.Mode, cfg.Share
}

func (o *callSiteOverlay) apply(cfg *control.CallSiteConfig) {
	for _, f := range o.set {
		f(cfg)
	}
}

func parseOverlays(data []byte, predictors map[string]control.Predictor) ([]callSiteOverlay, error) {
	if err := checkJSON(data); err != nil {
		return nil, err
	}
	var file struct {
		CallSites []map[string]json.RawMessage `json:"sites"`
	}
	if err := strictly(data, &file); err != nil {
		return nil, fmt.Errorf("line %d: %w", lineOf(data, -1, unknownIn(err)), err)
	}
	var out []callSiteOverlay
	seen := make(map[string]bool)
	for i, fields := range file.CallSites {
		o, err := parseOverlay(fields, predictors)
		if err != nil {
			var about *fieldError
			field := ""
			if errors.As(err, &about) {
				field = about.field
			}
			line := lineOf(data, i, field)
			if o.method == "" {
				return nil, fmt.Errorf("line %d: site %d: %w", line, i+1, err)
			}
			return nil, fmt.Errorf("line %d: method %s: %w", line, o.method, err)
		}
		if seen[o.method] {
			return nil, fmt.Errorf("line %d: method %s: configured twice", lineOf(data, i, "method"), o.method)
		}
		seen[o.method] = true
		out = append(out, o)
	}
	return out, nil
}

func strictly(data []byte, v any) error {
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	return nearest.Field(d.Decode(v), v)
}

// fieldError is what is wrong with a field of a call site.
type fieldError struct {
	field string
	err   error
}

func (e *fieldError) Error() string { return fmt.Sprintf("field %q: %v", e.field, e.err) }

func (e *fieldError) Unwrap() error { return e.err }

func fieldErrorf(field, format string, args ...any) error {
	return &fieldError{field, fmt.Errorf(format, args...)}
}

func parseOverlay(fields map[string]json.RawMessage, predictors map[string]control.Predictor) (callSiteOverlay, error) {
	var o callSiteOverlay
	if fields["method"] == nil {
		return o, fieldErrorf("method", "it is missing: want a full name such as /pkg.Service/Method; the fields here are %q",
			slices.Sorted(maps.Keys(fields)))
	}
	if err := strictly(fields["method"], &o.method); err != nil {
		return o, fieldErrorf("method", "%w", err)
	}
	if err := checkMethodName(o.method); err != nil {
		return callSiteOverlay{}, fieldErrorf("method", "%w", err)
	}
	if strings.ContainsFunc(o.method, func(r rune) bool { return r <= ' ' || r >= 0x7f }) {
		return callSiteOverlay{}, fieldErrorf("method", "%q has a character that no method's name has", o.method)
	}
	if err := checkKnown(o.method); err != nil {
		return callSiteOverlay{}, fieldErrorf("method", "%w", err)
	}
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		if name == "method" {
			continue
		}
		set, err := parseField(o.method, name, fields[name], predictors)
		if err != nil {
			return o, fieldErrorf(name, "%w", err)
		}
		o.set = append(o.set, set)
	}
	if mode, share := o.mode(); share > 0 && mode != control.ModeCanary && mode != control.ModeShadow {
		return o, fieldErrorf("share", "it is for the modes canary and shadow")
	} else if share == 0 && (mode == control.ModeCanary || mode == control.ModeShadow) {
		return o, fieldErrorf("share", "mode %v needs the share of the requests that it is for, above 0 and up to 1", mode)
	}
	o.fields = fields
	return o, nil
}

// callSiteFields are the fields of a call site.
func callSiteFields() []string {
	return []string{
		"method", "mode", "share", "effect", "predictors", "equal_ignoring", "conflict_fields", "key_fields",
		"ignore_metadata", "ordered",
		"server_predictions", "limits",
	}
}

func parseField(
	method, name string, value json.RawMessage, predictors map[string]control.Predictor,
) (func(*control.CallSiteConfig), error) {
	switch name {
	case "mode":
		return parseName(value, []control.Mode{control.ModeOff, control.ModeObserve, control.ModeShadow, control.ModeCanary,
			control.ModeOn},
			func(c *control.CallSiteConfig, m control.Mode) { c.Mode = m })
	case "effect":
		return parseName(value, []control.Effect{control.EffectUnknown, control.EffectNone, control.EffectStaged,
			control.EffectImmediate},
			func(c *control.CallSiteConfig, e control.Effect) { c.Effect = e })
	case "share":
		return parseShare(value)
	case "ordered":
		return parseValue(value, func(c *control.CallSiteConfig, on bool) { c.Ordered = on })
	case "server_predictions":
		return parseValue(value, func(c *control.CallSiteConfig, on bool) { c.ServerPredictions = on })
	case "send_plainly":
		return parseValue(value, func(c *control.CallSiteConfig, on bool) { c.SendPlainly = on })
	case "limits":
		return parseLimits(value)
	case "ignore_metadata":
		return parseMetadata(value)
	case "metadata":
		return nil, fmt.Errorf(`all outgoing metadata belong to a call now; name those that do not in "ignore_metadata"`)
	case "predictors":
		return parsePredictors(method, value, predictors)
	case "equal_ignoring", "conflict_fields", "key_fields":
		return parsePaths(method, name, value)
	default:
		return nil, fmt.Errorf("unknown%s", nearest.Hint(name, callSiteFields()))
	}
}

func parseValue[T any](
	value json.RawMessage, set func(*control.CallSiteConfig, T),
) (func(*control.CallSiteConfig), error) {
	var v T
	if err := strictly(value, &v); err != nil {
		return nil, err
	}
	return func(c *control.CallSiteConfig) { set(c, v) }, nil
}

func parseShare(value json.RawMessage) (func(*control.CallSiteConfig), error) {
	var share float64
	if err := strictly(value, &share); err != nil {
		return nil, err
	}
	if !(share >= 0 && share <= 1) {
		return nil, fmt.Errorf("%v is no share of the requests, from 0 to 1", share)
	}
	return func(c *control.CallSiteConfig) { c.Share = share }, nil
}

func parseName[T fmt.Stringer](
	value json.RawMessage, known []T, set func(*control.CallSiteConfig, T),
) (func(*control.CallSiteConfig), error) {
	var name string
	if err := strictly(value, &name); err != nil {
		return nil, err
	}
	names := make([]string, len(known))
	for i, k := range known {
		if names[i] = k.String(); names[i] == name {
			return func(c *control.CallSiteConfig) { set(c, k) }, nil
		}
	}
	return nil, fmt.Errorf("%q is not one of %s%s", name, strings.Join(names, ", "), nearest.Hint(name, names))
}

// parseLimits leaves alone what the file leaves out.
func parseLimits(value json.RawMessage) (func(*control.CallSiteConfig), error) {
	var file struct {
		Pending   *int    `json:"pending"`
		Depth     *int    `json:"depth"`
		Width     *int    `json:"width"`
		MinSaving *string `json:"min_saving"`
	}
	if err := strictly(value, &file); err != nil {
		return nil, err
	}
	for name, n := range map[string]*int{"pending": file.Pending, "depth": file.Depth, "width": file.Width} {
		if n != nil && *n < 0 {
			return nil, fmt.Errorf("%q is %d; want 0 for no limit, or more", name, *n)
		}
	}
	var least *time.Duration
	if file.MinSaving != nil {
		d, err := time.ParseDuration(*file.MinSaving)
		if err != nil {
			return nil, fmt.Errorf("%q: %q is no duration such as 2ms", "min_saving", *file.MinSaving)
		}
		least = &d
	}
	return func(c *control.CallSiteConfig) {
		l := &c.Limits
		put(&l.Pending, file.Pending)
		put(&l.Depth, file.Depth)
		put(&l.Width, file.Width)
		put(&l.MinSaving, least)
	}, nil
}

// put sets a value that was given.
func put[T any](to, from *T) {
	if from != nil {
		*to = *from
	}
}

// parsePredictors takes names of predictors that the program gave, and
// descriptions of those that package predict makes.
func parsePredictors(
	method string, value json.RawMessage, known map[string]control.Predictor,
) (func(*control.CallSiteConfig), error) {
	var items []json.RawMessage
	if err := strictly(value, &items); err != nil {
		return nil, err
	}
	chosen := make([]control.Predictor, len(items))
	for i, item := range items {
		p, err := parsePredictor(method, item, known)
		if err != nil {
			return nil, err
		}
		chosen[i] = p
	}
	return func(c *control.CallSiteConfig) { c.Predictors = chosen }, nil
}

func parsePredictor(
	method string, item json.RawMessage, known map[string]control.Predictor,
) (control.Predictor, error) {
	if !bytes.HasPrefix(bytes.TrimSpace(item), []byte("{")) {
		var name string
		if err := strictly(item, &name); err != nil {
			return nil, err
		}
		p, ok := known[name]
		switch {
		case ok:
			return p, nil
		case len(known) == 0:
			return nil, fmt.Errorf(`no predictor is called %q: the program gave none; describe one, such as {"kind": "last"}`,
				name)
		}
		return nil, fmt.Errorf(`no predictor is called %q; there are: %s; or describe one, such as {"kind": "last"}`, name,
			strings.Join(slices.Sorted(maps.Keys(known)), ", "))
	}
	cfg, err := predict.ParseConfig(item)
	if err != nil {
		return nil, err
	}
	var messages predict.Messages
	if d := methodDescriptor(method); d != nil {
		messages = predict.MessagesOf(d)
	}
	return predict.New(cfg, messages)
}

func parseMetadata(value json.RawMessage) (func(*control.CallSiteConfig), error) {
	names := []string{} // not nil: an empty list is not what is ignored by default
	if err := strictly(value, &names); err != nil {
		return nil, err
	}
	for _, name := range names {
		if name == "" || strings.Trim(strings.ToLower(name), "abcdefghijklmnopqrstuvwxyz0123456789-_.") != "" {
			return nil, fmt.Errorf("%q is no metadata name (letters, digits, -, _ and . are allowed)", name)
		}
	}
	return func(c *control.CallSiteConfig) { c.IgnoreMetadata = names }, nil
}

func parsePaths(method, name string, value json.RawMessage) (func(*control.CallSiteConfig), error) {
	var names []string
	if err := strictly(value, &names); err != nil {
		return nil, err
	}
	d := methodDescriptor(method)
	if d == nil {
		return nil, fmt.Errorf("the method is unknown here; link its generated package in")
	}
	message := d.Input()
	if name == "equal_ignoring" {
		message = d.Output()
	}
	paths, err := fieldpath.Parse(message, names)
	if err != nil {
		return nil, err
	}
	return func(c *control.CallSiteConfig) {
		switch name {
		case "equal_ignoring":
			c.Equal = paths.EqualWithout
		case "conflict_fields":
			c.ConflictKey = func(request any) string { return string(paths.Only(request)) }
		case "key_fields":
			c.Key = paths.Only
		}
	}, nil
}
