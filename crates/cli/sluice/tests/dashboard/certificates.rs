//! The page over TLS in a browser that shows certificates: an operator's click moves a worker, and a reader,
//! a host and a visitor without a certificate get one line that says what they lack.
//!
//! Chromium takes certificates from an NSS database below its HOME. Which of them it shows where is asked
//! of a person; here a policy answers. Policies are read from `/etc` only, so the browser gets one of its
//! own in a mount namespace.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::json;

use super::common::{Running, command, stderr};
use super::{Browser, PLAN, listening, text};

/// Who visits, and what the certificate says. Each calls the page by a name of its own, by which the
/// browser picks the certificate.
const VISITORS: [(&str, &str); 3] =
    [("ann", "URI:sluice:operator/ann"), ("eve", "URI:sluice:reader/eve"), ("hal", "URI:sluice:host/hal")];
/// The page's names. Browsers take names below `localhost` for this machine without asking anybody.
const PAGE: &str = "DNS:ann.localhost,DNS:eve.localhost,DNS:hal.localhost,IP:127.0.0.1";
/// The rack's own certificate: its switch's, its worker's and its dashboard's.
const RACK: &str = "IP:127.0.0.1,URI:sluice:host/rig,URI:sluice:operator/rig";

#[test]
fn an_operators_click_moves_a_worker_and_others_hear_what_they_lack() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = folder.path();
    make_certificates(at);
    let Some(mut browser) = with_certificates(at) else { return };
    let rack = SecuredRack::start(at);
    browser.set_size(1_400, 1_000);
    browser.open(&rack.called("eve.localhost"));
    browser.wait_for("document.querySelector('main')?.textContent.includes('rig/one')");
    let made = "document.getElementById('made').textContent";
    let told = browser.value(made);
    let sees = "You are eve. You may look; changes take an operator.";
    assert!(told.as_str().is_some_and(|told| told.ends_with(sees)), "{told}");
    assert_eq!(browser.value("document.querySelectorAll('main button').length"), 0);
    browser.keep_picture("reader");
    // One who asks without the page's buttons hears why not.
    let asks = r#"fetch("/move", { method: "POST", headers: { "content-type": "application/json" },
        body: JSON.stringify({ controller: 0, worker: "rig/one", slice: "spare" }) })
        .then(async (answer) => `${answer.status} ${await answer.text()}`)"#;
    let refused = "403 a change takes a certificate with the role operator, and the certificate of eve \
                   has the role reader\n";
    assert_eq!(browser.value(asks), refused);
    browser.open(&rack.called("hal.localhost"));
    hears_a_line(
        &mut browser,
        "this page takes a certificate with the role reader or operator, and the \
                                certificate of hal has the role host",
    );
    browser.open(&rack.called("ann.localhost"));
    browser.wait_for("document.querySelector('[aria-label=\"Move worker rig/one\"]')");
    let told = browser.value(made);
    assert!(told.as_str().is_some_and(|told| told.ends_with(" You are ann.")), "{told}");
    browser.tab_to("Move worker rig/one");
    browser.press("Enter");
    browser.wait_for("document.querySelector('dialog').open");
    browser.press("Enter");
    browser.wait_for("document.getElementById('done').textContent === 'worker rig/one serves slice spare'");
    drop(browser);
    let Some(mut nobody) = Browser::start(&at.join("nobody")) else { panic!("it was there") };
    nobody.open(&rack.called("127.0.0.1"));
    hears_a_line(
        &mut nobody,
        "visitors have to show a certificate here: add yours, with its key, to the \
                               browser (a .p12 file), with the role reader or operator",
    );
    nobody.keep_picture("nobody");
}

fn hears_a_line(browser: &mut Browser, line: &str) {
    browser.wait_for("document.contentType === 'text/plain' && document.readyState === 'complete'");
    assert_eq!(browser.value("document.body.textContent"), format!("{line}\n"));
}

/// A rack with one worker whose calls all take certificates, and its page.
struct SecuredRack {
    _parts: [Running; 3],
    url: String,
}

impl SecuredRack {
    fn start(folder: &Path) -> Self {
        fs::write(folder.join("page.toml"), PLAN).expect("written");
        let any = "127.0.0.1:0";
        let guarded = ["--tls", "rig.pem", "rig.key", "--client-ca", "ca.pem", "--json"];
        let switch = ["switch", "page.toml", "--listen", any, "--control", any];
        let (switch, said) = listening(folder, &[&switch[..], &guarded].concat());
        let asks = ["--controller", text(&said, "control"), "--ca", "ca.pem"];
        let asks = [&asks[..], &["--identity", "rig.pem", "rig.key", "--quiet"]].concat();
        let worker = [&["worker", "hold", "--slice", "work", "--name", "rig/one"], &asks[..]].concat();
        let worker = command(folder, &worker).stderr(Stdio::null()).spawn().expect("it starts");
        let guarded = ["--tls", "page.pem", "page.key", "--client-ca", "ca.pem", "--json"];
        let page = [&["dashboard", "--listen", any][..], &asks, &guarded].concat();
        let (page, said) = listening(folder, &page);
        let url = text(&said, "dashboard").to_owned();
        Self { _parts: [switch, Running(worker), page], url }
    }

    /// The page by another name.
    fn called(&self, name: &str) -> String {
        self.url.replace("127.0.0.1", name)
    }
}

/// Makes an authority, and certificates as the manual does.
fn make_certificates(folder: &Path) {
    let key =
        ["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-noenc", "-days", "30"];
    let key = key.map(str::to_owned).to_vec();
    let files = |name: &str| {
        let (subject, key, file) = (format!("/CN={name}"), format!("{name}.key"), format!("{name}.pem"));
        ["-subj", &subject, "-keyout", &key, "-out", &file].map(str::to_owned).to_vec()
    };
    run(folder, "openssl", &[key.clone(), files("ca")].concat());
    for (name, says) in VISITORS.into_iter().chain([("page", PAGE), ("rig", RACK)]) {
        let signed = ["-CA", "ca.pem", "-CAkey", "ca.key", "-addext", "basicConstraints=critical,CA:FALSE"];
        let says = ["-addext".to_owned(), format!("subjectAltName={says}")];
        run(
            folder,
            "openssl",
            &[key.clone(), files(name), signed.map(str::to_owned).to_vec(), says.to_vec()].concat(),
        );
    }
}

/// A browser with the visitors' certificates, each for its own name of the page; `None` where the tools for
/// that are not installed.
fn with_certificates(folder: &Path) -> Option<Browser> {
    let runs = |mut command: Command| {
        let ended = command.stdout(Stdio::null()).stderr(Stdio::null()).status();
        ended.is_ok_and(|status| status.success())
    };
    let mut mounts = super::browser::with_policies(folder);
    mounts.arg("true");
    let mut certutil = Command::new("certutil");
    certutil.args(["-N", "--empty-password", "-d", "sql:."]).current_dir(folder);
    if !runs(certutil) || !runs(mounts) {
        eprintln!("skipped: this takes certutil (Debian's libnss3-tools) and the right to mount");
        return None;
    }
    for home in ["nobody", "."] {
        let database = folder.join(home).join(".pki/nssdb");
        fs::create_dir_all(&database).expect("made");
        let of = format!("sql:{}", database.display());
        run(folder, "certutil", &["-N", "--empty-password", "-d", &of]);
        run(folder, "certutil", &["-A", "-n", "ca", "-t", "C,,", "-i", "ca.pem", "-d", &of]);
        if home == "nobody" {
            continue;
        }
        for (name, _) in VISITORS {
            let [key, file, both] = [".key", ".pem", ".p12"].map(|ending| format!("{name}{ending}"));
            let made =
                ["pkcs12", "-export", "-inkey", &key, "-in", &file, "-out", &both, "-passout", "pass:"];
            run(folder, "openssl", &made);
            run(folder, "pk12util", &["-i", &both, "-W", "", "-d", &of]);
        }
    }
    let picks = VISITORS.map(|(name, _)| {
        let pattern = format!("https://{name}.localhost");
        json!({ "pattern": pattern, "filter": { "SUBJECT": { "CN": name } } }).to_string()
    });
    Browser::start_with_policies(folder, &json!({ "AutoSelectCertificateForUrls": picks }))
}

fn run(folder: &Path, program: &str, args: &[impl AsRef<std::ffi::OsStr>]) {
    let done = Command::new(program).args(args).current_dir(folder).output().expect("it is installed");
    assert!(done.status.success(), "{program}: {}", stderr(&done));
}
