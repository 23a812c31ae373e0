//! A rack of another version, with which the library has none in common: an error value and one line.

use std::convert::Infallible;
use std::future::{Ready, ready};
use std::net::TcpListener;
use std::task::{Context, Poll};
use std::thread;

use sluice::{SluiceClient, SluiceStatus, sluice_client_connect};
use tokio_stream::wrappers::TcpListenerStream;
use tonic::Status;
use tonic::body::Body;
use tonic::codegen::Service;
use tonic::codegen::http::{HeaderValue, Request, Response};
use tonic::server::NamedService;
use tonic::transport::Server;

use super::common::calls::{last, options};

#[test]
fn a_rack_of_another_version_turns_a_client_away_in_one_line() {
    let at = serve_newer();
    let options = options(&[("controller", &at), ("patience", "60s")]);
    let mut client = SluiceClient { id: 7 };
    // SAFETY: the arguments are sound.
    let status = unsafe { sluice_client_connect(options, &raw mut client) };
    let line = last();
    assert_eq!((status, client.id), (SluiceStatus::TurnedAway, 0), "{line}");
    for part in ["Sluice 0.9.0 (protocol 8 to 9)", "no version in common", "replace this process by a build"]
    {
        assert!(line.contains(part) && !line.contains('\n'), "{line}");
    }
}

/// Serves what a newer controller says until the test's process ends. Returns its address.
fn serve_newer() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    listener.set_nonblocking(true).expect("a socket");
    let at = listener.local_addr().expect("it is bound").to_string();
    thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        runtime.block_on(async {
            let listener = tokio::net::TcpListener::from_std(listener).expect("a port");
            let server = Server::builder().add_service(NewerController);
            server.serve_with_incoming(TcpListenerStream::new(listener)).await.expect("it serves");
        });
    });
    at
}

/// A controller that does not speak this library's version.
#[derive(Clone)]
struct NewerController;

impl NamedService for NewerController {
    const NAME: &'static str = "sluice.v1.Controller";
}

impl Service<Request<Body>> for NewerController {
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Ready<Result<Response<Body>, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Request<Body>) -> Self::Future {
        let mut answer = Status::failed_precondition("in words of a later version").into_http();
        answer.headers_mut().insert("sluice-speaks", HeaderValue::from_static("8-9"));
        answer.headers_mut().insert("sluice-build", HeaderValue::from_static("0.9.0"));
        ready(Ok(answer))
    }
}
