//! A delay line whose delay is set while the run goes on: a route that changes.
//!
//! ```text
//! a packet that enters at t leaves at t + delay
//! order kept:   but no earlier than any packet that entered before it
//! ```
//!
//! What is under way when the delay changes arrives as it would have.

use alloc::collections::VecDeque;

use brakelight_core::frugal;
use brakelight_core::packet::Packet;
use brakelight_core::path::{Departed, Output, PathElement};
use brakelight_core::time::{Duration, Time};

use super::elements::Order;

/// Packets under way, by the time at which they leave; among equals the first to enter is the first to leave.
#[derive(Clone, Debug)]
pub struct VaryingDelay<P> {
    delay: Duration,
    keeps_order: bool,
    /// When the last of the packets so far leaves.
    last: Time,
    under_way: VecDeque<(Time, P)>,
}

impl<P: Packet> VaryingDelay<P> {
    /// Returns an empty line. Packets that keep their order leave no earlier than at `earliest`: it may
    /// follow another line.
    pub fn new(delay: Duration, order: Order, earliest: Time) -> Self {
        let under_way = VecDeque::new();
        VaryingDelay { delay, keeps_order: order != Order::Free, last: earliest, under_way }
    }

    /// Packets that enter from now on take `delay`, and overtake those before them only with [`Order::Free`].
    pub fn set(&mut self, delay: Duration, order: Order) {
        self.delay = delay;
        self.keeps_order = order != Order::Free;
    }
}

impl<P: Packet> PathElement<P> for VaryingDelay<P> {
    fn accept(&mut self, now: Time, packet: P) {
        let mut at = now + self.delay;
        if self.keeps_order {
            at = at.max(self.last);
        }
        if at >= self.last {
            self.last = at;
            frugal::push_back(&mut self.under_way, (at, packet));
        } else {
            // It overtakes some of those before it, which moves them or those behind: whichever are fewer.
            let behind = self.under_way.partition_point(|(other, _)| *other <= at);
            self.under_way.insert(behind, (at, packet));
        }
    }

    fn poll(&mut self, now: Time) -> Option<Output<P>> {
        let (first, _) = self.under_way.front()?;
        if *first > now {
            return None;
        }
        let (at, packet) = self.under_way.pop_front()?;
        Some(Output::Departed(Departed::passed(at, packet)))
    }

    fn next_wakeup(&self) -> Option<Time> {
        self.under_way.front().map(|(at, _)| *at)
    }

    fn for_each(&self, visit: &mut dyn FnMut(&P)) {
        self.under_way.iter().for_each(|(_, packet)| visit(packet));
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use brakelight_testkit::packet::Sample;

    use super::*;

    fn ms(millis: u64) -> Time {
        Time::from_millis(millis)
    }

    /// (id, ms) of what left.
    fn left(line: &mut VaryingDelay<Sample>) -> Vec<(u64, u64)> {
        let outputs = core::iter::from_fn(|| line.poll(ms(1000)));
        outputs.map(|output| (output.packet().id, output.at().as_nanos() / 1_000_000)).collect()
    }

    fn shortened(order: Order) -> VaryingDelay<Sample> {
        let mut line = VaryingDelay::new(Duration::from_millis(50), Order::Kept, Time::ZERO);
        line.accept(ms(0), Sample::new(0, 100));
        line.accept(ms(10), Sample::new(1, 100));
        line.set(Duration::from_millis(20), order);
        line.accept(ms(20), Sample::new(2, 100));
        line.accept(ms(45), Sample::new(3, 100));
        line
    }

    #[test]
    fn a_shorter_delay_lets_packets_bunch_up_but_not_overtake() {
        let mut line = shortened(Order::Kept);
        assert_eq!(line.next_wakeup(), Some(ms(50)));
        assert_eq!(left(&mut line), [(0, 50), (1, 60), (2, 60), (3, 65)]);
    }

    #[test]
    fn packets_overtake_where_that_is_asked_for() {
        assert_eq!(left(&mut shortened(Order::Free)), [(2, 40), (0, 50), (1, 60), (3, 65)]);
    }

    #[test]
    fn order_is_kept_again_towards_all_that_entered_before() {
        let mut line = shortened(Order::Free);
        line.set(Duration::from_millis(1), Order::Kept);
        line.accept(ms(50), Sample::new(4, 100));
        assert_eq!(left(&mut line).last(), Some(&(4, 65)));
    }

    #[test]
    fn a_line_may_follow_another() {
        let mut line = VaryingDelay::new(Duration::ZERO, Order::Kept, ms(7));
        line.accept(ms(3), Sample::new(0, 100));
        assert_eq!(left(&mut line), [(0, 7)]);
    }
}
