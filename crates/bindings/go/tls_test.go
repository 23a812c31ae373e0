// A rack with certificates: a client that shows none, or one of another role, is turned away.

package sluice

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"math/big"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// authority signs certificates into a folder.
type authority struct {
	folder string
	issuer *x509.Certificate
	key    *ecdsa.PrivateKey
}

// newAuthority makes an authority, whose certificate is NAME.pem.
func newAuthority(t *testing.T, folder, name string) *authority {
	t.Helper()
	a := &authority{folder: folder}
	of := &x509.Certificate{IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign}
	a.issuer, a.key = a.sign(t, name, of)
	return a
}

// sign writes NAME.pem and NAME.key. An authority without a certificate signs its own.
func (a *authority) sign(t *testing.T, name string, of *x509.Certificate) (*x509.Certificate, *ecdsa.PrivateKey) {
	t.Helper()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(err)
	serial, err := rand.Int(rand.Reader, big.NewInt(1<<62))
	must(err)
	of.SerialNumber, of.Subject = serial, pkix.Name{CommonName: name}
	of.NotBefore, of.NotAfter = time.Now().Add(-time.Hour), time.Now().Add(24*time.Hour)
	issuer, by := a.issuer, a.key
	if issuer == nil {
		issuer, by = of, key
	}
	signed, err := x509.CreateCertificate(rand.Reader, of, issuer, &key.PublicKey, by)
	must(err)
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	must(err)
	write := func(file, kind string, bytes []byte) {
		text := pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: bytes})
		must(os.WriteFile(filepath.Join(a.folder, file), text, 0o600))
	}
	write(name+".pem", "CERTIFICATE", signed)
	write(name+".key", "PRIVATE KEY", secret)
	parsed, err := x509.ParseCertificate(signed)
	must(err)
	return parsed, key
}

// role is a certificate that names its owner's role.
func role(t *testing.T, text string) *x509.Certificate {
	t.Helper()
	uri, err := url.Parse("sluice:" + text)
	if err != nil {
		t.Fatal(err)
	}
	return &x509.Certificate{URIs: []*url.URL{uri}}
}

func TestACertificateSaysWhoMayBeAClient(t *testing.T) {
	folder := t.TempDir()
	at := func(file string) string { return filepath.Join(folder, file) }
	ca := newAuthority(t, folder, "ca")
	newAuthority(t, folder, "other")
	ca.sign(t, "switch", &x509.Certificate{IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}})
	ca.sign(t, "host", role(t, "host/a"))
	ca.sign(t, "sender", role(t, "sender/web"))
	r := startRack(t, plan, 0, "--tls", at("switch.pem"), at("switch.key"), "--client-ca", at("ca.pem"))
	shown := []string{"--ca", at("ca.pem"), "--identity", at("host.pem"), at("host.key"), "--name", "a/worker"}
	r.startWorker(t, nil, shown...)

	client := r.connect(t, Options{CA: at("ca.pem"), Cert: at("host.pem"), Key: at("host.key"), Name: "a/client"})
	waitFor(t, "a task is served", func() bool {
		reply, err := client.Submit(t.Context(), 9, []byte("live"))
		return err == nil && string(reply.Bytes) == "evil"
	})

	for _, wrong := range []struct {
		who     string
		options Options
		why     string
	}{
		{"nobody", Options{}, "unreachable"},
		{"somebody without a certificate", Options{CA: at("ca.pem")}, "turned-away"},
		{"who believes another authority", Options{CA: at("other.pem"), Cert: at("host.pem"), Key: at("host.key")}, "unreachable"},
		{"a sender", Options{CA: at("ca.pem"), Cert: at("sender.pem"), Key: at("sender.key")}, "turned-away"},
		{"another host", Options{CA: at("ca.pem"), Cert: at("host.pem"), Key: at("host.key"), Name: "b/client"}, "turned-away"},
	} {
		wrong.options.Patience = time.Second
		if wrong.why == "turned-away" {
			wrong.options.Patience = limit
		}
		_, err := Connect(t.Context(), r.at, wrong.options)
		var refused *ConnectError
		if !errors.As(err, &refused) || refused.Why != wrong.why {
			t.Errorf("%s: %v", wrong.who, err)
		}
	}
}
