//! One reaction per congestion episode: a loss, a CE mark or a timeout begins one, and what had been sent by
//! then belongs to it (RFC 6582 section 3.2, `recover`; RFC 9002 section 7.3.2; Linux 6.12
//! net/ipv4/tcp_input.c, `high_seq`).
//!
//! ```text
//!            CE                    loss                  timeout
//!   Open ---------> Reduced  Open, Reduced ---> Recovery   any ---> Loss
//!   Reduced, Recovery, Loss ---> Open    what was out at the beginning is acknowledged, or the episode is
//!                                        undone
//! ```
//!
//! Positions are what the host counts by: TCP's segments, QUIC's packet numbers. They only need to rise.
//!
//! On QUIC the episode's end says more: no packet sent before the episode began lets the window grow, even
//! one that is acknowledged after the episode has ended (RFC 9002 appendix B.5,
//! `InCongestionRecovery(sent_time)`).

use crate::controller::RecoveryState;

/// Where a sender stands between two congestion episodes. Linux 6.12 tcp.h calls them TCP_CA_Open (and
/// Disorder), TCP_CA_CWR, TCP_CA_Recovery and TCP_CA_Loss.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Phase {
    /// No episode.
    #[default]
    Open,
    /// A CE mark was answered; nothing is lost.
    Reduced,
    /// Losses are being repaired.
    Recovery,
    /// A timeout is being repaired.
    Loss,
}

/// The episode a sender is in, if it is in one.
#[derive(Clone, Debug, Default)]
pub struct Episode {
    phase: Phase,
    /// The position after the newest packet that belongs to the episode, or to the last one.
    end: u64,
    /// The position of the first packet by which a window may grow.
    growth_from: u64,
}

impl Episode {
    /// Returns where the sender stands.
    #[inline]
    pub fn phase(&self) -> Phase {
        self.phase
    }

    /// Returns whether there is no episode.
    #[inline]
    pub fn is_open(&self) -> bool {
        self.phase == Phase::Open
    }

    /// Returns whether losses or a timeout are being repaired.
    #[inline]
    pub fn is_repairing(&self) -> bool {
        matches!(self.phase, Phase::Recovery | Phase::Loss)
    }

    /// Returns the position after the newest packet that had been sent when the episode, or the last one,
    /// began.
    #[inline]
    pub fn end(&self) -> u64 {
        self.end
    }

    /// Returns whether what stands at `position` had been sent when the episode, or the last one, began.
    #[inline]
    pub fn covers(&self, position: u64) -> bool {
        position < self.end
    }

    /// Returns whether the acknowledgement of the packet at `position` may let the window grow: `false` if it
    /// had been sent when the episode, or the last one, began (rfc9002 B.5). After persistent congestion and
    /// after an undo every packet may (rfc9002 B.8).
    #[inline]
    pub fn may_grow(&self, position: u64) -> bool {
        position >= self.growth_from
    }

    /// An episode begins, or turns into a worse one. `end` is the position of the next new packet.
    pub fn begin(&mut self, phase: Phase, end: u64) {
        debug_assert!(phase != Phase::Open, "an episode ends by `finish`");
        debug_assert!(
            phase != Phase::Reduced || !self.is_repairing(),
            "a CE mark within an episode says nothing new: {:?}",
            self.phase
        );
        self.phase = phase;
        self.end = end;
        self.growth_from = if phase == Phase::Loss { 0 } else { end };
    }

    /// The episode lasts until `end` is acknowledged (RFC 5682 section 2.1, step 2b).
    pub fn extend(&mut self, end: u64) {
        self.end = end;
    }

    /// The episode is over.
    #[inline]
    pub fn finish(&mut self) {
        self.phase = Phase::Open;
    }

    /// The episode was a mistake: it is over, and no packet belongs to it.
    pub fn undo(&mut self) {
        *self = Episode::default();
    }

    /// Returns what the controller is told. `held` says whether the host brings the window down itself, which
    /// makes a reaction to CE a recovery as well: the window must not grow meanwhile.
    #[inline]
    pub fn state(&self, held: bool) -> RecoveryState {
        match self.phase {
            Phase::Open => RecoveryState::Open,
            Phase::Reduced if held => RecoveryState::Recovery,
            Phase::Reduced => RecoveryState::Open,
            Phase::Recovery => RecoveryState::Recovery,
            Phase::Loss => RecoveryState::Loss,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_episode_covers_what_was_sent_before_it_began_even_after_it_ended() {
        let mut episode = Episode::default();
        assert!(!episode.covers(0));
        episode.begin(Phase::Recovery, 10);
        assert!(episode.covers(9) && !episode.covers(10));
        episode.finish();
        assert!(episode.is_open() && episode.covers(9));
    }

    #[test]
    fn what_was_sent_before_an_episode_lets_no_window_grow_unless_the_window_starts_over() {
        let mut episode = Episode::default();
        assert!(episode.may_grow(0));
        episode.begin(Phase::Recovery, 10);
        episode.finish();
        assert!(!episode.may_grow(9) && episode.may_grow(10));
        episode.begin(Phase::Reduced, 20);
        assert!(!episode.may_grow(19) && episode.may_grow(20));
        episode.begin(Phase::Loss, 30);
        assert!(episode.may_grow(0));
        episode.begin(Phase::Recovery, 40);
        episode.undo();
        assert!(episode.is_open() && episode.may_grow(0) && !episode.covers(0));
    }

    #[test]
    fn a_timeout_is_told_as_loss_and_a_reaction_to_ce_only_where_the_host_shapes_it() {
        let mut episode = Episode::default();
        assert_eq!(episode.state(true), RecoveryState::Open);
        episode.begin(Phase::Reduced, 5);
        assert_eq!(
            [episode.state(false), episode.state(true)],
            [RecoveryState::Open, RecoveryState::Recovery]
        );
        episode.begin(Phase::Recovery, 6);
        assert_eq!(episode.state(false), RecoveryState::Recovery);
        episode.begin(Phase::Loss, 7);
        assert_eq!(episode.state(true), RecoveryState::Loss);
    }
}
