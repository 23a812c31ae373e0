//! Certificates that end or change while connections and servers that use them continue.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rcgen::{CertificateParams, date_time_ymd};
use sluice_rpc::{ClientTls, ServerTls, read_anew};
use sluice_switchd::controller::{ControllerOptions, SwitchLink, start_controller};
use sluice_switchd::rpc::{Guard, RpcServer};
use tempfile::TempDir;

use crate::authority::{Authority, Made, over_tls, params};
use crate::rack::{Switch, options, worker, worker_hello};
use crate::secure::{calls, status};

/// The files of a rack: its authority, its server's certificate, and the certificate of host `b`.
struct Files(TempDir);

impl Files {
    fn signed_by(authority: &Authority) -> Self {
        let files = Self(tempfile::tempdir().unwrap());
        files.sign(authority);
        files
    }

    fn sign(&self, authority: &Authority) {
        fs::write(self.at("ca.pem"), authority.pem()).unwrap();
        self.put("server", &authority.sign(&params("server", &[], &["127.0.0.1"])));
        self.put("b", &authority.sign(&params("b", &["host"], &[])));
    }

    fn put(&self, name: &str, made: &Made) {
        fs::write(self.at(&format!("{name}.key")), &made.key).unwrap();
        fs::write(self.at(&format!("{name}.pem")), &made.certificate).unwrap();
    }

    fn at(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn pair(&self, name: &str) -> [PathBuf; 2] {
        ["pem", "key"].map(|ending| self.at(&format!("{name}.{ending}")))
    }

    fn host(&self) -> ClientTls {
        let [certificate, key] = self.pair("b");
        ClientTls::from_files(&self.at("ca.pem"), Some((&certificate, &key))).unwrap()
    }

    fn controller(&self, switch: &Switch) -> RpcServer {
        let [certificate, key] = self.pair("server");
        let tls = ServerTls::from_files(&certificate, &key, Some(Path::new(&self.at("ca.pem")))).unwrap();
        let options = options(SwitchLink::Here(switch.local()));
        start_controller(ControllerOptions { guard: Guard::Tls(tls), ..options }).unwrap()
    }
}

/// A certificate that ends `span` from now.
fn ending_in(span: Duration, mut params: CertificateParams) -> CertificateParams {
    let end = (SystemTime::now() + span).duration_since(UNIX_EPOCH).unwrap();
    params.not_after = date_time_ymd(1970, 1, 1) + Duration::from_secs(end.as_secs());
    params
}

#[tokio::test(flavor = "current_thread")]
async fn new_files_are_read_by_all_and_nobody_is_lost() {
    let (switch, before, after) = (Switch::start(5), Authority::called("before"), Authority::called("after"));
    let files = Files::signed_by(&before);
    let server = files.controller(&switch);
    let host = worker(over_tls(&server, &files.host()), worker_hello("b/w"));
    let grant = host.granted();
    files.sign(&after);
    read_anew();
    let mut operator = calls(&server, &after.caller("ann", "operator"));
    let seen = status(&mut operator).await.unwrap();
    assert_eq!(seen.workers.iter().map(|worker| worker.name.as_str()).collect::<Vec<_>>(), ["b/w"]);
    for _ in 0..3 {
        let renewed = host.until(|event| match event {
            sluice_rpc::registrar::RegistrarEvent::Granted(grant) => Some(grant),
            other => panic!("{other:?}"),
        });
        assert_eq!((renewed.worker, renewed.key), (grant.worker, grant.key));
    }
    let stranger = worker(over_tls(&server, &before.caller("b", "host")), worker_hello("b/other"));
    stranger.lost();
}

#[test]
fn a_certificate_that_ends_is_asked_for_again_and_a_new_one_is_enough() {
    let (switch, authority) = (Switch::start(5), Authority::new());
    let files = Files::signed_by(&authority);
    let server = files.controller(&switch);
    files.put("b", &authority.sign(&ending_in(Duration::from_secs(8), params("b", &["host"], &[]))));
    let host = worker(over_tls(&server, &files.host()), worker_hello("b/w"));
    host.granted();
    let why = host.until(|event| match event {
        sluice_rpc::registrar::RegistrarEvent::Lost { why } => Some(why),
        _ => None,
    });
    assert!(!why.is_empty());
    files.put("b", &authority.sign(&params("b", &["host"], &[])));
    host.granted();
}

#[tokio::test(flavor = "current_thread")]
async fn certificates_that_end_within_two_weeks_are_told_of() {
    let (switch, authority) = (Switch::start(5), Authority::new());
    let files = Files::signed_by(&authority);
    let day = Duration::from_hours(24);
    files.put("server", &authority.sign(&ending_in(13 * day, params("server", &[], &["127.0.0.1"]))));
    let server = files.controller(&switch);
    let soon = authority.sign(&ending_in(2 * day, params("b", &["host"], &[])));
    worker(over_tls(&server, &authority.showing(&soon)), worker_hello("b/w")).granted();
    let later = authority.sign(&ending_in(20 * day, params("c", &["host"], &[])));
    worker(over_tls(&server, &authority.showing(&later)), worker_hello("c/w")).granted();
    let mut operator = calls(&server, &authority.caller("ann", "operator"));
    let ending = status(&mut operator).await.unwrap().ending;
    let told: Vec<&str> = ending.iter().map(|end| end.certificate.as_str()).collect();
    assert!(told[0].ends_with("server.pem") && told[1..] == ["the certificate of b"], "{told:?}");
}
