//! TLS: who may talk to whom.

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use sluice_net::NetError;
use sluice_net::controller::{ControllerOptions, SwitchLink, start_controller};
use sluice_net::rpc::{ClientTls, Guard, Remote, RpcServer, ServerTls, serve_tables};

use crate::rack::{ANY, Switch, options, remote, worker, worker_hello};

/// Signs certificates for one test.
struct Authority(CertifiedIssuer<'static, KeyPair>);

impl Authority {
    fn new() -> Self {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        Self(CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap())
    }

    fn pem(&self) -> String {
        self.0.pem()
    }

    fn sign(&self, name: &str) -> (String, String) {
        let key = KeyPair::generate().unwrap();
        let params = CertificateParams::new(vec![name.to_owned()]).unwrap();
        (params.signed_by(&key, &self.0).unwrap().pem(), key.serialize_pem())
    }

    fn server(&self) -> ServerTls {
        let (certificate, key) = self.sign("127.0.0.1");
        ServerTls::new(certificate.as_bytes(), key.as_bytes())
    }
}

fn controller(switch: &Switch, tls: ServerTls) -> RpcServer {
    let options = options(SwitchLink::Here(switch.local()));
    start_controller(ControllerOptions { guard: Guard::Tls(tls), ..options }).unwrap()
}

fn over_tls(server: &RpcServer, tls: &ClientTls) -> Remote {
    Remote::new(&format!("https://{}", server.local()), Some(tls)).unwrap()
}

#[test]
fn a_worker_registers_over_tls() {
    let (switch, authority) = (Switch::start(5), Authority::new());
    let server = controller(&switch, authority.server());
    let trusting = ClientTls::new(authority.pem().as_bytes());
    worker(over_tls(&server, &trusting), worker_hello("w")).granted();
}

#[test]
fn a_server_that_another_authority_signed_is_not_believed() {
    let (switch, authority) = (Switch::start(5), Authority::new());
    let server = controller(&switch, authority.server());
    let misled = ClientTls::new(Authority::new().pem().as_bytes());
    let why = worker(over_tls(&server, &misled), worker_hello("w")).lost();
    assert!(why.to_lowercase().contains("certificate"), "{why}");
}

#[test]
fn a_caller_in_the_clear_gets_nowhere_with_a_server_that_speaks_tls() {
    let (switch, authority) = (Switch::start(5), Authority::new());
    let server = controller(&switch, authority.server());
    worker(remote(&server), worker_hello("w")).lost();
}

#[test]
fn a_server_that_asks_for_certificates_lets_only_their_owners_in() {
    let (switch, authority) = (Switch::start(5), Authority::new());
    let server = controller(&switch, authority.server().only_clients_of(authority.pem().as_bytes()));
    let trusting = ClientTls::new(authority.pem().as_bytes());
    worker(over_tls(&server, &trusting), worker_hello("stranger")).lost();
    let (certificate, key) = authority.sign("worker");
    let known = trusting.showing(certificate.as_bytes(), key.as_bytes());
    worker(over_tls(&server, &known), worker_hello("known")).granted();
}

#[test]
fn nothing_is_served_beyond_this_machine_without_tls() {
    let switch = Switch::start(5);
    let everywhere = "0.0.0.0:0".parse().unwrap();
    let options = ControllerOptions { at: everywhere, ..options(SwitchLink::Here(switch.local())) };
    assert!(matches!(start_controller(options), Err(NetError::Insecure { .. })));
    let refused = serve_tables(everywhere, &Guard::Loopback, switch.local()).unwrap_err().to_string();
    assert!(refused.contains("without TLS") && refused.contains("127.0.0.1"), "{refused}");
}

#[test]
fn tables_are_served_everywhere_with_tls() {
    let (switch, authority) = (Switch::start(5), Authority::new());
    let server =
        serve_tables("0.0.0.0:0".parse().unwrap(), &Guard::Tls(authority.server()), switch.local()).unwrap();
    let url = format!("https://127.0.0.1:{}", server.local().port());
    let there = Remote::new(&url, Some(&ClientTls::new(authority.pem().as_bytes()))).unwrap();
    let controller = start_controller(options(SwitchLink::There(there))).unwrap();
    worker(remote(&controller), worker_hello("w")).granted();
}

#[test]
fn a_certificate_that_is_none_is_refused_at_start() {
    let switch = Switch::start(5);
    let refused = serve_tables(ANY.parse().unwrap(), &Guard::Tls(ServerTls::new(b"x", b"y")), switch.local());
    assert!(matches!(refused, Err(NetError::Tls { .. })));
}
