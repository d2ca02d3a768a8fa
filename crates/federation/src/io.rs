//! Streams that count bytes, and streams that fail when heartbeats stop.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::watch;
use tokio::time::{Instant, Sleep};

/// Bytes received and sent.
#[derive(Debug, Default)]
pub struct Counts {
    pub received: AtomicU64,
    pub sent: AtomicU64,
}

/// A stream that counts its bytes.
pub struct CountedStream<S> {
    stream: S,
    counts: Arc<Counts>,
}

impl<S> CountedStream<S> {
    pub fn new(stream: S, counts: Arc<Counts>) -> Self {
        CountedStream { stream, counts }
    }

    pub fn get_ref(&self) -> &S {
        &self.stream
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for CountedStream<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let polled = Pin::new(&mut self.stream).poll_read(context, buffer);
        self.counts.received.fetch_add((buffer.filled().len() - before) as u64, Ordering::Relaxed);
        polled
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for CountedStream<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let polled = Pin::new(&mut self.stream).poll_write(context, bytes);
        if let Poll::Ready(Ok(count)) = &polled {
            self.counts.sent.fetch_add(*count as u64, Ordering::Relaxed);
        }
        polled
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

/// A stream that fails when nothing was received for too long. HTTP/2's own heartbeat only starts closing the
/// connection, which waits for a last frame to be sent; a cut connection may never take it.
pub struct Alive<S> {
    stream: S,
    limit: Duration,
    received: Instant,
    expiry: Pin<Box<Sleep>>,
    _open: watch::Sender<()>,
}

/// Resolves when the stream of a connection is dropped.
#[derive(Clone)]
pub struct Closed(watch::Receiver<()>);

impl Closed {
    /// Waits for it.
    pub async fn wait(&mut self) {
        // Nothing is ever sent.
        let _ = self.0.changed().await;
    }
}

impl<S> Alive<S> {
    /// Must be called within a runtime.
    pub fn new(stream: S, limit: Duration) -> (Self, Closed) {
        let (open, closed) = watch::channel(());
        let expiry = Box::pin(tokio::time::sleep(limit));
        (Alive { stream, limit, received: Instant::now(), expiry, _open: open }, Closed(closed))
    }

    /// Handles an operation that is not ready: it waits, or has waited too long.
    fn wait<T>(&mut self, context: &mut Context<'_>) -> Poll<io::Result<T>> {
        loop {
            ready!(self.expiry.as_mut().poll(context));
            if self.received.elapsed() >= self.limit {
                return Poll::Ready(Err(io::Error::new(
                    io::ErrorKind::TimedOut,
                    format!("nothing was received for {:.0} s", self.limit.as_secs_f64()),
                )));
            }
            let due = self.received + self.limit;
            self.expiry.as_mut().reset(due);
        }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Alive<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match Pin::new(&mut self.stream).poll_read(context, buffer) {
            Poll::Pending => self.wait(context),
            ready => {
                self.received = Instant::now();
                ready
            }
        }
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Alive<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        match Pin::new(&mut self.stream).poll_write(context, bytes) {
            Poll::Pending => self.wait(context),
            ready => ready,
        }
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match Pin::new(&mut self.stream).poll_flush(context) {
            Poll::Pending => self.wait(context),
            ready => ready,
        }
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match Pin::new(&mut self.stream).poll_shutdown(context) {
            Poll::Pending => self.wait(context),
            ready => ready,
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};

    use super::*;

    fn timed_out<T>(done: io::Result<T>) -> bool {
        done.is_err_and(|error| error.kind() == io::ErrorKind::TimedOut)
    }

    /// Reading and writing both fail, also if the connection accepts no more bytes; data that arrives in time
    /// resets the deadline.
    #[test]
    fn a_silent_stream_fails_as_closed() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let limit = Duration::from_millis(300);
            let (near, mut far) = duplex(8);
            let (mut near, mut closed) = Alive::new(near, limit);
            for _ in 0..4 {
                tokio::time::sleep(limit / 3).await;
                far.write_all(b"ping").await.unwrap();
                near.read_exact(&mut [0; 4]).await.unwrap();
            }
            let writing = tokio::time::timeout(10 * limit, near.write_all(&[0; 100])).await;
            assert!(timed_out(writing.expect("writing ends")));
            assert!(timed_out(near.read(&mut [0; 4]).await));
            drop(near);
            closed.wait().await;
        });
    }
}
