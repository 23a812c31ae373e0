//! Connections that speak RESP, on the gateway's thread: each is a task of its runtime, and one more hands
//! out what has ended, a batch at a time.

use std::future::poll_fn;
use std::io;
use std::os::fd::OwnedFd;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use sluice_net::client::Completed;
use tokio::io::unix::AsyncFd;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt as _, Interest, ReadBuf};
use tokio::time::timeout;

use crate::GatewayError;
use crate::hall::Hall;
use crate::patient::{FAREWELL, part};
use crate::resp::{Paused, RespSession};
use crate::talk::Talk;

/// How many ended tasks are handed out at once.
const BATCH: usize = 512;
/// How many commands of a connection are taken before others have their turn.
const TURN: usize = 128;

/// What tells that tasks have ended.
pub(crate) fn outcomes(hall: &Hall) -> Result<AsyncFd<OwnedFd>, GatewayError> {
    let failed = |why: io::Error| GatewayError::Thread { why };
    let event = hall.queue().edge_fd()?.try_clone_to_owned().map_err(failed)?;
    #[allow(deprecated, reason = "its successor is unsafe; what it asks for, an `OwnedFd` keeps")]
    AsyncFd::with_interest(event, Interest::READABLE).map_err(failed)
}

/// Hands out what has ended, until its runtime ends.
pub(crate) async fn hand_out(hall: Rc<Hall>, event: AsyncFd<OwnedFd>) -> io::Result<()> {
    let (mut batch, mut called) = (Vec::with_capacity(BATCH), Vec::new());
    loop {
        let mut ready = event.readable().await?;
        let ended = hall.queue().take(&mut batch, BATCH);
        if ended < BATCH {
            ready.clear_ready();
        }
        let now = hall.now();
        for Completed { tag, ended } in batch.drain(..) {
            let id = (tag >> 32) as u32;
            let Some(talk) = hall.talks().get(&id).cloned() else { continue };
            talk.session.borrow_mut().ended(&mut hall.desk(id, now), tag as u32, ended.outcome);
            if !talk.is_called.replace(true) {
                called.push(talk);
            }
        }
        for talk in called.drain(..) {
            talk.is_called.set(false);
            talk.wake();
        }
        hall.wake_waiting(ended);
        hall.counting().publish();
    }
}

/// How a connection ended.
enum End {
    /// All is answered.
    Well,
    /// The client is gone.
    Gone,
    /// The client did not read what it was sent.
    Unread,
}

/// Speaks with a client until one of both ends it.
pub(crate) async fn converse(mut stream: impl AsyncRead + AsyncWrite + Unpin, hall: Rc<Hall>) {
    let (id, talk) = hall.enter();
    let _left = LeaveHall { hall: &hall, id };
    let mut conversation = Conversation { hall: &hall, id, talk: &talk, is_closing: false };
    match poll_fn(|context| conversation.poll(context, &mut stream)).await {
        End::Well => {
            if let Some(why) = talk.session.borrow().malformed() {
                hall.counting().refused_frame(why);
                sluice_log::log!(
                    FrameRefused,
                    reason = why.name(),
                    "RESP: a client's bytes are no command: {why}"
                );
            }
            // Bytes that were not read would make the kernel throw away our last ones.
            timeout(FAREWELL, part(stream)).await.ok();
        }
        End::Unread => hall.counting().turned_away(crate::counts::TurnedAway::Unread),
        End::Gone => {}
    }
}

/// Tells a client why it may ask nothing, at its first command.
pub(crate) async fn refuse(mut stream: impl AsyncRead + AsyncWrite + Unpin, why: &str) {
    let told = format!("-NOPERM {why}\r\n");
    if stream.write_all(told.as_bytes()).await.is_ok() && stream.flush().await.is_ok() {
        timeout(FAREWELL, part(stream)).await.ok();
    }
}

struct LeaveHall<'h> {
    hall: &'h Hall,
    id: u32,
}

impl Drop for LeaveHall<'_> {
    fn drop(&mut self) {
        self.hall.leave(self.id);
    }
}

struct Conversation<'c> {
    hall: &'c Hall,
    id: u32,
    talk: &'c Talk,
    /// Whether nothing more is read.
    is_closing: bool,
}

impl Conversation<'_> {
    fn poll(
        &mut self,
        context: &mut Context<'_>,
        stream: &mut (impl AsyncRead + AsyncWrite + Unpin),
    ) -> Poll<End> {
        self.talk.listen(context);
        self.is_closing |= self.hall.is_draining();
        let mut session = self.talk.session.borrow_mut();
        let now = self.hall.now();
        let ended = loop {
            let paused = self.advance(&mut session, now);
            let sent = match write(context, &mut session, stream) {
                Ok(sent) => sent,
                Err(why) if why.kind() == io::ErrorKind::TimedOut => break Poll::Ready(End::Unread),
                Err(_) => break Poll::Ready(End::Gone),
            };
            match paused {
                Paused::Hungry if self.is_closing => {}
                Paused::Hungry => match read(context, &mut session, stream) {
                    Poll::Pending => break Poll::Pending,
                    Poll::Ready(Ok(0)) => {
                        self.is_closing = true;
                        continue;
                    }
                    Poll::Ready(Ok(_)) => continue,
                    Poll::Ready(Err(_)) => break Poll::Ready(End::Gone),
                },
                // What it waits for may be its client, who has read.
                Paused::Waits if sent => continue,
                Paused::Waits => break Poll::Pending,
                Paused::Turn => {
                    context.waker().wake_by_ref();
                    break Poll::Pending;
                }
                Paused::Full(task) => {
                    self.hall.wait(task, self.id);
                    break Poll::Pending;
                }
                Paused::Ending => {}
            }
            break if session.is_over() { Poll::Ready(End::Well) } else { Poll::Pending };
        };
        self.hall.count_unread(self.talk, session.unread());
        self.hall.counting().publish();
        ended
    }

    fn advance(&self, session: &mut RespSession, now: u64) -> Paused {
        if !self.hall.may_go_on(session.unread()) {
            return Paused::Waits;
        }
        let mut desk = self.hall.desk(self.id, now);
        if self.is_closing { session.close_input(&mut desk, TURN) } else { session.advance(&mut desk, TURN) }
    }
}

/// Sends what is there for the client; returns whether anything left.
fn write(
    context: &mut Context<'_>,
    session: &mut RespSession,
    stream: &mut (impl AsyncWrite + Unpin),
) -> io::Result<bool> {
    let mut sent = false;
    while !session.out().is_empty() {
        match Pin::new(&mut *stream).poll_write(context, session.out()) {
            Poll::Pending => return Ok(sent),
            Poll::Ready(Ok(0)) => return Err(io::ErrorKind::WriteZero.into()),
            Poll::Ready(Ok(count)) => session.sent(count),
            Poll::Ready(Err(why)) => return Err(why),
        }
        sent = true;
    }
    // Over TLS bytes may be taken and not have left.
    match Pin::new(stream).poll_flush(context) {
        Poll::Ready(Err(why)) => Err(why),
        Poll::Ready(Ok(())) | Poll::Pending => Ok(sent),
    }
}

fn read(
    context: &mut Context<'_>,
    session: &mut RespSession,
    stream: &mut (impl AsyncRead + Unpin),
) -> Poll<io::Result<usize>> {
    let mut room = ReadBuf::new(session.room());
    match Pin::new(stream).poll_read(context, &mut room) {
        Poll::Pending => Poll::Pending,
        Poll::Ready(Err(why)) => Poll::Ready(Err(why)),
        Poll::Ready(Ok(())) => {
            let count = room.filled().len();
            session.filled(count);
            Poll::Ready(Ok(count))
        }
    }
}
