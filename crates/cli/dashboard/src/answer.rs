//! What the page's requests are answered with.

use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use http_body_util::{BodyExt, Full, Limited};
use hyper::body::{Bytes, Incoming};
use hyper::header::{
    ALLOW, CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HeaderName, HeaderValue, REFERRER_POLICY,
    X_CONTENT_TYPE_OPTIONS, X_FRAME_OPTIONS,
};
use hyper::{Method, Request, Response, StatusCode};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use sluice_rpc::RenewedTls;

use crate::assets;
use crate::door::{check_host, check_origin};
use crate::shown::ShownPage;
use crate::visitor::{PageRefusal, Visitor};

/// The most bytes of a change, and how long they may take.
const BODY_BYTES_MAX: usize = 4 * 1_024;
const BODY_PATIENCE: Duration = Duration::from_secs(5);

const PLAIN: &str = "text/plain; charset=utf-8";
/// Nothing but the page's own files; no other page may frame it.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; \
                      connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// A worker is to serve another slice.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct MoveRequest {
    /// The number of the controller, as in `state.json`.
    controller: usize,
    worker: String,
    slice: String,
}

/// A type is to go to another slice, or to none.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct MapRequest {
    controller: usize,
    #[serde(rename = "type")]
    task_type: String,
    slice: Option<String>,
}

type Answer = Response<Full<Bytes>>;

/// Answers requests.
pub(crate) struct Desk {
    pub(crate) tls: Option<Arc<RenewedTls>>,
    pub(crate) shown: Rc<ShownPage>,
}

impl Desk {
    /// Answers one request of a visitor.
    pub(crate) async fn answer(&self, request: Request<Incoming>, visitor: &Visitor) -> Answer {
        let mut answer = match self.answered(request, visitor).await {
            Ok(answer) => answer,
            Err(refused) => {
                let mut answer = of(PLAIN, format!("{}\n", refused.why));
                *answer.status_mut() = refused.status;
                answer
            }
        };
        let headers = answer.headers_mut();
        for (name, value) in [
            (CONTENT_SECURITY_POLICY, POLICY),
            (X_CONTENT_TYPE_OPTIONS, "nosniff"),
            (X_FRAME_OPTIONS, "DENY"),
            (REFERRER_POLICY, "no-referrer"),
            (CACHE_CONTROL, "no-store"),
            (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
            (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
        ] {
            headers.insert(name, HeaderValue::from_static(value));
        }
        if answer.status() == StatusCode::METHOD_NOT_ALLOWED {
            answer.headers_mut().insert(ALLOW, HeaderValue::from_static("GET, HEAD, POST"));
        }
        answer
    }

    async fn answered(&self, request: Request<Incoming>, visitor: &Visitor) -> Result<Answer, PageRefusal> {
        check_host(request.headers(), self.tls.as_deref())?;
        visitor.may_look()?;
        let path = request.uri().path().to_owned();
        let is_change = ["/move", "/map"].contains(&path.as_str());
        match request.method() {
            &Method::GET | &Method::HEAD if !is_change => self.page(&path, visitor),
            &Method::POST if is_change => {
                visitor.may_change()?;
                check_origin(request.headers(), self.tls.is_some())?;
                self.changed(&path, request.into_body(), visitor).await
            }
            _ => Err(PageRefusal::new(
                StatusCode::METHOD_NOT_ALLOWED,
                "the page is read with GET or HEAD, and /move and /map take POST",
            )),
        }
    }

    fn page(&self, path: &str, visitor: &Visitor) -> Result<Answer, PageRefusal> {
        if let Some(asset) = assets::asset(path) {
            return Ok(of(asset.media, asset.parts.concat()));
        }
        if path == "/state.json" {
            return Ok(of("application/json", self.shown.state(visitor).to_string()));
        }
        if let Some(piece) = self.shown.piece(path) {
            return Ok(of("text/html; charset=utf-8", piece));
        }
        Err(PageRefusal::new(StatusCode::NOT_FOUND, "there is no such page: the dashboard is at /"))
    }

    async fn changed(&self, path: &str, body: Incoming, visitor: &Visitor) -> Result<Answer, PageRefusal> {
        let done = if path == "/move" {
            let MoveRequest { controller, worker, slice } = read(body).await?;
            self.shown.move_worker(controller, &worker, &slice).await
        } else {
            let MapRequest { controller, task_type, slice } = read(body).await?;
            self.shown.map_type(controller, &task_type, slice.as_deref()).await
        };
        let who = visitor.name().unwrap_or("somebody on this machine");
        match done {
            Ok(done) => {
                sluice_log::log!(
                    PageChanged,
                    who = who.to_string(),
                    "{who}, at the dashboard: {}",
                    done.text
                );
                let warning = done.warning.map_or_else(String::new, |warning| format!("; {warning}"));
                Ok(of(PLAIN, format!("{}{warning}\n", done.text)))
            }
            Err(why) => Err(PageRefusal::new(StatusCode::CONFLICT, why.to_string())),
        }
    }
}

async fn read<T: DeserializeOwned>(body: Incoming) -> Result<T, PageRefusal> {
    let whole = Limited::new(body, BODY_BYTES_MAX).collect();
    let whole = tokio::time::timeout(BODY_PATIENCE, whole).await;
    let whole = whole
        .map_err(|_| PageRefusal::new(StatusCode::REQUEST_TIMEOUT, "the change did not come in time"))?;
    let whole = whole.map_err(|why| {
        let why = format!("the change cannot be read: {why}; it has at most {BODY_BYTES_MAX} bytes");
        PageRefusal::new(StatusCode::PAYLOAD_TOO_LARGE, why)
    })?;
    serde_json::from_slice(&whole.to_bytes()).map_err(|why| {
        let why = sluice_units::shown(&format!("{why}"));
        PageRefusal::new(StatusCode::BAD_REQUEST, format!("the change is not what is taken here: {why}"))
    })
}

fn of(media: &'static str, text: String) -> Answer {
    let mut answer = Response::new(Full::new(Bytes::from(text)));
    answer.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(media));
    answer
}
