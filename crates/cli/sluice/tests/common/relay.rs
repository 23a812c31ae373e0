//! A relay of TCP connections, as a network between two processes that can be cut.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::thread;
use std::time::Duration;

/// How often a connection that waits looks again.
const LOOK_EVERY: Duration = Duration::from_millis(5);

/// What happens to connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cut {
    /// They are passed on.
    None = 0,
    /// They are accepted, and nothing that is said on them arrives before the cut heals.
    Silent = 1,
    /// They are closed.
    Closed = 2,
    /// What callers say arrives, and no answer does.
    Deaf = 3,
}

/// A relay that runs until the test ends.
pub(crate) struct Relay {
    at: SocketAddr,
    cut: Arc<AtomicU8>,
}

impl Relay {
    /// A relay in front of `to`.
    pub(crate) fn start(to: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let relay =
            Self { at: listener.local_addr().expect("it is bound"), cut: Arc::new(AtomicU8::default()) };
        let cut = Arc::clone(&relay.cut);
        thread::spawn(move || {
            for caller in listener.incoming().flatten() {
                let cut = Arc::clone(&cut);
                thread::spawn(move || connect(caller, to, &cut));
            }
        });
        relay
    }

    pub(crate) fn at(&self) -> SocketAddr {
        self.at
    }

    pub(crate) fn cut(&self, cut: Cut) {
        self.cut.store(cut as u8, Ordering::Relaxed);
    }
}

/// Waits until the network is no longer silent; returns whether it passes bytes on.
fn passes(cut: &AtomicU8, are_answers: bool) -> bool {
    loop {
        match cut.load(Ordering::Relaxed) {
            now if now == Cut::None as u8 => return true,
            now if now == Cut::Closed as u8 => return false,
            now if now == Cut::Deaf as u8 && !are_answers => return true,
            _ => thread::sleep(LOOK_EVERY),
        }
    }
}

fn connect(caller: TcpStream, to: SocketAddr, cut: &Arc<AtomicU8>) {
    if !passes(cut, false) {
        return;
    }
    // A caller of a process that does not run sees its connection closed.
    let Ok(called) = TcpStream::connect(to) else { return };
    let both = [&caller, &called].map(|end| end.try_clone().expect("a descriptor"));
    let [from_caller, to_called] = both;
    let theirs = Arc::clone(cut);
    thread::spawn(move || pass_on(from_caller, to_called, &theirs, false));
    pass_on(called, caller, cut, true);
}

/// Passes bytes on in one direction until an end closes.
fn pass_on(mut from: TcpStream, mut to: TcpStream, cut: &AtomicU8, are_answers: bool) {
    // So that a connection on which nothing is said is closed with the others.
    from.set_read_timeout(Some(LOOK_EVERY)).expect("a span");
    let mut bytes = [0; 16_384];
    loop {
        let read = from.read(&mut bytes);
        if !passes(cut, are_answers) {
            break;
        }
        match read {
            Ok(0) => break,
            Ok(length) if to.write_all(&bytes[..length]).is_ok() => {}
            Err(why) if matches!(why.kind(), std::io::ErrorKind::WouldBlock) => {}
            Ok(_) | Err(_) => break,
        }
    }
    // The other end may have closed first.
    for end in [from, to] {
        end.shutdown(Shutdown::Both).unwrap_or_default();
    }
}
