//! The link: it owns a queue and serves it, by whatever [`Service`] it is given.
//!
//! ```text
//! arrival      at t: finish what is due by t; queue.enqueue(t)
//! service      at the service's ready time r: queue.dequeue(r), the packet leaves at service.begin(r, size)
//! departure    at that time f: Departed { at: f, queued: f - arrival }
//! ```
//!
//! `queued` is the time from arrival to departure, so the packet's own transmission is in it: this is what
//! Mahimahi logs. A queue that holds nothing is not asked. One that holds back what it has, because it shapes
//! by itself, is asked again when it says ([`Queue::held_until`]); the link is idle until then. An idle link
//! keeps no timer: what it could have carried meanwhile is counted when the next packet comes.
//!
//! | service | file |
//! |---|---|
//! | a trace of delivery opportunities | [`traced`] |
//! | a fixed rate, or a token bucket | [`fixed`] |
//! | rates that change in steps | [`steps`] |
//! | a rate that is set while the run goes on | [`adjusted`] |

use alloc::collections::VecDeque;

use brakelight_core::packet::Packet;
use brakelight_core::path::{Departed, Output, PathElement};
use brakelight_core::queue::{Backlog, Drops, LinkView, Queue};
use brakelight_core::time::{Duration, Time};
use brakelight_core::units::{Bytes, Rate};

pub mod adjusted;
mod ahead;
pub mod delaying;
pub mod fixed;
pub mod light_heavy;
pub mod restart;
pub mod steps;
pub mod traced;

dispatched! {
    /// How a link serves its queue: when it can take a packet, and when that packet has left.
    ///
    /// All times are scheduled ones. The calls come in this order: `wake` when a packet arrives at the idle
    /// link, then `ready` and `begin` for each packet, then `idle`.
    pub trait Service by pass_to_service {
        /// A packet arrives at `now` and finds the link idle.
        fn wake(&mut self, now: Time);

        /// Returns when the next packet can be taken.
        fn ready(&self) -> Time;

        /// A packet of `size` bytes at the IP layer is taken at [`ready`](Self::ready). Returns when its last
        /// byte leaves; [`Time::MAX`] if it never does.
        fn begin(&mut self, size: u32) -> Time;

        /// The queue holds nothing at `now`: what is left of the present opportunity is lost.
        fn idle(&mut self, now: Time);

        /// Returns the work at `now` that is left of the packet taken last, which leaves at or after `now`:
        /// in bit/s times nanoseconds.
        fn unfinished(&self, now: Time) -> u128;

        /// Returns what a packet of `size` bytes at the IP layer takes of the link's capacity.
        fn cost(&self, size: u32) -> Bytes;

        /// Returns the mean rate of the whole trace or schedule, in the bytes that [`cost`](Self::cost)
        /// counts.
        fn nominal(&self) -> Rate;

        /// Returns what the link can carry in `from <= t < to`, used or not, in the bytes that
        /// [`cost`](Self::cost) counts. Adjacent intervals add up exactly.
        fn capacity_between(&self, from: Time, to: Time) -> Bytes;

        /// Returns [`LinkView::capacity`] at `now`.
        fn capacity(&mut self, now: Time, window: Duration) -> Rate;

        /// Returns [`LinkView::unused`] as of the last `wake` or `idle`.
        fn unused(&self) -> Bytes;

        /// Returns [`LinkView::opportunity`].
        fn opportunity(&self) -> Bytes;

        /// Returns [`LinkView::lookahead`] at `now`.
        fn lookahead(&mut self, now: Time, ahead: Duration, window: Duration) -> Option<Rate>;
    }
}

/// A link with a queue `Q` and a service `S`.
#[derive(Clone, Debug)]
pub struct Link<P, Q, S> {
    queue: Q,
    service: S,
    /// When something happens next: the departure of the packet being sent, else the next packet's turn.
    /// [`Time::MAX`] while idle.
    due: Time,
    /// The packet being sent, as it leaves: at `due`.
    sending: Option<Departed<P>>,
    /// What happened and has not been polled yet. Empty unless the queue drops or calls come late.
    happened: VecDeque<Output<P>>,
    drops: Drops<P>,
}

impl<P: Packet, Q: Queue<P>, S: Service> Link<P, Q, S> {
    /// Returns an idle link.
    pub fn new(service: S, queue: Q) -> Self {
        Link { queue, service, due: Time::MAX, sending: None, happened: VecDeque::new(), drops: Drops::new() }
    }

    /// Returns its queue.
    pub fn queue(&self) -> &Q {
        &self.queue
    }

    /// Returns its service.
    pub fn service(&self) -> &S {
        &self.service
    }

    /// Returns what waits in its queue; the packet being sent is not in it.
    pub fn backlog(&self) -> Backlog {
        self.queue.backlog()
    }

    /// Returns what the link can carry in `from <= t < to`, used or not; see [`Service::capacity_between`].
    pub fn capacity_between(&self, from: Time, to: Time) -> Bytes {
        self.service.capacity_between(from, to)
    }

    /// Returns what a packet of `size` bytes takes of that capacity.
    pub fn cost(&self, size: u32) -> Bytes {
        self.service.cost(size)
    }

    /// Gives every packet that leaves by `now` to `take`, one after the other, until the queue drops one:
    /// that is for `poll`. Returns when something is due next; [`Time::MAX`] for never.
    #[inline(always)]
    pub fn hand_over(&mut self, now: Time, mut take: impl FnMut(&mut Departed<P>)) -> Time {
        while self.due <= now && self.happened.is_empty() {
            if let Some(sending) = &mut self.sending {
                take(sending);
                self.sending = None;
                self.end_service();
            }
            self.begin_due(now);
        }
        self.happened.front().map_or(self.due, Output::at)
    }

    /// Whether nothing waits and nothing is being sent.
    fn is_idle(&self) -> bool {
        self.due == Time::MAX && self.sending.is_none()
    }

    /// Moves the queue's drops to where they are polled from.
    #[cold]
    fn report_drops(&mut self) {
        self.happened.extend(self.drops.drain(..).map(Output::Dropped));
    }

    /// The packet being sent leaves when it is due. Returns `None` if there is none.
    #[inline(always)]
    fn depart(&mut self) -> Option<Output<P>> {
        // Written at once to where it is returned: a packet is not moved more often than it must be.
        let output = Some(Output::Departed(self.sending.take()?));
        self.end_service();
        output
    }

    /// The packet that was being sent has left.
    #[inline(always)]
    fn end_service(&mut self) {
        if self.queue.backlog().is_empty() {
            self.service.idle(self.due);
            self.due = Time::MAX;
        } else {
            self.due = self.service.ready();
        }
    }

    /// Takes the next packet, whose turn is due. The queue's drops are found in `happened`.
    #[inline(never)]
    fn begin(&mut self) {
        let at = self.due;
        let mut view = View { service: &mut self.service, now: at };
        self.queue.dequeue_to(&mut self.sending, at, &mut view, &mut self.drops);
        self.due = match &mut self.sending {
            Some(next) => {
                let (due, arrived) = (self.service.begin(next.packet.size()), next.at);
                (next.at, next.queued) = (due, due.since(arrived));
                due
            }
            None => self.rest(at),
        };
        if !self.drops.is_empty() {
            self.report_drops();
        }
    }

    /// The queue gave nothing at `at`. Returns when it is to be asked again; [`Time::MAX`] if it is empty.
    #[cold]
    fn rest(&mut self, at: Time) -> Time {
        self.service.idle(at);
        if self.queue.backlog().is_empty() {
            return Time::MAX;
        }
        // A shaper in the queue: until then the link stands idle, whatever arrives. One that forgets to say
        // when is asked a nanosecond later.
        let until = self.queue.held_until().max(at + Duration::from_nanos(1));
        self.service.wake(until);
        self.service.ready()
    }

    /// Returns the first of what happened and has not been polled.
    #[inline(never)]
    fn poll_happened(&mut self) -> Option<Output<P>> {
        self.happened.pop_front()
    }

    /// Takes the next packet if its turn has come, unless the link is idle: one call of `poll` less.
    #[inline(always)]
    fn begin_due(&mut self, now: Time) {
        if self.due <= now {
            self.begin();
        }
    }

    /// Does everything due by `now` and keeps it for `poll`, drops before the departure that follows them.
    #[cold]
    fn catch_up(&mut self, now: Time) {
        while self.due <= now {
            match self.depart() {
                Some(output) => self.happened.push_back(output),
                None => self.begin(),
            }
        }
    }
}

impl<P: Packet, Q: Queue<P>, S: Service> PathElement<P> for Link<P, Q, S> {
    #[inline(always)]
    fn accept(&mut self, now: Time, packet: P) {
        if self.due <= now {
            self.catch_up(now);
        }
        let idle = self.is_idle();
        if idle {
            self.service.wake(now);
        }
        let mut view = View { service: &mut self.service, now };
        self.queue.enqueue(now, packet, &mut view, &mut self.drops);
        if !self.drops.is_empty() {
            self.report_drops();
        }
        if idle {
            if self.queue.backlog().is_empty() {
                self.service.idle(now);
            } else {
                self.due = self.service.ready();
            }
        }
    }

    #[inline(always)]
    fn poll(&mut self, now: Time) -> Option<Output<P>> {
        while self.due <= now && self.sending.is_none() && self.happened.is_empty() {
            // A trace carries most packets in one opportunity: they leave when their turn comes. A queue that
            // shapes may give none, and be due again before a late `now`.
            self.begin();
        }
        if self.due > now || !self.happened.is_empty() {
            return self.poll_happened();
        }
        let output = self.depart();
        self.begin_due(now);
        output
    }

    #[inline(always)]
    fn next_wakeup(&self) -> Option<Time> {
        match self.happened.front() {
            Some(output) => Some(output.at()),
            None if self.due == Time::MAX => None,
            None => Some(self.due),
        }
    }

    fn for_each(&self, visit: &mut dyn FnMut(&P)) {
        self.queue.for_each(visit);
        if let Some(sending) = &self.sending {
            visit(&sending.packet);
        }
        for output in &self.happened {
            visit(output.packet());
        }
    }
}

/// The link as its queue sees it.
#[derive(Debug)]
pub struct View<'a, S> {
    service: &'a mut S,
    now: Time,
}

impl<'a, S> View<'a, S> {
    /// Returns the view at `now`.
    pub fn new(service: &'a mut S, now: Time) -> Self {
        View { service, now }
    }
}

impl<S: Service> LinkView for View<'_, S> {
    fn capacity(&mut self, window: Duration) -> Rate {
        self.service.capacity(self.now, window)
    }

    fn unused(&mut self) -> Bytes {
        self.service.unused()
    }

    fn opportunity(&self) -> Bytes {
        self.service.opportunity()
    }

    fn cost(&self, size: u32) -> Bytes {
        self.service.cost(size)
    }

    fn lookahead(&mut self, ahead: Duration, window: Duration) -> Option<Rate> {
        self.service.lookahead(self.now, ahead, window)
    }
}

/// The rate of `bits` within the last `window` at `now`, where the part before the run counts as `nominal`.
fn rate_in_window(bits: f64, now: Time, window: Duration, nominal: Rate) -> Rate {
    if window.is_zero() {
        return Rate::ZERO;
    }
    let missing = window.saturating_sub(now.since(Time::ZERO));
    let before = if missing.is_zero() { 0.0 } else { nominal.as_bps_f64() * missing.as_secs_f64() };
    Rate::from_bps_f64((bits + before) / window.as_secs_f64())
}

#[cfg(test)]
mod tests;
