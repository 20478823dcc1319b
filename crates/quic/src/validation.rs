//! Whether the path and the peer can be trusted with ECN: what RFC 9000 section 13.4.2 asks, as far as it
//! fits schemes whose routers rewrite codepoints for a living.
//!
//! ```text
//! testing:   the first `TESTED` packets are marked; no more until one of them is acknowledged   rfc9000 A.4
//! capable:   every ACK's counts passed, and a marked packet is among what they cover
//! failed:    one did not, or all that were marked were lost: nothing is marked again,
//!            and the controller goes without                                                  rfc9000 13.4.2
//! ```
//!
//! The counts of an ACK fail if
//!
//! - there are none although packets that were marked are newly acknowledged (the ECN field was cleared on
//!   the way, or the peer cannot read it);
//! - one is below what an earlier ACK said;
//! - together they are less than the marked packets acknowledged, or more than the marked packets sent;
//! - one counts a codepoint that neither the sender nor a router of its scheme writes: see [`legal`].
//!
//! # Deviations
//!
//! - D1. RFC 9000 compares increases; here sums since the connection began are compared, which says the same
//!   of ACKs in order, and does not take an ACK that was overtaken for a fault.
//! - D2. RFC 9000 fails a path on which ECT(0) packets come back as ECT(1) or the reverse. ABC's routers do
//!   that by design (abc20 4.2), and BMCC's (bmcc II-E): their flows are checked by the sums alone. A path
//!   that makes every ECT(1) an ECT(0) passes here, and is left to the controller (the head of
//!   `core::controller::abc`).

use brakelight_core::ecn::{Ecn, Encoding};

use crate::tap::frames::EcnCounts;

/// Marked packets that leave before one is acknowledged (rfc9000 A.4).
pub const TESTED: u64 = 10;

/// Why ECN validation failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Marked packets are acknowledged without counts.
    Missing,
    /// A count is lower than it was.
    Backwards,
    /// Fewer marked packets counted than acknowledged.
    TooFew,
    /// More marked packets counted than sent.
    TooMany,
    /// A codepoint is counted that nobody may have written.
    Foreign,
    /// Every marked packet was lost, and others were not.
    Dropped,
}

impl std::fmt::Display for Fault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Fault::Missing => "packets sent with ECN are acknowledged without ECN counts",
            Fault::Backwards => "an ECN count went backwards",
            Fault::TooFew => "fewer packets are counted by ECN than were acknowledged",
            Fault::TooMany => "more packets are counted by ECN than were sent with it",
            Fault::Foreign => "an ECN codepoint is counted that nobody on this path may write",
            Fault::Dropped => "every packet sent with ECN was lost, and others arrived",
        })
    }
}

/// The state of ECN validation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// Nothing that was marked has been acknowledged yet.
    Testing,
    /// Counts have added up so far.
    Capable,
    /// They did not: ECN is off for the rest of the connection.
    Failed(Fault),
}

/// The validation of one path in one direction.
#[derive(Clone, Debug)]
pub struct Validation {
    encoding: Encoding,
    state: State,
    sent: u64,
    acked: u64,
    lost: u64,
    counts: EcnCounts,
}

/// Returns whether a router may turn what a flow of `encoding` sends into `ecn`.
pub const fn legal(encoding: Encoding, ecn: Ecn) -> bool {
    match encoding {
        Encoding::None | Encoding::Explicit => false,
        Encoding::Classic => matches!(ecn, Ecn::Ect0 | Ecn::Ce),
        Encoding::L4s => matches!(ecn, Ecn::Ect1 | Ecn::Ce),
        Encoding::Abc | Encoding::AbcProxied | Encoding::Bmcc => !matches!(ecn, Ecn::NotEct),
    }
}

impl Validation {
    /// Returns a path nothing is known of, for a flow of `encoding`.
    pub fn new(encoding: Encoding) -> Self {
        Validation {
            encoding,
            state: State::Testing,
            sent: 0,
            acked: 0,
            lost: 0,
            counts: EcnCounts::default(),
        }
    }

    /// Returns where it stands.
    pub fn state(&self) -> State {
        self.state
    }

    /// Returns the codepoint of the next packet.
    pub fn codepoint(&self) -> Ecn {
        match self.state {
            State::Testing if self.sent < TESTED => self.encoding.sent(),
            State::Testing | State::Failed(_) => Ecn::NotEct,
            State::Capable => self.encoding.sent(),
        }
    }

    /// A packet left with `ecn`.
    pub fn on_sent(&mut self, ecn: Ecn) {
        self.sent += u64::from(ecn.is_capable());
    }

    /// `marked` packets that left with a codepoint are newly acknowledged.
    pub fn on_acked(&mut self, marked: u64) {
        self.acked += marked;
    }

    /// `marked` packets that left with a codepoint were discarded and not lost: the peer never counts them,
    /// and others are to be tested in their place.
    pub fn on_discarded(&mut self, marked: u64) {
        self.sent = self.sent.saturating_sub(marked);
    }

    /// `marked` packets that left with a codepoint are declared lost. Where none of the first [`TESTED`] has
    /// ever been acknowledged, the mark is taken for the reason (rfc9000 13.4.2).
    pub fn on_lost(&mut self, marked: u64) {
        self.lost += marked;
        if marked > 0 && self.state == State::Testing && self.acked == 0 && self.lost >= TESTED {
            self.state = State::Failed(Fault::Dropped);
        }
    }

    /// An ACK whose largest packet is the largest so far says `counts`, or nothing, where `marked` of the
    /// packets that it newly acknowledges left with a codepoint; they have been told by
    /// [`Validation::on_acked`]. Returns what is new since the last ACK: nothing from the moment on at which
    /// the validation fails.
    pub fn on_counts(&mut self, counts: Option<EcnCounts>, marked: u64) -> EcnCounts {
        let none = EcnCounts::default();
        if self.encoding.sent() == Ecn::NotEct || matches!(self.state, State::Failed(_)) {
            return none;
        }
        let Some(counts) = counts else {
            if marked > 0 {
                self.state = State::Failed(Fault::Missing);
            }
            return none;
        };
        match self.check(&counts) {
            Err(fault) => {
                self.state = State::Failed(fault);
                none
            }
            Ok(new) => {
                self.counts = counts;
                if self.acked > 0 {
                    self.state = State::Capable;
                }
                new
            }
        }
    }

    fn check(&self, counts: &EcnCounts) -> Result<EcnCounts, Fault> {
        let increase = |now: u64, before: u64| now.checked_sub(before).ok_or(Fault::Backwards);
        let new = EcnCounts {
            ect0: increase(counts.ect0, self.counts.ect0)?,
            ect1: increase(counts.ect1, self.counts.ect1)?,
            ce: increase(counts.ce, self.counts.ce)?,
        };
        let foreign = |count: u64, ecn: Ecn| count > 0 && !legal(self.encoding, ecn);
        if foreign(new.ect0, Ecn::Ect0) || foreign(new.ect1, Ecn::Ect1) || foreign(new.ce, Ecn::Ce) {
            return Err(Fault::Foreign);
        }
        match counts.total() {
            sum if sum < self.acked => Err(Fault::TooFew),
            sum if sum > self.sent => Err(Fault::TooMany),
            _ => Ok(new),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A path of `encoding` over which `sent` marked packets left and `acked` of them were acknowledged.
    fn path(encoding: Encoding, sent: u64, acked: u64) -> Validation {
        let mut path = Validation::new(encoding);
        (0..sent).for_each(|_| path.on_sent(encoding.sent()));
        path.on_acked(acked);
        path
    }

    fn counts(ect0: u64, ect1: u64, ce: u64) -> Option<EcnCounts> {
        Some(EcnCounts { ect0, ect1, ce })
    }

    #[test]
    fn counts_that_add_up_make_the_path_capable_and_come_back_as_what_is_new() {
        let mut path = path(Encoding::Abc, 10, 4);
        assert_eq!(Some(path.on_counts(counts(1, 3, 0), 4)), counts(1, 3, 0));
        path.on_acked(2);
        assert_eq!(Some(path.on_counts(counts(2, 3, 1), 2)), counts(1, 0, 1));
        assert_eq!((path.state(), path.codepoint()), (State::Capable, Ecn::Ect1));
    }

    #[test]
    fn marking_pauses_after_ten_packets_until_one_is_acknowledged() {
        let mut path = path(Encoding::Abc, TESTED, 0);
        assert_eq!(path.codepoint(), Ecn::NotEct);
        path.on_acked(1);
        path.on_counts(counts(0, 1, 0), 1);
        assert_eq!(path.codepoint(), Ecn::Ect1);
    }

    #[test]
    fn packets_that_were_discarded_are_tested_by_others() {
        let mut path = path(Encoding::Abc, TESTED, 0);
        path.on_discarded(TESTED);
        assert_eq!((path.state(), path.codepoint()), (State::Testing, Ecn::Ect1));
        (0..4).for_each(|_| path.on_sent(Ecn::Ect1));
        path.on_acked(4);
        path.on_counts(counts(0, 5, 0), 4);
        assert_eq!(path.state(), State::Failed(Fault::TooMany));
    }

    #[test]
    fn a_path_that_loses_everything_that_is_marked_fails_and_one_that_loses_some_does_not() {
        let mut lossy = path(Encoding::Abc, TESTED, 0);
        lossy.on_lost(TESTED - 1);
        assert_eq!(lossy.state(), State::Testing);
        lossy.on_acked(1);
        lossy.on_counts(counts(0, 1, 0), 1);
        lossy.on_lost(2 * TESTED);
        assert_eq!((lossy.state(), lossy.codepoint()), (State::Capable, Ecn::Ect1));
        let mut black_hole = path(Encoding::Abc, TESTED, 0);
        (0..TESTED).for_each(|_| black_hole.on_lost(1));
        assert_eq!(
            (black_hole.state(), black_hole.codepoint()),
            (State::Failed(Fault::Dropped), Ecn::NotEct)
        );
    }

    #[test]
    fn bleached_marks_fail_the_path_for_good() {
        let mut path = path(Encoding::Abc, 10, 2);
        path.on_counts(None, 2);
        assert_eq!(path.state(), State::Failed(Fault::Missing));
        path.on_acked(2);
        path.on_counts(counts(0, 4, 0), 2);
        assert_eq!((path.state(), path.codepoint()), (State::Failed(Fault::Missing), Ecn::NotEct));
    }

    #[test]
    fn each_fault_is_told_from_the_others() {
        let fault = |encoding, first, second| {
            let mut path = path(encoding, 10, 2);
            path.on_counts(first, 2);
            path.on_counts(second, 0);
            path.state()
        };
        let abc = Encoding::Abc;
        assert_eq!(fault(abc, counts(1, 3, 0), counts(1, 2, 1)), State::Failed(Fault::Backwards));
        assert_eq!(fault(abc, counts(0, 1, 0), None), State::Failed(Fault::TooFew));
        assert_eq!(fault(abc, counts(4, 4, 3), None), State::Failed(Fault::TooMany));
        assert_eq!(fault(Encoding::Classic, counts(2, 1, 0), None), State::Failed(Fault::Foreign));
        assert_eq!(fault(Encoding::L4s, counts(1, 2, 0), None), State::Failed(Fault::Foreign));
        let most = (1 << 62) - 1;
        assert_eq!(fault(abc, counts(most, most, most), None), State::Failed(Fault::TooMany));
    }

    #[test]
    fn what_abc_and_bmcc_routers_write_is_no_fault() {
        for encoding in [Encoding::Abc, Encoding::AbcProxied, Encoding::Bmcc] {
            let mut path = path(encoding, 10, 6);
            path.on_counts(counts(2, 2, 2), 6);
            assert_eq!(path.state(), State::Capable);
        }
    }

    #[test]
    fn an_ack_without_counts_of_packets_that_were_never_marked_is_no_fault() {
        let mut path = path(Encoding::Abc, 0, 0);
        path.on_counts(None, 0);
        assert_eq!(path.state(), State::Testing);
    }
}
