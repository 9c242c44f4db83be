package machine

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"time"

	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/transport"
)

// checkCertificate tells at the start what others would refuse later, one message after the other:
// a certificate that they do not trust, or that is another machine's.
func checkCertificate(cfg *tls.Config, ids []protocol.ID, as func(protocol.ID) protocol.ID) error {
	if cfg == nil || len(cfg.Certificates) == 0 || len(cfg.Certificates[0].Certificate) == 0 {
		return nil // it has others by a function
	}
	cert, err := x509.ParseCertificate(cfg.Certificates[0].Certificate[0])
	if err != nil {
		return fmt.Errorf("its certificate: %w", err)
	}
	if _, err := cert.Verify(x509.VerifyOptions{Roots: cfg.RootCAs, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageAny},
		CurrentTime: time.Now()}); err != nil {
		return fmt.Errorf("others will not trust its certificate: %w", err)
	}
	for _, id := range ids {
		if err := cert.VerifyHostname(transport.MemberName(as(id))); err != nil {
			return errors.Join(errors.New("its certificate is another machine's, or of another topology"), err)
		}
	}
	return nil
}
