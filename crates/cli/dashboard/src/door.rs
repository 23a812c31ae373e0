//! Which requests are let in. The page must not become a way for other pages in the same browser: a request
//! has to call the page by a name of its own (else a name that somebody resolves to this machine would
//! read it: DNS rebinding), and a change has to come from the page itself.

use std::net::Ipv4Addr;

use hyper::header::{CONTENT_TYPE, HOST, HeaderName, ORIGIN};
use hyper::{HeaderMap, StatusCode};
use sluice_rpc::RenewedTls;

use crate::visitor::PageRefusal;

/// Where a browser says from which page a request comes.
const FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

/// Checks that the request calls the page by a name of this machine's loopback, or by one in its
/// certificate.
pub(crate) fn check_host(headers: &HeaderMap, tls: Option<&RenewedTls>) -> Result<(), PageRefusal> {
    let host = one(headers, &HOST).ok_or_else(|| {
        PageRefusal::new(StatusCode::BAD_REQUEST, "a request has one Host: the name or address of this page")
    })?;
    let name = without_port(host);
    let is_ours = match tls {
        Some(tls) => tls.is_for(name),
        None => is_loopback(name),
    };
    if is_ours {
        return Ok(());
    }
    let by = match tls {
        Some(_) => "a name or an address in its certificate",
        None => "localhost, 127.0.0.1 or [::1]",
    };
    let host = sluice_units::shown(host);
    let why = format!("this page is not called {host}: call it by {by}");
    Err(PageRefusal::new(StatusCode::MISDIRECTED_REQUEST, why))
}

/// Checks that a change comes from the page itself, or from a program that is no browser.
pub(crate) fn check_origin(headers: &HeaderMap, is_tls: bool) -> Result<(), PageRefusal> {
    let scheme = if is_tls { "https" } else { "http" };
    let own = one(headers, &HOST).map(|host| format!("{scheme}://{host}"));
    let from_elsewhere = headers.contains_key(ORIGIN) && one(headers, &ORIGIN) != own.as_deref()
        || headers.contains_key(FETCH_SITE) && one(headers, &FETCH_SITE) != Some("same-origin");
    if from_elsewhere {
        let why = "a change has to come from this page itself, and this one comes from another";
        return Err(PageRefusal::new(StatusCode::FORBIDDEN, why));
    }
    // A form of another page cannot send this type.
    let is_json = one(headers, &CONTENT_TYPE)
        .and_then(|kind| kind.split(';').next())
        .is_some_and(|kind| kind.trim().eq_ignore_ascii_case("application/json"));
    if is_json {
        return Ok(());
    }
    let why = "a change is JSON: send it with Content-Type: application/json";
    Err(PageRefusal::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, why))
}

/// The value of a header that is there once.
fn one<'h>(headers: &'h HeaderMap, name: &HeaderName) -> Option<&'h str> {
    let mut all = headers.get_all(name).iter();
    let only = all.next().filter(|_| all.next().is_none());
    only.and_then(|value| value.to_str().ok())
}

/// A host without its port; an IPv6 address without its brackets.
fn without_port(host: &str) -> &str {
    match host.strip_prefix('[') {
        Some(rest) => rest.split(']').next().unwrap_or(rest),
        None => host.split(':').next().unwrap_or(host),
    }
}

fn is_loopback(name: &str) -> bool {
    name.eq_ignore_ascii_case("localhost")
        || name == "::1"
        || name.parse::<Ipv4Addr>().is_ok_and(|address| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use hyper::header::HeaderValue;

    use super::*;

    fn headers(all: &[(&'static str, &str)]) -> HeaderMap {
        let pair = |(name, value): &(&'static str, &str)| {
            (HeaderName::from_static(name), HeaderValue::from_str(value).expect("a value"))
        };
        let mut headers = HeaderMap::new();
        all.iter().map(pair).for_each(|(name, value)| {
            headers.append(name, value);
        });
        headers
    }

    #[test]
    fn only_names_of_the_loopback_are_this_pages_without_a_certificate() {
        for own in ["localhost", "LOCALHOST:7410", "127.0.0.1:7410", "127.9.9.9", "[::1]:1", "[::1]"] {
            assert!(check_host(&headers(&[("host", own)]), None).is_ok(), "{own}");
        }
        for other in [
            "evil.example",
            "localhost.evil.example",
            "127.0.0.1.evil.example",
            "10.0.0.1",
            "0.0.0.0",
            "2130706433",
            "0x7f.1",
            "[::]",
            "",
            "user@127.0.0.1",
        ] {
            let refused = check_host(&headers(&[("host", other)]), None).expect_err(other);
            assert_eq!(refused.status, StatusCode::MISDIRECTED_REQUEST);
        }
        assert!(check_host(&headers(&[]), None).is_err());
        assert!(check_host(&headers(&[("host", "localhost"), ("host", "evil.example")]), None).is_err());
    }

    #[test]
    fn a_change_comes_from_the_page_itself_or_from_no_page() {
        let json = ("content-type", "application/json; charset=utf-8");
        let host = ("host", "localhost:7410");
        let own = ("origin", "http://localhost:7410");
        let same = ("sec-fetch-site", "same-origin");
        for well in [vec![host, json], vec![host, json, own], vec![host, json, own, same]] {
            assert!(check_origin(&headers(&well), false).is_ok(), "{well:?}");
        }
        for elsewhere in [
            vec![host, json, ("origin", "http://evil.example")],
            vec![host, json, ("origin", "null")],
            vec![host, json, ("origin", "http://localhost:7411")],
            vec![host, json, ("origin", "https://localhost:7410")],
            vec![host, json, own, ("sec-fetch-site", "cross-site")],
            vec![host, json, own, ("sec-fetch-site", "same-site")],
            vec![host, json, own, ("sec-fetch-site", "none")],
            vec![host, json, own, own],
        ] {
            assert!(check_origin(&headers(&elsewhere), false).is_err(), "{elsewhere:?}");
        }
        for form in ["application/x-www-form-urlencoded", "text/plain", "multipart/form-data", ""] {
            let refused = check_origin(&headers(&[host, own, ("content-type", form)]), false);
            assert_eq!(refused.expect_err(form).status, StatusCode::UNSUPPORTED_MEDIA_TYPE);
        }
    }
}
