//! What tasks have in their hands: connections and streams of a hub, with quinn's names for what they do.

use std::any::Any;
use std::net::SocketAddr;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Instant;

use bytes::Bytes;
use quinn_proto::{
    ConnectionStats, Dir, FinishError, ReadError, ReadableError, StreamId, VarInt, WriteError,
};

use super::{Entry, Line, Rtts, Shared, locked};
use crate::adapter::ControllerAdapter;

/// What ends the work on a stream.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum StreamError {
    /// The connection is over.
    #[error("{0}")]
    Lost(String),
    /// The peer will send no more of it.
    #[error("the stream was reset")]
    Reset,
    /// The peer wants no more of it.
    #[error("the peer stopped the stream")]
    Stopped,
    /// It is over already, or sooner than it should be.
    #[error("the stream is over")]
    Ended,
}

/// A handle of a QUIC connection.
#[derive(Clone, Debug)]
pub struct QuicConnection {
    shared: Arc<Shared>,
    number: u64,
    line: Arc<Line>,
}

impl QuicConnection {
    pub(super) fn new(shared: Arc<Shared>, number: u64, line: Arc<Line>) -> Self {
        QuicConnection { shared, number, line }
    }

    /// Works on the connection; if that gave it something to say, its thread is told.
    fn act<T>(&self, act: impl FnOnce(&mut Entry) -> (T, bool)) -> Result<T, StreamError> {
        let mut state = locked(&self.shared.state);
        let Some(entry) = state.entries.get_mut(&self.number) else {
            let reason = self.line.ended.get().cloned().unwrap_or_default();
            return Err(StreamError::Lost(reason));
        };
        let (done, news) = act(entry);
        if news {
            self.shared.tell(&mut state, self.number);
        }
        Ok(done)
    }

    /// The same until there is an outcome, as long as the connection is. Where there is none yet, `waker_of`
    /// says where a waker belongs.
    fn poll<T>(
        &self,
        cx: &Context<'_>,
        act: impl FnOnce(&mut Entry) -> (Poll<Result<T, StreamError>>, bool),
        keep: impl FnOnce(&mut Entry, Waker),
    ) -> Poll<Result<T, StreamError>> {
        let ended = &self.line.ended;
        let polled = self.act(|entry| {
            let (polled, news) = act(entry);
            let polled = match (polled, ended.get()) {
                (Poll::Pending, Some(reason)) => Poll::Ready(Err(StreamError::Lost(reason.clone()))),
                (Poll::Pending, None) => {
                    keep(entry, cx.waker().clone());
                    Poll::Pending
                }
                (ready, _) => ready,
            };
            (polled, news)
        });
        match polled {
            Ok(polled) => polled,
            Err(lost) => Poll::Ready(Err(lost)),
        }
    }

    /// Waits for the handshake to be complete.
    pub async fn connected(&self) -> Result<(), StreamError> {
        let keep = |entry: &mut Entry, waker| entry.tasks.push(waker);
        let connected =
            |entry: &mut Entry| (if entry.is_connected { Poll::Ready(Ok(())) } else { Poll::Pending }, false);
        std::future::poll_fn(|cx| self.poll(cx, connected, keep)).await
    }

    /// Opens a stream, as soon as the peer allows one.
    pub async fn open_bi(&self) -> Result<(SendStream, RecvStream), StreamError> {
        self.stream(|streams| streams.open(Dir::Bi)).await
    }

    /// Returns the next stream that the peer opens.
    pub async fn accept_bi(&self) -> Result<(SendStream, RecvStream), StreamError> {
        self.stream(|streams| streams.accept(Dir::Bi)).await
    }

    async fn stream(
        &self,
        take: impl Fn(&mut quinn_proto::Streams<'_>) -> Option<StreamId>,
    ) -> Result<(SendStream, RecvStream), StreamError> {
        let act = |entry: &mut Entry| match take(&mut entry.end.connection().streams()) {
            // To accept one may allow the peer another.
            Some(id) => (Poll::Ready(Ok(id)), true),
            None => (Poll::Pending, false),
        };
        let keep = |entry: &mut Entry, waker| entry.tasks.push(waker);
        let id = std::future::poll_fn(|cx| self.poll(cx, act, keep)).await?;
        let (send, receive) = (self.clone(), self.clone());
        Ok((
            SendStream { connection: send, id, over: false },
            RecvStream { connection: receive, id, over: false },
        ))
    }

    /// Ends the connection.
    pub fn close(&self, code: u32, reason: &[u8]) {
        let ended = self.act(|entry| {
            entry.end.connection().close(Instant::now(), code.into(), Bytes::copy_from_slice(reason));
            entry.end_with("closed");
            ((), true)
        });
        // If not, it is over.
        drop(ended);
    }

    /// Waits until the connection is over: why.
    pub async fn closed(&self) -> String {
        let keep = |entry: &mut Entry, waker| entry.tasks.push(waker);
        let ended = std::future::poll_fn(|cx| self.poll::<()>(cx, |_| (Poll::Pending, false), keep)).await;
        match ended {
            Err(StreamError::Lost(reason)) => reason,
            _ => String::new(),
        }
    }

    /// Returns what the stack counted; nothing once the connection is over.
    pub fn stats(&self) -> ConnectionStats {
        self.act(|entry| (entry.end.connection().stats(), false)).unwrap_or_default()
    }

    /// Returns where the peer is.
    pub fn remote_address(&self) -> SocketAddr {
        self.line.remote
    }

    /// Returns what the peer showed of itself.
    pub fn peer_identity(&self) -> Option<Box<dyn Any>> {
        self.act(|entry| (entry.end.connection().crypto_session().peer_identity(), false)).ok().flatten()
    }

    /// Fills `bytes` with what the TLS session exports under `label` and `context` (RFC 8446 section 7.5).
    /// Returns `false` if the handshake is not complete, or the connection is over.
    pub fn export_keying_material(&self, bytes: &mut [u8], label: &[u8], context: &[u8]) -> bool {
        self.act(|entry| {
            let session = entry.end.connection().crypto_session();
            (session.export_keying_material(bytes, label, context).is_ok(), false)
        })
        .unwrap_or(false)
    }

    /// Returns what controls it.
    pub fn adapter(&self) -> &Arc<ControllerAdapter> {
        &self.line.adapter
    }

    /// Returns its RTT samples so far, of the packets that this end sent.
    pub fn rtts(&self) -> Rtts {
        locked(&self.line.rtts).clone()
    }
}

/// The sending half of a stream. Dropping it finishes the stream.
#[derive(Debug)]
pub struct SendStream {
    connection: QuicConnection,
    id: StreamId,
    over: bool,
}

impl SendStream {
    /// Writes all of `chunk`.
    pub async fn write_chunk(&mut self, chunk: Bytes) -> Result<(), StreamError> {
        let mut rest = [chunk];
        let id = self.id;
        while !rest[0].is_empty() {
            std::future::poll_fn(|cx| {
                let write = |entry: &mut Entry| match entry
                    .end
                    .connection()
                    .send_stream(id)
                    .write_chunks(&mut rest)
                {
                    Ok(_) => (Poll::Ready(Ok(())), true),
                    Err(WriteError::Blocked) => (Poll::Pending, false),
                    Err(WriteError::Stopped(_)) => (Poll::Ready(Err(StreamError::Stopped)), false),
                    Err(WriteError::ClosedStream) => (Poll::Ready(Err(StreamError::Ended)), false),
                };
                self.connection.poll(cx, write, |entry, waker| drop(entry.writers.insert(id, waker)))
            })
            .await?;
        }
        Ok(())
    }

    /// Writes all of `bytes`.
    pub async fn write_all(&mut self, bytes: &[u8]) -> Result<(), StreamError> {
        self.write_chunk(Bytes::copy_from_slice(bytes)).await
    }

    /// Says that this was all.
    ///
    /// # Errors
    /// [`StreamError::Stopped`] if the peer has said that it wants no more of the stream, which it may say
    /// once it has all that it needs.
    pub fn finish(&mut self) -> Result<(), StreamError> {
        self.over = true;
        let id = self.id;
        let finished =
            self.connection.act(|entry| (entry.end.connection().send_stream(id).finish(), true))?;
        finished.map_err(|error| match error {
            FinishError::Stopped(_) => StreamError::Stopped,
            FinishError::ClosedStream => StreamError::Ended,
        })
    }

    /// Says that the rest will not come.
    pub fn reset(&mut self, code: u32) -> Result<(), StreamError> {
        self.over = true;
        let id = self.id;
        let reset = self
            .connection
            .act(|entry| (entry.end.connection().send_stream(id).reset(code.into()).is_ok(), true))?;
        if reset { Ok(()) } else { Err(StreamError::Ended) }
    }
}

impl Drop for SendStream {
    fn drop(&mut self) {
        if !self.over {
            // If it cannot be said, nobody listens.
            let _ = self.finish();
        }
    }
}

/// The receiving half of a stream. Dropping it stops the stream.
#[derive(Debug)]
pub struct RecvStream {
    connection: QuicConnection,
    id: StreamId,
    over: bool,
}

impl RecvStream {
    /// Returns the next chunk of `most` bytes at most; none at the end.
    pub async fn read_chunk(&mut self, most: usize) -> Result<Option<Bytes>, StreamError> {
        if self.over {
            return Ok(None);
        }
        let id = self.id;
        let read = std::future::poll_fn(|cx| {
            let read = |entry: &mut Entry| read(entry, id, most);
            self.connection.poll(cx, read, |entry, waker| drop(entry.readers.insert(id, waker)))
        })
        .await;
        self.over = !matches!(read, Ok(Some(_)));
        read
    }

    /// Fills `bytes`.
    pub async fn read_exact(&mut self, bytes: &mut [u8]) -> Result<(), StreamError> {
        let mut filled = 0;
        while filled < bytes.len() {
            let chunk = self.read_chunk(bytes.len() - filled).await?.ok_or(StreamError::Ended)?;
            bytes[filled..filled + chunk.len()].copy_from_slice(&chunk);
            filled += chunk.len();
        }
        Ok(())
    }

    /// Wants no more.
    pub fn stop(&mut self, code: u32) {
        self.over = true;
        let (id, code) = (self.id, VarInt::from_u32(code));
        // If it is over already, so much the better.
        let _ = self.connection.act(|entry| (drop(entry.end.connection().recv_stream(id).stop(code)), true));
    }
}

impl Drop for RecvStream {
    fn drop(&mut self) {
        if !self.over {
            self.stop(0);
        }
    }
}

fn read(entry: &mut Entry, id: StreamId, most: usize) -> (Poll<Result<Option<Bytes>, StreamError>>, bool) {
    let mut stream = entry.end.connection().recv_stream(id);
    let mut chunks = match stream.read(true) {
        Ok(chunks) => chunks,
        Err(ReadableError::ClosedStream | ReadableError::IllegalOrderedRead) => {
            return (Poll::Ready(Err(StreamError::Ended)), false);
        }
    };
    let read = match chunks.next(most) {
        Ok(chunk) => Poll::Ready(Ok(chunk.map(|chunk| chunk.bytes))),
        Err(ReadError::Blocked) => Poll::Pending,
        Err(ReadError::Reset(_)) => Poll::Ready(Err(StreamError::Reset)),
    };
    (read, chunks.finalize().should_transmit())
}
