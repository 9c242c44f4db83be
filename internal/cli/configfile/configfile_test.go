package configfile

import (
	"crypto/x509"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

type sample struct {
	Name  string    `json:"name"`
	Parts []part    `json:"parts,omitempty"`
	TLS   *TLSFiles `json:"tls,omitempty"`
}

type part struct {
	At string `json:"at"`
}

func (s *sample) check() error {
	for i, p := range s.Parts {
		if err := CheckAddress("parts["+string(rune('0'+i))+"].at", p.At, false); err != nil {
			return err
		}
	}
	return CheckTLS(s.TLS, s.TLS == nil)
}

func TestErrorsNameThePlace(t *testing.T) {
	for _, tc := range []struct{ text, want string }{
		{"", "f:1: the file ends too early"},
		{"// nothing\n{\"name\": 1}", "f:2: name: want a string, not a number"},
		{"{\"name\": \"a\",\n\"nam\": \"b\"}", "f:2: nam: there is no such field"},
		{"{\"name\": \"a\",\n\"name\": \"b\"}", "f:2: name: it is there already, in line 1"},
		{"{\"parts\": [\n{\"at\": \"h:1\"},\n{\"at\": \"h\"}]}",
			`f:3: parts[1].at: "h": missing port in address; want host:port`},
		{"{}\n\n {\"name\": \"a\"} \n", `f:3: the object has ended before "{\"name\": \"a\"}", and nothing may be behind it`},
		{"{\n}}", `f:2: the object has ended before "}", and nothing may be behind it`},
		{"{}\n// nothing\nx", `f:3: the object has ended before "x", and nothing may be behind it`},
		{"{\"parts\": [\n{}]}", "f:2: parts[0].at: it is missing"},
		{"{\"parts\": [{\"at\": \":1\"}]}", `f:1: parts[0].at: ":1" has no host`},
		{"{\"parts\": [{\"at\": \"h:x\"}]}", `f:1: parts[0].at: "h:x" has no port`},
		{"{\n\"tls\": {\"ca\": \"a\",\n\"key\": \"b\"}}", "f:2: tls.cert: it is missing"},
	} {
		s := &sample{}
		err := Parse("f", []byte(tc.text), s, s.check)
		if err == nil || !strings.HasPrefix(err.Error(), tc.want) {
			t.Errorf("%s\ngives the error %v, want one that begins with %q", tc.text, err, tc.want)
		}
	}
}

func TestWriteAndRead(t *testing.T) {
	name := filepath.Join(t.TempDir(), "f.json")
	want := sample{Name: "n", Parts: []part{{"h:1"}}}
	if err := Write(name, want); err != nil {
		t.Fatal(err)
	}
	got := sample{}
	if err := Read(name, &got, got.check); err != nil || got.Name != "n" || got.Parts[0] != want.Parts[0] {
		t.Errorf("%+v, %v", got, err)
	}
	if got, want := Beside(name, "x"), filepath.Join(filepath.Dir(name), "x"); got != want {
		t.Errorf("x beside %s is %s", name, got)
	}
}

func TestCertificatesAreForTheirNames(t *testing.T) {
	dir := t.TempDir()
	if _, err := NewAuthority(dir, "test"); err != nil {
		t.Fatal(err)
	}
	ca, err := ReadAuthority(dir)
	if err != nil {
		t.Fatal(err)
	}
	files, err := ca.Issue(dir, "one", "replica-1", "10.0.0.1", "host")
	if err != nil {
		t.Fatal(err)
	}
	cfg, err := files.Beside(filepath.Join(dir, "f.json")).Load()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"one", "replica-1", "10.0.0.1", "host"} {
		if _, err := cfg.Certificates[0].Leaf.Verify(x509.VerifyOptions{DNSName: name, Roots: cfg.RootCAs}); err != nil {
			t.Error(err)
		}
	}
	if _, err := cfg.Certificates[0].Leaf.Verify(x509.VerifyOptions{DNSName: "two", Roots: cfg.RootCAs}); err == nil {
		t.Error("the certificate is good for any name")
	}
	info, err := os.Stat(filepath.Join(dir, files.Key))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the key's file: %v, %v", info, err)
	}
}

// TestUnknownHost: a host whose name nobody knows has no ports to try one after the other.
func TestUnknownHost(t *testing.T) {
	_, err := FreeAddresses("nowhere.invalid", 0, 2)
	if _, unknown := errors.AsType[*net.DNSError](err); !unknown || strings.Contains(err.Error(), "ports") {
		t.Errorf("it fails with %v", err)
	}
}
