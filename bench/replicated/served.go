package replicated

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/smr/service"
)

// served is a service whose replicas are processes of the foresay program, with a client. Nothing
// of it is encrypted.
type served struct {
	servers *Processes
	client  *service.Client
	program string
	dir     string         // of the replicas' files
	cfg     service.Config // of the replicas, but for what is each one's own
}

func (s *served) close() {
	if s.client != nil {
		_ = s.client.Close() // its servers end with it
	}
	s.servers.Close()
}

// startServed starts three replicas with the defaults of 'smr init', but for TLS and what cfg says.
func startServed(ctx context.Context, program, dir string, cfg service.Config) (*served, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	cfg.Cluster, cfg.Insecure, cfg.Log = "bench", true, service.Log{Level: "error"}
	for i := range 3 {
		address, err := FreeAddress()
		if err != nil {
			return nil, err
		}
		cfg.Members = append(cfg.Members, service.Member{ID: protocol.ID(i + 1), Address: address})
	}
	var files []string
	for _, m := range cfg.Members {
		cfg.ID, cfg.Data = m.ID, fmt.Sprint("replica-", m.ID)
		encoded, err := json.Marshal(cfg)
		if err != nil {
			return nil, err
		}
		files = append(files, filepath.Join(dir, fmt.Sprintf("replica-%d.json", m.ID)))
		if err := os.WriteFile(files[len(files)-1], encoded, 0o600); err != nil {
			return nil, err
		}
	}
	client := &service.ClientConfig{
		Cluster: cfg.Cluster, Protocol: cfg.Protocol, Members: cfg.Members, Insecure: true, RoundTrip: cfg.RoundTrip,
		Routing: cfg.Routing,
	}
	if err := client.Check(); err != nil {
		return nil, err
	}
	servers, err := StartService(ctx, program, files)
	if err != nil {
		return nil, err
	}
	s := &served{servers: servers, program: program, dir: dir, cfg: cfg}
	if s.client, err = service.Dial(client, service.ClientOptions{}); err != nil {
		s.close()
		return nil, err
	}
	return s, nil
}
