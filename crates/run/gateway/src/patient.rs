//! A connection whose other end has to read: one that takes nothing for a while is given up.

use std::future::Future as _;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, ReadBuf};
use tokio::time::{Sleep, sleep};

/// How long a connection may take nothing of what it is sent.
pub(crate) const UNREAD_PATIENCE: Duration = Duration::from_secs(30);

/// How long and how many bytes are read of who is sent away, so that he can read why.
pub(crate) const FAREWELL: Duration = Duration::from_millis(500);
const FAREWELL_BYTES: usize = 4 << 20;

/// The connection.
pub(crate) struct Patient<S> {
    stream: S,
    /// When its end has been waited for long enough, while it is waited for.
    until: Option<Pin<Box<Sleep>>>,
}

impl<S> Patient<S> {
    pub(crate) const fn new(stream: S) -> Self {
        Self { stream, until: None }
    }

    /// Looks at what a write came to.
    fn watched<T>(&mut self, context: &mut Context<'_>, written: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        if written.is_ready() {
            self.until = None;
            return written;
        }
        let until = self.until.get_or_insert_with(|| Box::pin(sleep(UNREAD_PATIENCE)));
        ready!(until.as_mut().poll(context));
        Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Patient<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, into)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Patient<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.watched(context, written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(context, bytes);
        self.watched(context, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = Pin::new(&mut self.stream).poll_flush(context);
        self.watched(context, flushed)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

/// Keeps a connection open until the other end could read why it is sent away.
pub(crate) async fn part(mut stream: impl AsyncRead + AsyncWrite + Unpin) {
    if stream.shutdown().await.is_err() {
        return;
    }
    let (mut unread, mut left) = ([0; 4_096], FAREWELL_BYTES);
    while let Ok(read @ 1..) = stream.read(&mut unread).await {
        left = left.saturating_sub(read);
        if left == 0 {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::duplex;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn who_never_reads_is_given_up_and_who_reads_slowly_is_not() {
        let (ours, mut theirs) = duplex(4);
        let mut ours = Patient::new(ours);
        ours.write_all(b"abcd").await.expect("there is room");
        let slow = tokio::spawn(async move {
            for _ in 0..3 {
                sleep(UNREAD_PATIENCE / 2).await;
                theirs.read_u8().await.expect("a byte");
            }
            theirs
        });
        ours.write_all(b"efg").await.expect("it is read");
        let _theirs = slow.await.expect("it ends");
        let why = ours.write_all(b"h").await.expect_err("nobody reads it");
        assert_eq!(why.kind(), io::ErrorKind::TimedOut);
    }
}
