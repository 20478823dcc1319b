//! Links that need no events of their own while they are busy.
//!
//! A link is joined to the delay line behind it where nothing else feeds the line, and where a packet's
//! transmission takes less time than the line's delay. While such a link is busy, the line is never empty
//! when a packet leaves the link: it holds the one before. So nothing but the link and the back of the line
//! changes at that time. Both may be brought up to date later: before a packet enters the link, when the line
//! has run empty, and when the run stops. Until then the link lags. The bytes of the outcome are the same:
//!
//! - A link does all that is due when a packet arrives before it takes the packet.
//! - The line's entry in the schedule is made when the line has delivered a packet, with or without the
//!   event of the link.
//! - Only data passes the link. The statistics hear late of a waiting packet that the queue drops, and go by
//!   the time of the drop. Its endpoint hears late, too, and does nothing: only an ACK holds a slot.
//!
//! The first packet of a busy time has an event: the line may be empty when it leaves.

use brakelight_core::packet::{Duplicate, Packet};
use brakelight_core::path::{Departed, PathElement};
use brakelight_core::time::Time;
use brakelight_links::elements::AnyElement;

/// An element that may be joined to another.
pub trait Joinable<P: Packet>: PathElement<P> {
    /// Gives every packet that leaves by `now` to `take`, one after the other, until something else happened
    /// that `poll` returns. Returns when something is due next; [`Time::MAX`] for never.
    fn hand_over(&mut self, now: Time, take: impl FnMut(&mut Departed<P>)) -> Time;
}

impl<P: Duplicate> Joinable<P> for AnyElement<P> {
    #[inline(always)]
    fn hand_over(&mut self, now: Time, take: impl FnMut(&mut Departed<P>)) -> Time {
        match self {
            AnyElement::Link(link) => link.hand_over(now, take),
            _ => unreachable!("only links are joined"),
        }
    }
}

/// Which links are joined to which lines, by their positions among the elements.
#[derive(Clone, Debug, Default)]
pub(super) struct Joints {
    /// The pairs: the link, then its line.
    pairs: Vec<(usize, usize)>,
    /// Of each element that is in a pair, what it is there.
    roles: Vec<Role>,
}

/// What an element is to the joints.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) enum Role {
    /// In no pair.
    #[default]
    None,
    /// A link, up to date.
    Prompt(u32),
    /// A link that lags.
    Lagging {
        /// Its line.
        line: u32,
        /// When something is due next.
        due: Time,
    },
    /// The line behind a link.
    Line(u32),
}

impl Joints {
    /// Makes room for so many elements, which are in no pair unless they were before.
    pub(super) fn resize(&mut self, elements: usize) {
        self.roles.resize(elements, Role::None);
    }

    /// Joins `link` to `line`, both of which were in no pair.
    pub(super) fn join(&mut self, link: usize, line: usize) {
        assert_ne!(link, line, "a link and its line are two elements");
        assert_eq!((self.roles[link], self.roles[line]), (Role::None, Role::None), "both are in no pair");
        self.roles[link] = Role::Prompt(line as u32);
        self.roles[line] = Role::Line(link as u32);
        self.pairs.push((link, line));
    }

    /// Parts the pair that `element` is in, if it is in one. Its link must be up to date.
    pub(super) fn part(&mut self, element: usize) {
        let is_in = |&(link, line): &(usize, usize)| link == element || line == element;
        let Some(place) = self.pairs.iter().position(is_in) else { return };
        let (link, line) = self.pairs.swap_remove(place);
        debug_assert_eq!(self.roles[link], Role::Prompt(line as u32), "a link that lags keeps its line");
        (self.roles[link], self.roles[line]) = (Role::None, Role::None);
    }

    /// Returns what `element` is.
    #[inline(always)]
    pub(super) fn role(&self, element: usize) -> Role {
        self.roles[element]
    }

    /// Notes that `link` lags, and when something is due next; [`Time::MAX`] if that is never, so that it
    /// does not lag.
    #[inline(always)]
    pub(super) fn note(&mut self, link: usize, line: usize, due: Time) {
        let line = line as u32;
        self.roles[link] = if due == Time::MAX { Role::Prompt(line) } else { Role::Lagging { line, due } };
    }

    /// Notes that `link` is up to date and has an event of its own next.
    pub(super) fn set_prompt(&mut self, link: usize, line: usize) {
        self.roles[link] = Role::Prompt(line as u32);
    }

    /// Returns how many pairs there are.
    pub(super) fn len(&self) -> usize {
        self.pairs.len()
    }

    /// Returns the link and the line of pair number `pair` if the link lags.
    pub(super) fn lagging(&self, pair: usize) -> Option<(usize, usize)> {
        let (link, line) = self.pairs[pair];
        matches!(self.roles[link], Role::Lagging { .. }).then_some((link, line))
    }
}
