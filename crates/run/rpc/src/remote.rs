//! The address of a gRPC service, or the addresses of several processes of which one serves; and how soon a
//! dead connection is noticed.

use std::hash::{BuildHasher, RandomState};
use std::net::ToSocketAddrs;
use std::sync::Arc;
use std::time::Duration;

use tonic::transport::{Endpoint, Uri};
use tonic::{Code, Status};

use super::renewed_channel::{Addresses, RenewedChannel, RenewedEndpoint};
use super::tls::{Renewed, why};
use super::{ClientTls, shown};
use crate::RpcError;

const CONNECT_TIMEOUT: Duration = Duration::from_millis(500);
/// The same with TLS, whose handshake takes the other process a while.
const TLS_CONNECT_TIMEOUT: Duration = Duration::from_secs(1);
/// The time limit of a call. Every call may be repeated, so a late answer counts as lost.
const CALL_TIMEOUT: Duration = Duration::from_secs(1);
const PING_EVERY: Duration = Duration::from_millis(200);
const PING_TIMEOUT: Duration = Duration::from_millis(400);

/// The checked address of a gRPC service, not connected yet. If it has several addresses, one of the
/// processes there serves: a call goes to the one that answered last, and if that one fails or says that
/// another one leads, the next call goes to the next address. Clones share what was found out.
#[derive(Clone, Debug)]
pub struct Remote {
    url: String,
    addresses: Addresses,
    /// The name in the client certificate that is shown to this service, if there is one.
    caller: Option<String>,
}

impl Remote {
    /// The service at `text`: `HOST:PORT`, `http://…` or `https://…`, or several of these with commas or plus
    /// signs between. The first means `https` if `tls` is given.
    ///
    /// # Errors
    /// [`RpcError::Address`] if it is not one of these, does not resolve, or does not go with `tls`;
    /// [`RpcError::Tls`] if `tls` cannot be used.
    pub fn new(text: &str, tls: Option<&ClientTls>) -> Result<Self, RpcError> {
        let all = text.split([',', '+']).map(|one| Self::of_one(one, tls)).collect::<Result<Vec<_>, _>>()?;
        Ok(Self::any_of(&all))
    }

    /// The service that one of these serves; there must be at least one.
    pub fn any_of(all: &[Self]) -> Self {
        let urls: Vec<&str> = all.iter().map(Self::url).collect();
        let endpoints = all.iter().flat_map(|remote| remote.addresses.all()).cloned();
        Self {
            url: urls.join(","),
            addresses: Addresses::new(endpoints.collect()),
            caller: all[0].caller.clone(),
        }
    }

    fn of_one(text: &str, tls: Option<&ClientTls>) -> Result<Self, RpcError> {
        let wrong = |why: String| RpcError::Address { text: text.to_owned(), why };
        let scheme = if tls.is_some() { "https" } else { "http" };
        let url = if text.contains("://") { text.to_owned() } else { format!("{scheme}://{text}") };
        let uri: Uri = url.parse().map_err(|why| wrong(format!("{why}")))?;
        match uri.scheme_str() {
            Some(given) if given == scheme => {}
            Some("https") => return Err(wrong("https needs the authority to trust (--ca)".to_owned())),
            Some("http") => {
                return Err(wrong("a certificate was given, but http does not use it".to_owned()));
            }
            _ => return Err(wrong("neither http nor https".to_owned())),
        }
        check_resolves(&uri).map_err(wrong)?;
        let at = Endpoint::from(uri)
            .connect_timeout(if tls.is_some() { TLS_CONNECT_TIMEOUT } else { CONNECT_TIMEOUT })
            .timeout(CALL_TIMEOUT)
            .http2_keep_alive_interval(PING_EVERY)
            .keep_alive_timeout(PING_TIMEOUT)
            .keep_alive_while_idle(true);
        let caller = tls.map(ClientTls::name).transpose()?.flatten();
        let endpoint = Arc::new(Renewed::new(RenewedEndpoint { at, tls: tls.cloned() })?);
        Ok(Self { url, addresses: Addresses::new(vec![endpoint]), caller })
    }

    /// The service's address as a URL; several have commas between.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// How many addresses the service has.
    pub fn count(&self) -> usize {
        self.addresses.all().len()
    }

    /// A default name for a host of this kind. The name contains the process number, so that operators find
    /// the process, and a random part, since processes of two machines or containers may have the same
    /// number.
    pub fn own_name(&self, kind: &str) -> String {
        let process = std::process::id();
        let chance = RandomState::new().hash_one(process) as u16;
        match &self.caller {
            Some(caller) => format!("{caller}/{kind}-{process}-{chance:04x}"),
            None => format!("{kind}-{process}-{chance:04x}"),
        }
    }

    /// A channel that connects at its first call and reconnects after each loss, always with the
    /// certificates that are valid at the call. Must be called inside a tokio runtime.
    pub fn connect(&self) -> RenewedChannel {
        RenewedChannel::new(self.addresses.clone(), false)
    }

    /// A channel for calls without a time limit, such as a stream of events. Must be called inside a tokio
    /// runtime.
    pub fn connect_patiently(&self) -> RenewedChannel {
        RenewedChannel::new(self.addresses.clone(), true)
    }

    /// The error for a call that ended with this status.
    pub fn failed(&self, what: &'static str, status: &Status) -> RpcError {
        RpcError::Call { what, url: self.url.clone(), why: reason(status) }
    }
}

/// What a status means, in words for people.
pub fn reason(status: &Status) -> String {
    let source = std::error::Error::source(status);
    if let Some(why) = source.and_then(why::tls_error_text) {
        return shown(&why);
    }
    match (status.code(), source) {
        (Code::Unavailable | Code::Unknown, Some(source)) => shown(&deepest(source)),
        (Code::Cancelled | Code::DeadlineExceeded, _) => "no answer in time".to_owned(),
        _ if status.message().is_empty() => status.code().description().to_owned(),
        _ => shown(status.message()),
    }
}

/// Whether a call failed because no one answered. A peer that refuses, or whose certificate is not trusted,
/// did answer.
pub fn is_silence(status: &Status) -> bool {
    match std::error::Error::source(status) {
        Some(source) => why::tls_error_text(source).is_none(),
        None => matches!(status.code(), Code::Cancelled | Code::DeadlineExceeded),
    }
}

/// The innermost cause: the outer layers only say that something went wrong.
fn deepest(error: &(dyn std::error::Error + 'static)) -> String {
    let mut error = error;
    while let Some(source) = error.source() {
        error = source;
    }
    error.to_string()
}

fn check_resolves(uri: &Uri) -> Result<(), String> {
    let host = uri.host().filter(|host| !host.is_empty()).ok_or("the host is missing")?;
    let port =
        uri.port_u16().filter(|port| *port != 0).ok_or("the port is missing, or not one of 1 to 65535")?;
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    match (bare, port).to_socket_addrs() {
        Ok(mut found) => found.next().map(|_| ()).ok_or_else(|| format!("{bare} has no address")),
        Err(why) => Err(format!("{bare} does not resolve: {why}")),
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use tokio::runtime::Builder;

    use super::*;
    use crate::v1::StandingRequest;
    use crate::v1::controller_client::ControllerClient;

    fn error(text: &str) -> String {
        Remote::new(text, None).unwrap_err().to_string()
    }

    /// A peer that accepts connections and says nothing, as a process that stands still.
    #[test]
    fn a_silent_peer_is_given_up_with_and_without_tls_and_the_next_is_called() {
        let runtime = Builder::new_current_thread().enable_all().build().unwrap();
        let certificate = rcgen::generate_simple_self_signed(vec!["127.0.0.1".to_owned()]).unwrap();
        let tls = ClientTls::new(certificate.cert.pem().as_bytes());
        for tls in [None, Some(&tls)] {
            let silent = [(); 2].map(|()| TcpListener::bind("127.0.0.1:0").unwrap());
            let at =
                |silent: &TcpListener| Remote::new(&silent.local_addr().unwrap().to_string(), tls).unwrap();
            let remote = Remote::any_of(&silent.each_ref().map(at));
            for next in [1, 0] {
                let called = runtime.block_on(async {
                    ControllerClient::new(remote.connect()).standing(StandingRequest {}).await
                });
                let why = called.unwrap_err();
                assert!(is_silence(&why), "{why:?}");
                assert_eq!(remote.addresses.here(), next, "{why:?}");
            }
        }
    }

    #[test]
    fn a_bare_address_is_taken_as_http() {
        assert_eq!(Remote::new("127.0.0.1:7000", None).unwrap().url(), "http://127.0.0.1:7000");
        assert_eq!(Remote::new("[::1]:7000", None).unwrap().url(), "http://[::1]:7000");
    }

    #[test]
    fn an_address_without_a_usable_port_is_refused() {
        for text in ["127.0.0.1", "127.0.0.1:0", "http://127.0.0.1"] {
            assert!(error(text).contains("port"), "{text}: {}", error(text));
        }
        assert!(error("127.0.0.1:70000").contains("127.0.0.1:70000"));
    }

    #[test]
    fn https_without_an_authority_is_refused() {
        assert!(error("https://127.0.0.1:7000").contains("authority"));
    }

    #[test]
    fn another_scheme_is_refused() {
        assert!(error("udp://127.0.0.1:7000").contains("neither"));
    }

    #[test]
    fn a_host_that_does_not_resolve_is_refused() {
        assert!(error("no-such-host.invalid:7000").contains("does not resolve"));
    }
}
