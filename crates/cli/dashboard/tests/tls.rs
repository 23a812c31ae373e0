//! The page over TLS: each role, and what is no visitor.

mod served;

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair, SanType};
use served::{Heard, answer, request, served};
use sluice_rpc::ServerTls;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

const MOVE: &str = r#"{"controller":0,"worker":"w","slice":"s"}"#;

/// An authority.
struct Authority(CertifiedIssuer<'static, KeyPair>);

/// A certificate and its key in PEM.
type PemPair = (String, String);

impl Authority {
    fn new() -> Self {
        let mut params = CertificateParams::new(Vec::new()).expect("no names");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        Self(CertifiedIssuer::self_signed(params, KeyPair::generate().expect("a key")).expect("an authority"))
    }

    fn signs(&self, names: Vec<SanType>) -> PemPair {
        let mut params = CertificateParams::new(Vec::new()).expect("no names");
        params.subject_alt_names = names;
        let key = KeyPair::generate().expect("a key");
        (params.signed_by(&key, &self.0).expect("signed").pem(), key.serialize_pem())
    }

    fn of_role(&self, role: &str) -> PemPair {
        self.signs(vec![SanType::URI(role.try_into().expect("a URI"))])
    }
}

fn server(authority: &Authority) -> ServerTls {
    let (certificate, key) = authority.signs(vec![SanType::IpAddress(IpAddr::V4(Ipv4Addr::LOCALHOST))]);
    ServerTls::new(certificate.as_bytes(), key.as_bytes()).only_clients_of(authority.0.pem().as_bytes())
}

/// What a visitor with this certificate is answered.
async fn visits(at: SocketAddr, authority: &Authority, shown: Option<&PemPair>, request: &str) -> String {
    let mut roots = RootCertStore::empty();
    roots.add(authority.0.der().clone()).expect("an authority");
    let builder = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()));
    let builder =
        builder.with_safe_default_protocol_versions().expect("versions").with_root_certificates(roots);
    let mut config = match shown {
        None => builder.with_no_client_auth(),
        Some((certificate, key)) => {
            let chain = vec![CertificateDer::from_pem_slice(certificate.as_bytes()).expect("PEM")];
            let key = PrivateKeyDer::from_pem_slice(key.as_bytes()).expect("PEM");
            builder.with_client_auth_cert(chain, key).expect("they belong together")
        }
    };
    // As browsers offer.
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    let stream = TcpStream::connect(at).await.expect("it listens");
    let name = ServerName::from(IpAddr::V4(Ipv4Addr::LOCALHOST));
    let mut answer = Vec::new();
    // A certificate that is not trusted ends the connection, in TLS 1.3 behind the handshake.
    if let Ok(mut stream) = TlsConnector::from(Arc::new(config)).connect(name, stream).await {
        stream.write_all(request.as_bytes()).await.ok();
        stream.read_to_end(&mut answer).await.ok();
    }
    String::from_utf8_lossy(&answer).into_owned()
}

#[tokio::test(flavor = "current_thread")]
async fn a_reader_sees_an_operator_changes_and_all_others_hear_why_not() {
    let authority = Authority::new();
    let (at, _served) = served(Some(server(&authority)));
    let host = at.to_string();
    let own: &[(&str, &str)] = &[("Host", &host), ("Content-Type", "application/json")];
    let (look, change) = (request("GET /state.json", own, ""), request("POST /move", own, MOVE));
    let heard =
        async |shown: Option<&PemPair>, what: &str| Heard::of(&visits(at, &authority, shown, what).await);
    let (reader, operator) =
        (authority.of_role("sluice:reader/eve"), authority.of_role("sluice:operator/ann"));
    let state = heard(Some(&reader), &look).await.json();
    assert_eq!(state["visitor"], serde_json::json!({ "name": "eve", "may_change": false }));
    let refused =
        "a change takes a certificate with the role operator, and the certificate of eve has the role reader";
    heard(Some(&reader), &change).await.tells(403, refused);
    let state = heard(Some(&operator), &look).await.json();
    assert_eq!(state["visitor"], serde_json::json!({ "name": "ann", "may_change": true }));
    heard(Some(&operator), &change).await.tells(409, "no controller answers");
    for (role, has) in [
        ("sluice:host/b", "the certificate of b has the role host"),
        ("sluice:controller/c", "has the role controller"),
        ("https://example.org", "gives no role"),
    ] {
        let shown = authority.of_role(role);
        heard(Some(&shown), &look).await.tells(403, has);
        heard(Some(&shown), &change).await.tells(403, has);
    }
    heard(None, &look).await.tells(401, "have to show a certificate");
    heard(None, &change).await.tells(401, "have to show a certificate");
}

#[tokio::test(flavor = "current_thread")]
async fn a_stranger_with_a_certificate_of_another_authority_gets_no_answer() {
    let (authority, other) = (Authority::new(), Authority::new());
    let (at, _served) = served(Some(server(&authority)));
    let look = request("GET /", &[("Host", &at.to_string())], "");
    let stranger = other.of_role("sluice:operator/ann");
    assert_eq!(visits(at, &authority, Some(&stranger), &look).await, "");
}

#[tokio::test(flavor = "current_thread")]
async fn the_page_is_called_by_what_its_certificate_is_for() {
    let authority = Authority::new();
    let (at, _served) = served(Some(server(&authority)));
    let reader = authority.of_role("sluice:reader/eve");
    for host in ["localhost", "evil.example", "127.0.0.2"] {
        let look = request("GET /state.json", &[("Host", host)], "");
        let got = Heard::of(&visits(at, &authority, Some(&reader), &look).await);
        got.tells(421, "a name or an address in its certificate");
    }
}

#[test]
fn who_speaks_plain_http_to_a_port_with_tls_is_told_so() {
    let authority = Authority::new();
    let (at, _served) = served(Some(server(&authority)));
    let got = Heard::of(&answer(at, b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"));
    got.tells(400, &format!("this port speaks TLS: open https://{at}/"));
}
