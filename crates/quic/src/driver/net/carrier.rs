//! The thread of a hub, turn by turn.

use std::io::IoSliceMut;
use std::num::NonZeroU64;
use std::sync::Arc;
use std::task::Waker;
use std::time::{Duration, Instant};

use brakelight_core::ecn::Ecn;
use bytes::BytesMut;
use quinn_proto::{DatagramEvent, EndpointEvent, Incoming, Transmit};
use quinn_udp::{BATCH_SIZE, RecvMeta};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::admission::Verdict;
use super::socket::{Sent, Socket};
use super::{Control, Opening, Shared, State, locked};
use crate::driver::end::time;

/// Bytes that one receive may bring: a whole UDP datagram, or many that the kernel has joined.
const RECEIVE: usize = 1 << 16;
/// Receives before others have their turn.
const RECEIVES: usize = 8;
/// Transmissions of a connection before others have their turn.
const TRANSMISSIONS: usize = 32;

/// The thread's own.
pub(super) struct Carrier {
    shared: Arc<Shared>,
    socket: Socket,
    buffer: Vec<u8>,
}

impl Carrier {
    /// What carries the packets of `shared` over `socket`.
    pub(super) fn new(shared: Arc<Shared>, socket: Socket) -> Self {
        Carrier { shared, socket, buffer: Vec::new() }
    }

    /// Takes turns until the hub is gone.
    pub(super) fn run(mut self) {
        // A wait that lasts longer is a packet that leaves late, and no more.
        let _ = rustix::thread::set_current_timer_slack(NonZeroU64::new(1));
        let mut buffers = vec![0; RECEIVE * BATCH_SIZE];
        let shared = self.shared.clone();
        let mut readable = false;
        loop {
            let mut state = locked(&shared.state);
            if state.stopped {
                return;
            }
            if readable {
                self.receive(&mut state, &mut buffers);
            }
            let now = shared.now();
            while let Some(handle) = state.partings.let_go(now) {
                state.endpoint.handle_event(handle, EndpointEvent::drained());
            }
            while let Some(&(at, number)) = state.deadlines.first()
                && at <= now
            {
                state.deadlines.pop_first();
                if let Some(entry) = state.entries.get_mut(&number) {
                    entry.scheduled = None;
                    entry.end.on_deadline(now);
                    entry.take_rtt();
                }
                state.note(number);
            }
            self.socket.flush(&shared.stamps);
            for _ in 0..state.news.len() {
                if let Some(number) = state.news.pop_front() {
                    self.serve(&mut state, number);
                }
            }
            let rest = if state.news.is_empty() || self.socket.is_full() {
                let deadline = state.deadlines.first().map(|&(at, _)| at);
                let next = deadline.into_iter().chain(state.partings.next()).min();
                next.map(|at| Duration::from_nanos(at.since(shared.now()).as_nanos()))
            } else {
                Some(Duration::ZERO)
            };
            state.waiting = true;
            drop(state);
            readable = self.wait(rest);
            locked(&shared.state).waiting = false;
        }
    }

    /// Waits `rest` long at most: whether the socket has something, or an error, for us.
    fn wait(&self, rest: Option<Duration>) -> bool {
        let wanted = if self.socket.is_full() { PollFlags::IN | PollFlags::OUT } else { PollFlags::IN };
        let mut events = [PollFd::new(&self.socket, wanted), PollFd::new(&self.shared.bell, PollFlags::IN)];
        let rest = rest.and_then(|rest| Timespec::try_from(rest).ok());
        if poll(&mut events, rest.as_ref()).is_err() {
            // An interrupted wait is a short one.
            return true;
        }
        if !events[1].revents().is_empty() {
            let mut count = [0; 8];
            let _ = rustix::io::read(&self.shared.bell, &mut count);
        }
        events[0].revents().intersects(PollFlags::IN | PollFlags::ERR)
    }

    fn receive(&mut self, state: &mut State, buffers: &mut [u8]) {
        for _ in 0..RECEIVES {
            let mut metas = [RecvMeta::default(); BATCH_SIZE];
            let mut chunks = buffers.chunks_exact_mut(RECEIVE);
            let mut slices: [IoSliceMut<'_>; BATCH_SIZE] =
                std::array::from_fn(|_| IoSliceMut::new(chunks.next().unwrap_or_default()));
            let Ok(count) = self.socket.receive(&mut slices, &mut metas) else { return };
            let now = Instant::now();
            for (meta, bytes) in metas.iter().zip(&slices).take(count) {
                self.take_message(state, now, meta, BytesMut::from(&bytes[..meta.len]));
            }
            if count < BATCH_SIZE {
                return;
            }
        }
    }

    /// One message: a datagram, or many that the kernel has joined, which came from one address with one
    /// codepoint. Those of one connection are heard together.
    fn take_message(&mut self, state: &mut State, at: Instant, meta: &RecvMeta, mut data: BytesMut) {
        let ecn = meta.ecn.map_or(Ecn::NotEct, |ecn| Ecn::from_bits(ecn as u8));
        let now = time(self.shared.base, at);
        let mut heard = None;
        while !data.is_empty() {
            let datagram = data.split_to(meta.stride.clamp(1, data.len()));
            let number = self.take(state, at, meta, ecn, datagram);
            if number != heard {
                state.hear(heard, now, ecn);
                heard = number;
            }
        }
        state.hear(heard, now, ecn);
    }

    /// One datagram. Returns which connection it was for, if for one that goes on.
    fn take(
        &mut self,
        state: &mut State,
        at: Instant,
        meta: &RecvMeta,
        ecn: Ecn,
        data: BytesMut,
    ) -> Option<u64> {
        self.buffer.clear();
        let codepoint = quinn_proto::EcnCodepoint::from_bits(ecn as u8);
        let event = state.endpoint.handle(at, meta.addr, meta.dst_ip, codepoint, data, &mut self.buffer);
        match event {
            None => {}
            Some(DatagramEvent::ConnectionEvent(handle, event)) => {
                let Some(&number) = state.numbers.get(&handle) else {
                    if let Some((transmit, contents)) = state.partings.answer(handle) {
                        self.buffer.extend_from_slice(contents);
                        self.answer(transmit);
                    }
                    return None;
                };
                if let Some(entry) = state.entries.get_mut(&number) {
                    entry.end.connection().handle_event(event);
                    // Each ACK is an event of its own, and has its own RTT.
                    entry.take_rtt();
                }
                return Some(number);
            }
            Some(DatagramEvent::NewConnection(incoming)) => self.welcome(state, incoming, at),
            Some(DatagramEvent::Response(transmit)) => self.answer(&transmit),
        }
        None
    }

    fn welcome(&mut self, state: &mut State, incoming: Incoming, at: Instant) {
        if state.listen.is_none() {
            state.endpoint.ignore(incoming);
            return;
        }
        let remote = incoming.remote_address();
        let verdict = state.admission.judge(remote, incoming.remote_address_validated());
        self.buffer.clear();
        match verdict {
            Verdict::Accept | Verdict::Replace(_) => {}
            Verdict::Retry => {
                // Who has not shown that it can receive may always be asked to.
                if let Ok(transmit) = state.endpoint.retry(incoming, &mut self.buffer) {
                    self.answer(&transmit);
                }
                return;
            }
            Verdict::Refuse => {
                let transmit = state.endpoint.refuse(incoming, &mut self.buffer);
                self.answer(&transmit);
                return;
            }
        }
        let Some((config, listen)) = &state.listen else { return };
        let control = Control::new(&state.settings, state.next, remote, self.shared.base);
        let Opening { mut transport, connected } = (listen.opening)();
        control.apply(&mut transport);
        let mut config = config.clone();
        config.crypto = control.tap(&self.shared.stamps).server(listen.crypto.clone());
        config.transport = Arc::new(transport);
        match state.endpoint.accept(incoming, at, &mut self.buffer, Some(Arc::new(config))) {
            Ok((handle, connection)) => {
                let end = control.end(self.shared.base, connection);
                let number = state.begin(handle, end, control.adapter, remote, connected, true);
                state.admission.came(number, remote);
                state.note(number);
                if let Verdict::Replace(oldest) = verdict {
                    self.give_up(state, oldest);
                }
            }
            Err(refused) => {
                if let Some(transmit) = &refused.response {
                    self.answer(transmit);
                }
            }
        }
    }

    /// Sends what no connection does. Lost where the socket is full.
    fn answer(&mut self, transmit: &Transmit) {
        if self.socket.is_full() {
            return;
        }
        let contents = &self.buffer[..transmit.size];
        let _ = self.socket.send(&self.shared.stamps, transmit, contents);
    }

    /// Tells the tasks of connection `number` what happened, and sends what it has to send.
    fn serve(&mut self, state: &mut State, number: u64) {
        let Some(entry) = state.entries.get_mut(&number) else { return };
        entry.is_news = false;
        let now = self.shared.now();
        let mut accepted = None;
        while let Some(event) = entry.end.poll_event(now) {
            accepted = entry.on_event(event).or(accepted);
        }
        let mut idle = false;
        for _ in 0..TRANSMISSIONS {
            if !self.socket.flush(&self.shared.stamps) {
                break;
            }
            self.buffer.clear();
            let now = self.shared.now();
            let Some(transmit) = entry.end.poll_transmit(now, self.socket.most(), &mut self.buffer) else {
                idle = true;
                break;
            };
            let contents = &self.buffer[..transmit.size];
            let sent = self.socket.send(&self.shared.stamps, &transmit, contents);
            if entry.server && entry.end.connection().is_closed() {
                // A closed connection sends nothing else.
                entry.farewell = Some((transmit, contents.into()));
            }
            if sent == Sent::Full {
                break;
            }
        }
        while let Some(event) = entry.end.connection().poll_endpoint_events() {
            if event.is_drained() && entry.farewell.is_some() {
                continue;
            }
            if let Some(answer) = state.endpoint.handle_event(entry.handle, event) {
                entry.end.connection().handle_event(answer);
                idle = false;
            }
        }
        if idle {
            entry.end.note_deadline();
            let deadline = entry.end.deadline();
            if entry.scheduled != deadline {
                if let Some(at) = entry.scheduled {
                    state.deadlines.remove(&(at, number));
                }
                state.deadlines.extend(deadline.map(|at| (at, number)));
                entry.scheduled = deadline;
            }
        }
        let drained = entry.end.connection().is_drained();
        match accepted {
            Some(Ok(())) => {
                state.admission.connected(number);
                let connection = state.handle(&self.shared, number);
                state.accepted.push_back(Ok(connection));
                state.tasks.drain(..).for_each(Waker::wake);
            }
            Some(Err(failed)) => {
                state.accepted.push_back(Err(failed));
                state.tasks.drain(..).for_each(Waker::wake);
            }
            None => {}
        }
        if drained {
            self.forget(state, number);
        } else if !idle {
            state.note(number);
        }
    }

    /// Takes no part any more in connection `number`, and tells its peer nothing.
    fn give_up(&self, state: &mut State, number: u64) {
        if let Some(entry) = state.entries.get_mut(&number) {
            entry.farewell = None;
            state.endpoint.handle_event(entry.handle, EndpointEvent::drained());
            self.forget(state, number);
        }
    }

    fn forget(&self, state: &mut State, number: u64) {
        let Some(mut entry) = state.entries.remove(&number) else { return };
        if entry.server {
            state.admission.left(number, entry.line.remote);
        }
        state.numbers.remove(&entry.handle);
        if let Some((transmit, contents)) = entry.farewell.take() {
            state.partings.keep(self.shared.now(), entry.handle, transmit, contents);
        }
        if let Some(at) = entry.scheduled {
            state.deadlines.remove(&(at, number));
        }
        entry.end_with("the connection is over");
        state.tasks.drain(..).for_each(Waker::wake);
    }
}

impl Drop for Carrier {
    /// Nobody carries packets any more, so nobody must wait for one.
    fn drop(&mut self) {
        let mut state = locked(&self.shared.state);
        state.stopped = true;
        for (_, mut entry) in state.entries.drain() {
            entry.end_with("its endpoint is gone");
        }
        state.tasks.drain(..).for_each(Waker::wake);
    }
}
