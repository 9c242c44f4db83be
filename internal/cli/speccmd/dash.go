package speccmd

import (
	"context"
	"log/slog"
	"net/http"
	"net/url"
	"strings"

	"github.com/spf13/cobra"

	"github.com/foresay/foresay/dash"
	"github.com/foresay/foresay/internal/cli/command"
)

type dashFlags struct {
	command.PageFlags
	headers  []string
	token    string
	readOnly bool
}

func (p *program) dashCommand() *cobra.Command {
	var f dashFlags
	c := &cobra.Command{
		Use:   "dash ADDR...",
		Short: "Show what services' speculation does, live",
		Long: "Serve a live page about one service or several, whose debug endpoints are at the addresses: host:port,\n" +
			"or a URL, to which " + dash.Path + " is added if it has no path; NAME=ADDR says what the page calls it.\n" +
			"The page's only server is this command, which asks the services. Services that are down are shown as\n" +
			"down and asked again. Modes and the kill switch can be switched if the service lets whom the token or\n" +
			"header stands for. Only programs of this machine reach the page, unless --listen says otherwise.",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return command.Usagef("dash: want one service or more, got 0")
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error { return p.dash(c.Context(), args, f) },
	}
	flags := c.Flags()
	f.PageFlags.Add(flags)
	flags.StringVar(&f.token, "token", "", "send \"Authorization: Bearer `TOKEN`\" to the services")
	flags.StringArrayVar(&f.headers, "header", nil, "send this `NAME: VALUE` to the services")
	flags.BoolVar(&f.readOnly, "read-only", false, "switch nothing, even if the services would let")
	return c
}

func (p *program) dash(ctx context.Context, args []string, f dashFlags) error {
	cfg := dash.RelayConfig{Logger: slog.New(slog.NewTextHandler(p.Err, &slog.HandlerOptions{Level: slog.LevelWarn}))}
	if !f.readOnly {
		cfg.Authorize = func(*http.Request) error { return nil } // the services decide
	}
	header, err := f.header()
	if err != nil {
		return err
	}
	for _, arg := range args {
		s, err := serviceAt(arg)
		if err != nil {
			return err
		}
		s.Header = header
		cfg.Services = append(cfg.Services, s)
	}
	relay, err := dash.NewRelay(cfg)
	if err != nil {
		return command.Usagef("%w", err)
	}
	if err := distinct(args, cfg.Services); err != nil {
		return err
	}
	f.Risk = "whoever opens it sees what the services show to this command, whose token and headers are sent"
	if !f.readOnly {
		f.Risk = "whoever opens it can switch the services with the token and headers of this command; --read-only forbids it"
	}
	return p.ServePage(ctx, f.PageFlags, relay, relay.Run)
}

// serviceAt understands host:port, a URL, and NAME=either.
func serviceAt(arg string) (dash.Service, error) {
	var s dash.Service
	addr := arg
	if name, rest, ok := strings.Cut(arg, "="); ok && !strings.ContainsAny(name, "/:?") {
		s.Name, addr = name, rest
	}
	if !strings.Contains(addr, "://") {
		addr = "http://" + addr
	}
	u, err := url.Parse(addr)
	if err != nil || u.Host == "" || strings.HasPrefix(u.Host, ":") || u.Scheme != "http" && u.Scheme != "https" {
		return s, command.Usagef("dash: %q is no address: want host:port, or a URL such as http://host:port%s", arg,
			dash.Path)
	}
	if u.Path == "" || u.Path == "/" {
		u.Path = dash.Path
	}
	if !strings.HasSuffix(u.Path, "/") {
		u.Path += "/"
	}
	u.Host = strings.ToLower(u.Host)
	s.URL = u.String()
	return s, nil
}

// distinct refuses services that the page could not tell apart.
func distinct(args []string, services []dash.Service) error {
	for i, s := range services {
		for j, before := range services[:i] {
			switch {
			case s.URL == before.URL:
				return command.Usagef("dash: %s and %s are the same service, %s", args[j], args[i], s.URL)
			case s.Name != "" && s.Name == before.Name:
				return command.Usagef("dash: %s and %s have the same name", args[j], args[i])
			}
		}
	}
	return nil
}

func (f *dashFlags) header() (http.Header, error) {
	out := make(http.Header)
	for _, line := range f.headers {
		name, value, ok := strings.Cut(line, ":")
		name = strings.TrimSpace(name)
		if !ok || name == "" || strings.ContainsAny(name, " \t\r\n\"(),/;<=>?@[\\]{}") ||
			strings.ContainsAny(value, "\r\n\x00") {
			return nil, command.Usagef("dash: --header %q is not NAME: VALUE", line)
		}
		out.Add(name, strings.TrimSpace(value))
	}
	if f.token != "" {
		if strings.ContainsAny(f.token, "\r\n\x00") {
			return nil, command.Usagef("dash: --token has a line break")
		}
		if out.Get("Authorization") != "" {
			return nil, command.Usagef("dash: --token and --header both set Authorization")
		}
		out.Set("Authorization", "Bearer "+f.token)
	}
	return out, nil
}
