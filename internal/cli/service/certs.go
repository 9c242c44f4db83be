package service

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"os"
	"path/filepath"
	"time"

	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/transport"
)

// How long certificates for development are valid.
const (
	authorityYears = 10
	leafYears      = 2
)

// load reads the files into what package transport takes.
func (t *TLSFiles) load() (*tls.Config, error) {
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
	return &tls.Config{MinVersion: tls.VersionTLS13, RootCAs: pool, ClientCAs: pool, Certificates: []tls.Certificate{cert}}, nil
}

// An authority signs the certificates of a cluster for development.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func authorityFiles(dir string) (cert, key string) {
	return filepath.Join(dir, "ca.pem"), filepath.Join(dir, "ca-key.pem")
}

// newAuthority makes an authority and writes it into a directory.
func newAuthority(dir, cluster string) (*authority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{
		Subject: pkix.Name{CommonName: "authority of the cluster " + cluster}, NotBefore: time.Now().Add(-time.Hour),
		NotAfter: time.Now().AddDate(authorityYears, 0, 0), IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	if template.SerialNumber, err = serial(); err != nil {
		return nil, err
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		return nil, err
	}
	certFile, keyFile := authorityFiles(dir)
	if err := writePair(certFile, keyFile, der, key); err != nil {
		return nil, err
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, err
	}
	return &authority{cert, key}, nil
}

// readAuthority reads the authority that newAuthority wrote.
func readAuthority(dir string) (*authority, error) {
	certFile, keyFile := authorityFiles(dir)
	pair, err := tls.LoadX509KeyPair(certFile, keyFile)
	if err != nil {
		return nil, err
	}
	key, ok := pair.PrivateKey.(*ecdsa.PrivateKey)
	if !ok {
		return nil, fmt.Errorf("%s holds a key that is not for ECDSA", keyFile)
	}
	return &authority{pair.Leaf, key}, nil
}

// issue writes a certificate for a name, and its key, into a directory. It returns the names of the files within it.
func (a *authority) issue(dir, name string) (*TLSFiles, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{
		Subject: pkix.Name{CommonName: name}, DNSNames: []string{name}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().AddDate(leafYears, 0, 0),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	if template.SerialNumber, err = serial(); err != nil {
		return nil, err
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, &key.PublicKey, a.key)
	if err != nil {
		return nil, err
	}
	files := &TLSFiles{CA: "ca.pem", Cert: name + ".pem", Key: name + "-key.pem"}
	return files, writePair(filepath.Join(dir, files.Cert), filepath.Join(dir, files.Key), der, key)
}

func (a *authority) issueReplica(dir string, id protocol.ID) (*TLSFiles, error) {
	return a.issue(dir, transport.MemberName(id))
}

func serial() (*big.Int, error) {
	return rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
}

func writePair(certFile, keyFile string, cert []byte, key *ecdsa.PrivateKey) error {
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return err
	}
	return errors.Join(
		os.WriteFile(certFile, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert}), 0o644),
		os.WriteFile(keyFile, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private}), 0o600))
}
