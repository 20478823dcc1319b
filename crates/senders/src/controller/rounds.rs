//! Round trips as a controller counts them that needs its own: HyStart, Vegas, Compound, Copa.

/// A round ends when a packet sent after its start is acknowledged.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Rounds {
    /// The number after the newest packet sent.
    next: u64,
    /// The first packet number of the next round.
    end: u64,
}

impl Rounds {
    pub(super) fn sent(&mut self, number: u64) {
        self.next = number + 1;
    }

    /// Whether the ACK of `newest` begins a new round, which lasts until what is now on its way is
    /// acknowledged.
    pub(super) fn acked(&mut self, newest: u64) -> bool {
        if newest < self.end {
            return false;
        }
        self.end = self.next.max(newest + 1);
        true
    }

    /// Begins a round here: it ends when a packet that is still to be sent is acknowledged.
    pub(super) fn restart(&mut self) {
        self.end = self.next;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_round_lasts_until_what_was_sent_in_it_is_acknowledged() {
        let mut rounds = Rounds::default();
        rounds.sent(9);
        assert!(rounds.acked(0));
        rounds.sent(19);
        assert!((1..10).all(|newest| !rounds.acked(newest)));
        assert!(rounds.acked(10));
        assert!(!rounds.acked(19) && rounds.acked(20));
    }

    #[test]
    fn a_restarted_round_waits_for_new_packets() {
        let mut rounds = Rounds::default();
        rounds.sent(9);
        rounds.restart();
        assert!(!rounds.acked(9));
        rounds.sent(10);
        assert!(rounds.acked(10));
    }
}
