//! gRPC: unary calls of methods that are mapped to types. A call's message is the task's bytes, and the
//! reply's bytes are its answer; the gateway looks into neither.

use std::collections::HashMap;
use std::future::Future;
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::str::FromStr;
use std::time::Duration;

use bytes::{Buf as _, BufMut as _, Bytes};
use http::request::Parts;
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::rt::{Read, Write};
use hyper::server::conn::http2;
use hyper::service::service_fn;
use hyper::{HeaderMap, Request};
use hyper_util::rt::TokioTimer;
use sluice_net::TaskType;
use sluice_wire::TASK_BYTES_MAX;
use tonic::body::Body;
use tonic::codec::{Codec, DecodeBuf, Decoder, EncodeBuf, Encoder};
use tonic::server::{Grpc, UnaryService};
use tonic::{Code, Response, Status};

use crate::GatewayError;
use crate::counts::Protocol;
use crate::hall::Hall;
use crate::outcome::{NotDone, NotDoneKind};
use crate::rack::{GatewayRack, TaskLimits};
use crate::request::{BUDGET, DEADLINE_MAX, NoBody, body, discard, span_of};

/// How many calls of a connection are under way at once.
const STREAMS_MAX: u32 = 128;
/// The most bytes that a call's headers may have.
const HEADERS_MAX: u32 = 16 * 1_024;
/// How often a connection is asked whether it lives, and how long it may take to answer.
const PING_EVERY: Duration = Duration::from_secs(30);
const PING_PATIENCE: Duration = Duration::from_secs(20);
/// The bytes before a message: whether it is compressed, and its length.
const MESSAGE_HEAD_BYTES: usize = 5;

/// A method of a gRPC service, and the type of its tasks: `/pkg.Service/Method=TYPE`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GrpcMethod {
    path: String,
    task_type: String,
}

impl FromStr for GrpcMethod {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let help = "write /PACKAGE.SERVICE/METHOD=TYPE";
        let (path, task_type) = text.split_once('=').ok_or_else(|| format!("no type: {help}"))?;
        let mut parts = path.split('/');
        let is_path = parts.next() == Some("")
            && [parts.next(), parts.next()].into_iter().all(|part| part.is_some_and(|part| !part.is_empty()))
            && parts.next().is_none();
        let is_plain = path.bytes().all(|letter| letter.is_ascii_graphic());
        if !is_path || !is_plain || task_type.is_empty() {
            return Err(format!("`{}` is no method with a type: {help}", text.escape_debug()));
        }
        Ok(Self { path: path.to_owned(), task_type: task_type.to_owned() })
    }
}

/// The types of methods, by their names or numbers in the rack's plan.
pub(crate) fn types_of(
    methods: &[GrpcMethod],
    rack: &GatewayRack,
) -> Result<HashMap<String, TaskType>, GatewayError> {
    let mut types = HashMap::new();
    for GrpcMethod { path, task_type } in methods {
        let unknown = || GatewayError::UnknownType { path: path.clone(), task_type: task_type.clone() };
        let of = rack.type_of(task_type).ok_or_else(unknown)?;
        if types.insert(path.clone(), of).is_some_and(|other| other != of) {
            return Err(GatewayError::TwoTypes { path: path.clone() });
        }
    }
    Ok(types)
}

/// Answers calls until the connection ends. `refused` says why all of them are refused.
pub(crate) async fn converse(
    stream: impl Read + Write + Unpin + 'static,
    hall: Rc<Hall>,
    refused: Option<String>,
) {
    let refused = Rc::new(refused);
    let answers = service_fn(|request: Request<Incoming>| {
        let (hall, refused) = (Rc::clone(&hall), Rc::clone(&refused));
        async move { Ok::<_, std::convert::Infallible>(answer(request, hall, refused).await) }
    });
    let served = http2::Builder::new(OwnThread)
        .timer(TokioTimer::new())
        .max_concurrent_streams(STREAMS_MAX)
        .max_header_list_size(HEADERS_MAX)
        .max_send_buf_size(TASK_BYTES_MAX as usize)
        .keep_alive_interval(PING_EVERY)
        .keep_alive_timeout(PING_PATIENCE)
        .serve_connection(stream, answers);
    let mut served = pin!(served);
    // A caller that hangs up or speaks no HTTP/2 is no event for this process.
    tokio::select! {
        _ = served.as_mut() => return,
        () = hall.drains() => served.as_mut().graceful_shutdown(),
    }
    served.await.ok();
}

/// Runs the calls of a connection on the gateway's own thread.
#[derive(Clone, Copy, Debug)]
struct OwnThread;

impl<F: Future + 'static> hyper::rt::Executor<F> for OwnThread {
    fn execute(&self, call: F) {
        tokio::task::spawn_local(call);
    }
}

async fn answer(
    request: Request<Incoming>,
    hall: Rc<Hall>,
    refused: Rc<Option<String>>,
) -> http::Response<Body> {
    let (head, sent) = request.into_parts();
    let checked = match checked(&head, &hall, refused.as_deref()) {
        Ok(checked) => body(sent, MESSAGE_HEAD_BYTES + TASK_BYTES_MAX as usize)
            .await
            .map(|bytes| (checked, bytes))
            .map_err(no_message),
        Err(status) => {
            discard(&head.headers, sent).await;
            Err(status)
        }
    };
    match checked {
        Ok(((of, limits), bytes)) => {
            let call = OpaqueCall { hall, of, limits };
            let mut grpc = Grpc::new(OpaqueCodec).max_decoding_message_size(TASK_BYTES_MAX as usize);
            grpc.unary(call, Request::from_parts(head, Full::new(Bytes::from(bytes)))).await
        }
        Err(status) => {
            hall.malformed(Protocol::Grpc);
            status.into_http()
        }
    }
}

fn no_message(why: NoBody) -> Status {
    match why {
        NoBody::TooLong => status(&NotDone::too_long()),
        NoBody::Slow => Status::unavailable(format!("it did not run: {why}")),
        NoBody::Broken => Status::invalid_argument(why.to_string()),
    }
}

/// What task a call is, but for its bytes.
fn checked(head: &Parts, hall: &Hall, refused: Option<&str>) -> Result<(TaskType, TaskLimits), Status> {
    if let Some(why) = refused {
        return Err(Status::permission_denied(why));
    }
    let path = head.uri.path();
    let of = hall.method(path).ok_or_else(|| {
        let path = sluice_units::shown(path);
        Status::unimplemented(format!("{path} is mapped to no type: start the gateway with --grpc-map"))
    })?;
    let budget = span_of(&head.headers, &BUDGET).map_err(Status::invalid_argument)?;
    let deadline = timeout_of(&head.headers)?.map(|deadline| deadline.min(DEADLINE_MAX));
    Ok((of, TaskLimits { deadline, budget }))
}

/// How long the caller waits: `grpc-timeout`.
fn timeout_of(headers: &HeaderMap) -> Result<Option<Duration>, Status> {
    let Some(value) = headers.get("grpc-timeout") else { return Ok(None) };
    let malformed = || Status::invalid_argument("grpc-timeout is no number of at most 8 digits and a unit");
    let (unit, digits) = value.as_bytes().split_last().ok_or_else(malformed)?;
    if digits.is_empty() || digits.len() > 8 || !digits.iter().all(u8::is_ascii_digit) {
        return Err(malformed());
    }
    let number = digits.iter().fold(0, |number, digit| number * 10 + u64::from(digit - b'0'));
    Ok(Some(match unit {
        b'H' => Duration::from_secs(number * 3_600),
        b'M' => Duration::from_secs(number * 60),
        b'S' => Duration::from_secs(number),
        b'm' => Duration::from_millis(number),
        b'u' => Duration::from_micros(number),
        b'n' => Duration::from_nanos(number),
        _ => return Err(malformed()),
    }))
}

/// A call whose message nobody reads here.
struct OpaqueCall {
    hall: Rc<Hall>,
    of: TaskType,
    limits: TaskLimits,
}

impl UnaryService<Bytes> for OpaqueCall {
    type Response = Bytes;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Bytes>, Status>>>>;

    fn call(&mut self, request: tonic::Request<Bytes>) -> Self::Future {
        let (hall, of, limits) = (Rc::clone(&self.hall), self.of, self.limits);
        Box::pin(async move {
            let done = hall.run(Protocol::Grpc, of, request.get_ref(), limits).await;
            done.map(|reply| Response::new(Bytes::from(reply))).map_err(|why| status(&why))
        })
    }
}

/// A task without a good reply as gRPC tells it. A caller may try again what is unavailable, since it did not
/// run.
fn status(why: &NotDone) -> Status {
    let code = match (why.kind, why.word) {
        (NotDoneKind::Busy, _) => Code::ResourceExhausted,
        (NotDoneKind::NotNow, _) => Code::Unavailable,
        (NotDoneKind::Never, "no-slice") => Code::Unimplemented,
        (NotDoneKind::Never, _) => Code::InvalidArgument,
        (NotDoneKind::Unknown, "deadline") => Code::DeadlineExceeded,
        (NotDoneKind::Unknown, _) => Code::Unknown,
        (NotDoneKind::Failed, _) => Code::Internal,
    };
    let text = if why.kind == NotDoneKind::Failed { why.text.clone() } else { why.to_string() };
    let mut status = Status::new(code, text);
    let word = why.word.parse().expect("a word of ours");
    status.metadata_mut().insert("sluice-why", word);
    status
}

/// Messages as the bytes that they are, for either end of a call.
#[derive(Clone, Copy, Debug, Default)]
pub struct OpaqueCodec;

impl Codec for OpaqueCodec {
    type Encode = Bytes;
    type Decode = Bytes;
    type Encoder = Self;
    type Decoder = Self;

    fn encoder(&mut self) -> Self {
        *self
    }

    fn decoder(&mut self) -> Self {
        *self
    }
}

impl Encoder for OpaqueCodec {
    type Item = Bytes;
    type Error = Status;

    fn encode(&mut self, message: Bytes, to: &mut EncodeBuf<'_>) -> Result<(), Status> {
        to.put(message);
        Ok(())
    }
}

impl Decoder for OpaqueCodec {
    type Item = Bytes;
    type Error = Status;

    fn decode(&mut self, from: &mut DecodeBuf<'_>) -> Result<Option<Bytes>, Status> {
        Ok(Some(from.copy_to_bytes(from.remaining())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_method_has_a_service_and_a_type() {
        let method = "/pkg.Words/Reverse=reverse".parse::<GrpcMethod>().expect("a method");
        assert_eq!((method.path.as_str(), method.task_type.as_str()), ("/pkg.Words/Reverse", "reverse"));
        for wrong in ["", "/a/b", "a/b=1", "/a=1", "/a/b/c=1", "//b=1", "/a/=1", "/a/b=", "/a/b c=1"] {
            assert!(wrong.parse::<GrpcMethod>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_timeout_is_a_number_with_a_unit() {
        let read = |text: &str| {
            let mut headers = HeaderMap::new();
            headers.insert("grpc-timeout", text.parse().expect("a value"));
            timeout_of(&headers).ok().flatten()
        };
        for (text, span) in [
            ("1H", Duration::from_hours(1)),
            ("2M", Duration::from_mins(2)),
            ("3S", Duration::from_secs(3)),
            ("99999999m", Duration::from_millis(99_999_999)),
            ("5u", Duration::from_micros(5)),
            ("6n", Duration::from_nanos(6)),
        ] {
            assert_eq!(read(text), Some(span), "{text}");
        }
        for wrong in ["", "S", "1", "1s", "123456789S", "-1S", "1.5S", "1 S"] {
            assert_eq!(read(wrong), None, "{wrong}");
        }
    }
}
