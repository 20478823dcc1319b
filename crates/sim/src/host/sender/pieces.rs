//! Pieces of an application's data that wait for their turn, for a flow that sends each once, in a packet of
//! its own (RFC 9221).
//!
//! The controller and the pacer see their packets as any others. One that is lost takes room in the window
//! no longer, and is told to the controller. Whether its contents are worth another piece, the application
//! knows.

use std::collections::VecDeque;

use brakelight_apps::Piece;

use super::Sender;

/// A PING (rfc9000 19.2): one byte that asks for an ACK, and that no application waits for.
pub(in super::super) const PING: Piece = Piece { number: u32::MAX, size: 1 };

/// Pieces that wait to be sent.
#[derive(Clone, Debug, Default)]
pub(super) struct Pieces {
    waiting: VecDeque<Piece>,
    /// How many at the front are urgent.
    urgent: usize,
}

impl Pieces {
    /// Bytes of the next one; 0 if none waits.
    pub(super) fn next_size(&self) -> u64 {
        self.waiting.front().map_or(0, |piece| u64::from(piece.size))
    }

    /// Takes the next one.
    pub(super) fn pop(&mut self) -> Option<Piece> {
        self.urgent = self.urgent.saturating_sub(1);
        self.waiting.pop_front()
    }

    pub(super) fn clear(&mut self) {
        *self = Pieces::default();
    }
}

impl Sender {
    /// The same sender, whose application sends pieces if `pieces`.
    pub(in super::super) fn with_pieces(mut self, pieces: bool) -> Self {
        self.pieces = pieces.then(Box::default);
        self
    }

    /// Adds a piece to send: behind those that wait, or, if it is `urgent`, behind the urgent ones.
    pub(in super::super) fn write_piece(&mut self, piece: Piece, urgent: bool) {
        let Some(pieces) = &mut self.pieces else { return };
        self.halted = false;
        self.unsent += u64::from(piece.size);
        if urgent {
            pieces.waiting.insert(pieces.urgent, piece);
            pieces.urgent += 1;
        } else {
            pieces.waiting.push_back(piece);
        }
    }
}
