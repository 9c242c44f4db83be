package configfile

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
	"net"
	"os"
	"path/filepath"
	"time"
)

// How long certificates for development are valid.
const (
	authorityYears = 10
	leafYears      = 2
)

// An Authority signs the certificates of a cluster for development.
type Authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func authorityFiles(dir string) (cert, key string) {
	return filepath.Join(dir, "ca.pem"), filepath.Join(dir, "ca-key.pem")
}

// NewAuthority makes an authority and writes it into a directory.
func NewAuthority(dir, cluster string) (*Authority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{
		Subject: pkix.Name{CommonName: "authority of the cluster " + cluster}, NotBefore: time.Now().Add(-time.Hour),
		NotAfter: time.Now().AddDate(authorityYears, 0, 0), IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageCertSign,
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
	return &Authority{cert, key}, nil
}

// ReadAuthority reads the authority that NewAuthority wrote.
func ReadAuthority(dir string) (*Authority, error) {
	certFile, keyFile := authorityFiles(dir)
	pair, err := tls.LoadX509KeyPair(certFile, keyFile)
	if err != nil {
		return nil, err
	}
	key, ok := pair.PrivateKey.(*ecdsa.PrivateKey)
	if !ok {
		return nil, fmt.Errorf("%s holds a key that is not for ECDSA", keyFile)
	}
	return &Authority{pair.Leaf, key}, nil
}

// Issue writes a certificate, and its key, into a directory. It is for a name, which the files have
// too, and for other names and IP addresses. It returns the names of the files within the
// directory.
func (a *Authority) Issue(dir, name string, others ...string) (*TLSFiles, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{
		Subject: pkix.Name{CommonName: name}, DNSNames: []string{name}, NotBefore: time.Now().Add(-time.Hour),
		NotAfter: time.Now().AddDate(leafYears, 0, 0),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth,
			x509.ExtKeyUsageClientAuth},
	}
	for _, other := range others {
		if ip := net.ParseIP(other); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		} else {
			template.DNSNames = append(template.DNSNames, other)
		}
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
