//! Connections of a measurement, whoever carries their packets: our driver, or async quinn as an application
//! has it.

use std::net::SocketAddr;

use bytes::Bytes;
use quinn::{ReadError, ReadExactError, WriteError};

use super::identity::{self, Fingerprint};
use super::token::Session;
use crate::driver::net::{self, StreamError};

/// Payload; what it says does not matter, and encryption makes all bytes alike.
const PIECE: Bytes = Bytes::from_static(&[0x5a; 1 << 16]);

/// A connection.
#[derive(Clone, Debug)]
pub(crate) enum Connection {
    /// Of our driver.
    Driver(net::QuicConnection),
    /// Of quinn.
    Stack(quinn::Connection),
}

/// The half of a stream that this end sends.
#[derive(Debug)]
pub(crate) enum SendStream {
    /// Of our driver.
    Driver(net::SendStream),
    /// Of quinn.
    Stack(quinn::SendStream),
}

/// The half of a stream that this end receives.
#[derive(Debug)]
pub(crate) enum RecvStream {
    /// Of our driver.
    Driver(net::RecvStream),
    /// Of quinn.
    Stack(quinn::RecvStream),
}

/// Bytes of IPv4 and UDP headers; of IPv6, 20 more.
fn headers(address: SocketAddr) -> u64 {
    if address.ip().to_canonical().is_ipv4() { 28 } else { 48 }
}

impl Connection {
    pub(crate) async fn open_bi(&self) -> Result<(SendStream, RecvStream), StreamError> {
        match self {
            Connection::Driver(connection) => {
                let (send, receive) = connection.open_bi().await?;
                Ok((SendStream::Driver(send), RecvStream::Driver(receive)))
            }
            Connection::Stack(connection) => {
                let opened = connection.open_bi().await;
                let (send, receive) = opened.map_err(|error| StreamError::Lost(error.to_string()))?;
                Ok((SendStream::Stack(send), RecvStream::Stack(receive)))
            }
        }
    }

    /// Waits for the connection's end. Returns the reason.
    pub(crate) async fn closed(&self) -> String {
        match self {
            Connection::Stack(connection) => connection.closed().await.to_string(),
            Connection::Driver(connection) => connection.closed().await,
        }
    }

    pub(crate) fn close(&self, code: u32, reason: &[u8]) {
        match self {
            Connection::Driver(connection) => connection.close(code, reason),
            Connection::Stack(connection) => connection.close(code.into(), reason),
        }
    }

    pub(crate) fn stats(&self) -> quinn::ConnectionStats {
        match self {
            Connection::Driver(connection) => connection.stats(),
            Connection::Stack(connection) => connection.stats(),
        }
    }

    /// Bytes that have come for the connection, IP and UDP headers included.
    pub(crate) fn wire_bytes(&self) -> u64 {
        let remote = match self {
            Connection::Driver(connection) => connection.remote_address(),
            Connection::Stack(connection) => connection.remote_address(),
        };
        let received = self.stats().udp_rx;
        received.bytes + received.datagrams * headers(remote)
    }

    /// What both ends of it know, and nobody else.
    pub(crate) fn session(&self) -> Option<Session> {
        Session::of(|bytes, label, context| match self {
            Connection::Driver(connection) => connection.export_keying_material(bytes, label, context),
            Connection::Stack(connection) => connection.export_keying_material(bytes, label, context).is_ok(),
        })
    }

    /// Of the peer's certificate.
    pub(crate) fn peer(&self) -> Option<Fingerprint> {
        identity::fingerprint(match self {
            Connection::Driver(connection) => connection.peer_identity(),
            Connection::Stack(connection) => connection.peer_identity(),
        })
    }
}

impl SendStream {
    pub(crate) async fn write_chunk(&mut self, chunk: Bytes) -> Result<(), StreamError> {
        match self {
            SendStream::Driver(stream) => stream.write_chunk(chunk).await,
            SendStream::Stack(stream) => stream.write_chunk(chunk).await.map_err(unwritten),
        }
    }

    pub(crate) async fn write_all(&mut self, bytes: &[u8]) -> Result<(), StreamError> {
        self.write_chunk(Bytes::copy_from_slice(bytes)).await
    }

    /// Sends so many bytes of payload.
    pub(crate) async fn fill(&mut self, mut left: u64) -> Result<(), StreamError> {
        while left > 0 {
            let piece = PIECE.slice(..left.min(PIECE.len() as u64) as usize);
            left -= piece.len() as u64;
            self.write_chunk(piece).await?;
        }
        Ok(())
    }

    /// Says that this was all. A peer that has stopped the stream knows: it has all that it needs.
    pub(crate) fn finish(&mut self) -> Result<(), StreamError> {
        match self {
            SendStream::Driver(stream) => match stream.finish() {
                Err(StreamError::Stopped) => Ok(()),
                finished => finished,
            },
            // Fails only if it was finished or reset before.
            SendStream::Stack(stream) => stream.finish().map_err(|_| StreamError::Ended),
        }
    }

    pub(crate) fn reset(&mut self) -> Result<(), StreamError> {
        match self {
            SendStream::Driver(stream) => stream.reset(0),
            SendStream::Stack(stream) => stream.reset(0u32.into()).map_err(|_| StreamError::Ended),
        }
    }
}

impl RecvStream {
    /// The next chunk of `most` bytes at most; none at the end.
    pub(crate) async fn read_chunk(&mut self, most: usize) -> Result<Option<Bytes>, StreamError> {
        match self {
            RecvStream::Driver(stream) => stream.read_chunk(most).await,
            RecvStream::Stack(stream) => {
                let read = stream.read_chunk(most, true).await.map_err(unread)?;
                Ok(read.map(|chunk| chunk.bytes))
            }
        }
    }

    pub(crate) async fn read_exact(&mut self, bytes: &mut [u8]) -> Result<(), StreamError> {
        match self {
            RecvStream::Driver(stream) => stream.read_exact(bytes).await,
            RecvStream::Stack(stream) => match stream.read_exact(bytes).await {
                Ok(()) => Ok(()),
                Err(ReadExactError::FinishedEarly(_)) => Err(StreamError::Ended),
                Err(ReadExactError::ReadError(error)) => Err(unread(error)),
            },
        }
    }

    /// All that comes, `most` bytes at most.
    pub(crate) async fn read_to_end(&mut self, most: usize) -> Result<Vec<u8>, StreamError> {
        let mut all = Vec::new();
        while let Some(chunk) = self.read_chunk(most.saturating_sub(all.len()).max(1)).await? {
            if all.len() + chunk.len() > most {
                return Err(StreamError::Ended);
            }
            all.extend_from_slice(&chunk);
        }
        Ok(all)
    }

    pub(crate) fn stop(&mut self) {
        match self {
            RecvStream::Driver(stream) => stream.stop(0),
            // If it is over already, so much the better.
            RecvStream::Stack(stream) => drop(stream.stop(0u32.into())),
        }
    }
}

fn unread(error: ReadError) -> StreamError {
    match error {
        ReadError::Reset(_) => StreamError::Reset,
        ReadError::ClosedStream => StreamError::Ended,
        // The connection's own words say why.
        ReadError::ConnectionLost(error) => StreamError::Lost(error.to_string()),
        error => StreamError::Lost(error.to_string()),
    }
}

fn unwritten(error: WriteError) -> StreamError {
    match error {
        WriteError::Stopped(_) => StreamError::Stopped,
        WriteError::ClosedStream => StreamError::Ended,
        WriteError::ConnectionLost(error) => StreamError::Lost(error.to_string()),
        error => StreamError::Lost(error.to_string()),
    }
}
