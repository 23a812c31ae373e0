//! Certificates for tests, as operators would make them.

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair, SanType, date_time_ymd,
};
use sluice_rpc::{ClientTls, Remote, ServerTls};
use sluice_switchd::rpc::RpcServer;

/// A certificate and its key, in PEM.
pub(crate) struct Made {
    pub(crate) certificate: String,
    pub(crate) key: String,
}

/// Signs certificates for one test.
pub(crate) struct Authority(CertifiedIssuer<'static, KeyPair>);

impl Authority {
    pub(crate) fn new() -> Self {
        Self::called("our rack")
    }

    pub(crate) fn called(name: &str) -> Self {
        let mut params = params(name, &[], &[]);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        Self(CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap())
    }

    pub(crate) fn pem(&self) -> String {
        self.0.pem()
    }

    /// A server certificate for this machine; callers must show a certificate of this authority.
    pub(crate) fn server(&self) -> ServerTls {
        self.open_server().only_clients_of(self.pem().as_bytes())
    }

    /// A server certificate for this machine; callers need not show a certificate.
    pub(crate) fn open_server(&self) -> ServerTls {
        let Made { certificate, key } = self.sign(&params("server", &[], &["127.0.0.1"]));
        ServerTls::new(certificate.as_bytes(), key.as_bytes())
    }

    /// A caller that trusts this authority and shows a certificate with this role and name.
    pub(crate) fn caller(&self, name: &str, role: &str) -> ClientTls {
        self.showing(&self.sign(&params(name, &[role], &[])))
    }

    pub(crate) fn stranger(&self) -> ClientTls {
        ClientTls::new(self.pem().as_bytes())
    }

    pub(crate) fn showing(&self, made: &Made) -> ClientTls {
        self.stranger().showing(made.certificate.as_bytes(), made.key.as_bytes())
    }

    pub(crate) fn sign(&self, params: &CertificateParams) -> Made {
        let key = KeyPair::generate().unwrap();
        Made { certificate: params.signed_by(&key, &self.0).unwrap().pem(), key: key.serialize_pem() }
    }
}

/// A self-signed certificate, as `openssl req -x509` makes it: it may also sign others.
pub(crate) fn self_made(mut params: CertificateParams) -> Made {
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let key = KeyPair::generate().unwrap();
    Made { certificate: params.self_signed(&key).unwrap().pem(), key: key.serialize_pem() }
}

/// The parameters of a certificate with these roles, this name and these addresses.
pub(crate) fn params(name: &str, roles: &[&str], addresses: &[&str]) -> CertificateParams {
    let mut params =
        CertificateParams::new(addresses.iter().map(|&at| at.to_owned()).collect::<Vec<_>>()).unwrap();
    params.distinguished_name.push(DnType::CommonName, name);
    let uris = roles.iter().map(|role| format!("sluice:{role}/{name}"));
    params.subject_alt_names.extend(uris.map(|uri| SanType::URI(uri.try_into().unwrap())));
    params
}

/// The same parameters for a certificate that has already ended.
pub(crate) fn expired(mut params: CertificateParams) -> CertificateParams {
    (params.not_before, params.not_after) = (date_time_ymd(2001, 1, 1), date_time_ymd(2002, 1, 1));
    params
}

pub(crate) fn over_tls(server: &RpcServer, tls: &ClientTls) -> Remote {
    Remote::new(&format!("https://{}", server.local()), Some(tls)).unwrap()
}
