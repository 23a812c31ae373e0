//! Checks when the certificates in the flags end.

use sluice_rpc::{ClientTls, ENDS_SOON, Ends, RpcError, ServerTls, end_text};

use super::check::Check;
use crate::args::DoctorArgs;

const WHAT: &str = "certificate";

/// A check for each certificate, or one check with the error.
pub(super) fn checks(args: &DoctorArgs) -> Vec<Check> {
    let all = [shown(args), served(args)].into_iter();
    all.flat_map(|ends| match ends {
        Ok(ends) => ends.into_iter().map(check).collect(),
        Err(why) => vec![Check::fail(WHAT, "none that can be used", why.to_string())],
    })
    .collect()
}

fn shown(args: &DoctorArgs) -> Result<Ends, RpcError> {
    let Some(ca) = &args.tls.ca else { return Ok(Vec::new()) };
    let identity = match args.tls.identity.as_deref() {
        Some([certificate, key]) => Some((certificate.as_path(), key.as_path())),
        _ => None,
    };
    ClientTls::from_files(ca, identity)?.ends()
}

fn served(args: &DoctorArgs) -> Result<Ends, RpcError> {
    let Some([certificate, key]) = args.guard.certificate.as_deref() else { return Ok(Vec::new()) };
    Ok(ServerTls::from_files(certificate, key, args.guard.client_ca.as_deref())?.renewed()?.ends())
}

fn check((which, end): (String, std::time::SystemTime)) -> Check {
    let next = "put a new one in its place, and its key; who runs reads it by itself, or at SIGHUP";
    let days = ENDS_SOON.as_secs() / 86_400;
    match end_text(end) {
        None => Check::ok(WHAT, format!("{which} lasts for more than {days} days")),
        Some(told) if end < std::time::SystemTime::now() => {
            Check::fail(WHAT, format!("{which} {told}"), next)
        }
        Some(told) => Check::warn(WHAT, format!("{which} {told}"), next),
    }
}
