package configfile

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"
)

// TLSFiles are files in PEM form: the cluster's authority, and the own certificate with its key.
type TLSFiles struct {
	CA   string `json:"ca"`
	Cert string `json:"cert"`
	Key  string `json:"key"`
}

// Load reads the files into what package transport takes, which is nil for none.
func (t *TLSFiles) Load() (*tls.Config, error) {
	if t == nil {
		return nil, nil
	}
	ca, err := os.ReadFile(t.CA)
	if err != nil {
		return nil, fmt.Errorf("tls.ca: %w", err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(ca) {
		return nil, fmt.Errorf("tls.ca: %s has no certificate in PEM form", t.CA)
	}
	cert, err := tls.LoadX509KeyPair(t.Cert, t.Key)
	if err != nil {
		return nil, fmt.Errorf("tls.cert and tls.key: %w", err)
	}
	return &tls.Config{MinVersion: tls.VersionTLS13, RootCAs: pool, ClientCAs: pool,
		Certificates: []tls.Certificate{cert}}, nil
}

// Beside returns the files of a TLSFiles that stands in a file, whose directory their names are
// relative to.
func (t *TLSFiles) Beside(file string) *TLSFiles {
	if t == nil {
		return nil
	}
	return &TLSFiles{CA: Beside(file, t.CA), Cert: Beside(file, t.Cert), Key: Beside(file, t.Key)}
}

// CheckTLS looks at the fields tls and insecure of a file, of which one must be set.
func CheckTLS(t *TLSFiles, insecure bool) error {
	switch {
	case t == nil && !insecure:
		return Fieldf("tls", "it is missing; without it, whoever reaches a host is whoever it says, and \"insecure\" must "+
			"be true to allow that")
	case t != nil && insecure:
		return Fieldf("insecure", "it excludes tls")
	case t == nil:
		return nil
	}
	for _, f := range [...]struct{ field, file string }{{"tls.ca", t.CA}, {"tls.cert", t.Cert}, {"tls.key", t.Key}} {
		if f.file == "" {
			return Fieldf(f.field, "it is missing")
		}
	}
	return nil
}
