//! What the log says of collectors that cannot be reached, are no collectors, or want something else.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::num::NonZeroU32;

use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use sluice_rpc::{ClientTls, ServerTls};
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::server::WebPkiClientVerifier;
use tokio_rustls::rustls::{RootCertStore, ServerConfig, ServerConnection, Stream};

use super::*;
use crate::Tracer;

/// An authority that signs certificates for this machine.
struct Authority {
    pem: String,
    issuer: Issuer<'static, KeyPair>,
}

impl Authority {
    fn new() -> Self {
        let key = KeyPair::generate().expect("a key");
        let mut params = CertificateParams::new(Vec::new()).expect("no names");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let pem = params.self_signed(&key).expect("signed").pem();
        Self { pem, issuer: Issuer::new(params, key) }
    }

    /// A certificate for this name, and its key.
    fn signed(&self, name: &str) -> (String, String) {
        let key = KeyPair::generate().expect("a key");
        let params = CertificateParams::new(vec![name.to_owned()]).expect("a name");
        let certificate = params.signed_by(&key, &self.issuer).expect("signed");
        (certificate.pem(), key.serialize_pem())
    }

    fn server(&self, name: &str) -> ServerTls {
        let (certificate, key) = self.signed(name);
        ServerTls::new(certificate.as_bytes(), key.as_bytes()).for_pages()
    }

    /// A server that serves nobody without a certificate.
    fn asking_server(&self) -> Arc<ServerConfig> {
        let (certificate, key) = self.signed("127.0.0.1");
        let read = |pem: &str| CertificateDer::from_pem_slice(pem.as_bytes()).expect("a certificate");
        let mut roots = RootCertStore::empty();
        roots.add(read(&self.pem)).expect("an authority");
        let provider = Arc::new(ring::default_provider());
        let clients = WebPkiClientVerifier::builder_with_provider(roots.into(), Arc::clone(&provider));
        let builder = ServerConfig::builder_with_provider(provider);
        let builder = builder.with_safe_default_protocol_versions().expect("versions");
        let builder = builder.with_client_cert_verifier(clients.build().expect("a verifier"));
        let key = PrivateKeyDer::from_pem_slice(key.as_bytes()).expect("a key");
        Arc::new(builder.with_single_cert(vec![read(&certificate)], key).expect("they go together"))
    }

    fn trusted(&self) -> ClientTls {
        ClientTls::new(self.pem.as_bytes())
    }
}

/// Serves one connection, and answers what comes with `answer`.
fn serve(tls: Option<Arc<ServerConfig>>, answer: &'static str) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("bound").port();
    thread::spawn(move || {
        let (mut stream, _) = listener.accept().expect("a connection");
        let converse = |stream: &mut dyn Conversation| {
            let mut request = [0; 4_096];
            stream.read(&mut request).and_then(|_| stream.write_all(answer.as_bytes())).ok();
            stream.flush().ok();
            // Whoever hangs up with bytes unread takes the answer away from the other end.
            while stream.read(&mut request).is_ok_and(|bytes| bytes > 0) {}
        };
        match tls {
            None => converse(&mut stream),
            Some(config) => {
                let mut connection = ServerConnection::new(config).expect("a server");
                converse(&mut Stream::new(&mut connection, &mut stream));
            }
        }
    });
    port
}

trait Conversation: Read + Write {}
impl<T: Read + Write> Conversation for T {}

/// Why a request to this address fails and whether for good; `Ok` if it is taken.
fn send(at: &str, tls: Option<&ClientTls>) -> Result<(), (String, bool)> {
    let endpoint = TraceEndpoint::found(Some(at), tls).expect("an address");
    let (tracer, _running) =
        Tracer::start(endpoint.clone(), NonZeroU32::MIN, "worker").expect("a thread that has nothing to do");
    let exporter = SpanExporter::new(tracer.0, endpoint, "worker").expect("a runtime");
    let sent = exporter.runtime.block_on(async { exporter.send(Bytes::from_static(b"spans")).await });
    sent.map(drop).map_err(|failure| (failure.why, failure.is_final))
}

const TAKEN: &str = "HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n";

fn config(tls: &ServerTls) -> Arc<ServerConfig> {
    tls.config().expect("a usable certificate")
}

#[test]
fn spans_go_through_tls_to_a_collector_that_the_authority_signed_for() {
    let authority = Authority::new();
    let port = serve(Some(config(&authority.server("127.0.0.1"))), TAKEN);
    send(&format!("https://127.0.0.1:{port}"), Some(&authority.trusted())).expect("taken");
    let port = serve(Some(config(&authority.server("localhost"))), TAKEN);
    send(&format!("https://localhost:{port}"), Some(&authority.trusted())).expect("taken");
}

#[test]
fn a_collector_may_ask_who_sends() {
    let authority = Authority::new();
    let asks = authority.asking_server();
    let port = serve(Some(Arc::clone(&asks)), TAKEN);
    let (certificate, key) = authority.signed("127.0.0.1");
    let shown = authority.trusted().showing(certificate.as_bytes(), key.as_bytes());
    send(&format!("https://127.0.0.1:{port}"), Some(&shown)).expect("taken");
    let port = serve(Some(Arc::clone(&asks)), TAKEN);
    let (why, is_final) =
        send(&format!("https://127.0.0.1:{port}"), Some(&authority.trusted())).expect_err("nobody is shown");
    assert!(why.contains("--otlp-identity") && !is_final, "{why}");
}

#[test]
fn what_is_wrong_with_tls_is_told_with_what_to_do() {
    let (authority, other) = (Authority::new(), Authority::new());
    let told = |port: u16, scheme: &str, tls: Option<ClientTls>| {
        let (why, is_final) =
            send(&format!("{scheme}://127.0.0.1:{port}"), tls.as_ref()).expect_err("not taken");
        assert!(!why.contains('\n') && !is_final, "{why}");
        why
    };
    let wrong =
        told(serve(Some(config(&other.server("127.0.0.1"))), TAKEN), "https", Some(authority.trusted()));
    assert!(wrong.contains("--otlp-ca") && wrong.contains("not signed by the authority"), "{wrong}");
    let elsewhere =
        told(serve(Some(config(&other.server("elsewhere"))), TAKEN), "https", Some(other.trusted()));
    assert!(elsewhere.contains("for elsewhere, not for 127.0.0.1"), "{elsewhere}");
    let plain = told(serve(None, "I speak no TLS\r\n"), "https", Some(authority.trusted()));
    assert!(plain.contains("does not speak TLS") && plain.contains("http://"), "{plain}");
    let secure = told(serve(Some(config(&other.server("127.0.0.1"))), TAKEN), "http", None);
    assert!(secure.contains("https://"), "{secure}");
}

#[test]
fn what_a_collector_says_is_told_in_one_line() {
    let told = |answer| {
        let port = serve(None, answer);
        send(&format!("http://127.0.0.1:{port}"), None).expect_err("not taken")
    };
    let (why, is_final) =
        told("HTTP/1.1 307 Temporary Redirect\r\nlocation: https://else:1/\r\ncontent-length: 0\r\n\r\n");
    assert!(why.contains("to https://else:1/") && why.contains("--otlp") && is_final, "{why}");
    let (why, is_final) = told(
        "HTTP/1.0 400 Bad Request\r\ncontent-length: 37\r\n\r\nClient sent HTTP\x1b[31m to HTTPS.\nMore.",
    );
    assert!(why.contains("(Client sent HTTP\\u{1b}[31m to HTTPS.)") && is_final, "{why}");
    let (why, is_final) =
        told("HTTP/1.1 503 Service Unavailable\r\ncontent-length: 6\r\nretry-after: 7\r\n\r\n\x12\x04busy");
    assert!(why.ends_with("503 Service Unavailable (busy)") && !is_final, "{why}");
    let (why, is_final) = told("220 mail.example ESMTP\r\n");
    assert!(why.contains("no HTTP") && !is_final, "{why}");
    let closed = sluice_ports::free_address();
    let (why, is_final) = send(&format!("http://{closed}"), None).expect_err("nobody listens");
    assert!(why.contains("refused") && !is_final, "{why}");
}
