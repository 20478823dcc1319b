//! The driver over a real socket and under the real clock: one thread carries the packets of any number of connections, and
//! tasks of whatever runtime work on their streams.
//!
//! ```text
//! turn:   receive what came -> act on deadlines -> for each connection with news: tell tasks, send while its gate is open
//!         -> wait for the socket, for a task, or for the next deadline
//! ```
//!
//! A thread of its own, because a rate is kept by waking up in time: async runtimes round their timers to a millisecond, in
//! which a controller at 100 Mbit/s has eight packets to send. The wait is `ppoll`'s, whose slack is taken away.
//!
//! Packets that arrive have the time at which this thread read them, which a kernel's own stamp would tell better: quinn-udp 0.5
//! does not offer those. `docs/quic.md` says what that costs.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::io::{self, IoSliceMut};
use std::net::{IpAddr, SocketAddr};
use std::num::NonZeroU64;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Waker;
use std::time::Instant;

use brakelight_core::ecn::{Ecn, Encoding};
use brakelight_core::time::Time;
use brakelight_scenario::clock::Clock;
use brakelight_scenario::measure::distribution::Distribution;
use bytes::BytesMut;
use quinn_proto::{
    AckFrequencyConfig, ClientConfig, ConnectError, ConnectionHandle, DatagramEvent, Endpoint,
    EndpointConfig, Event, Incoming, ServerConfig, StreamEvent, StreamId, Transmit, TransportConfig, crypto,
};
use quinn_udp::{BATCH_SIZE, RecvMeta};
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};

use self::socket::{Sent, Socket};
use super::end::{Ears, End, Hearing, time};
use crate::adapter::{Factory, Governor, Settings};
use crate::stamps::Stamps;
use crate::tap::Tap;

mod handle;
mod socket;

pub use handle::{Connection, RecvStream, SendStream, StreamError};

/// Bytes that one receive may bring: a whole UDP datagram, or many that the kernel has joined.
const RECEIVE: usize = 1 << 16;
/// Receives before others have their turn.
const RECEIVES: usize = 8;
/// Transmissions of a connection before others have their turn.
const TRANSMISSIONS: usize = 32;
/// Bytes of IP and UDP headers.
const HEADERS_V4: u64 = 28;
const HEADERS_V6: u64 = 48;

/// What a connection is made with.
#[derive(Debug, Default)]
pub struct Opening {
    /// Transport settings. Congestion control and ACK frequency are set by the driver.
    pub transport: TransportConfig,
    /// What is called once the peer has shown that it is there.
    pub connected: Option<Connected>,
}

/// Called once, when a connection's handshake is complete.
pub struct Connected(Box<dyn FnOnce() + Send>);

impl Connected {
    /// What calls `act`.
    pub fn new(act: impl FnOnce() + Send + 'static) -> Self {
        Connected(Box::new(act))
    }
}

impl std::fmt::Debug for Connected {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Connected").finish_non_exhaustive()
    }
}

/// How a hub answers those who come.
pub struct Listen {
    /// Its cryptography.
    pub crypto: Arc<dyn crypto::ServerConfig>,
    /// What each connection is made with.
    pub opening: Box<dyn Fn() -> Opening + Send>,
}

/// A socket with its connections.
#[derive(Debug)]
pub struct Hub {
    shared: Arc<Shared>,
    address: SocketAddr,
    settings: Settings,
    thread: Option<std::thread::JoinHandle<()>>,
}

/// What the thread and the tasks share.
#[derive(Debug)]
struct Shared {
    state: Mutex<State>,
    bell: OwnedFd,
    base: Instant,
    stamps: Arc<Stamps>,
}

struct State {
    endpoint: Endpoint,
    listen: Option<(ServerConfig, Listen)>,
    settings: Settings,
    entries: HashMap<u64, Entry>,
    numbers: HashMap<ConnectionHandle, u64>,
    next: u64,
    /// Connections with news.
    news: VecDeque<u64>,
    deadlines: BTreeSet<(Time, u64)>,
    /// Whether the thread waits, and must be rung for.
    waiting: bool,
    stopped: bool,
    accepted: VecDeque<Result<Connection, (SocketAddr, String)>>,
    tasks: Vec<Waker>,
}

impl std::fmt::Debug for State {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("State").field("connections", &self.entries.len()).finish_non_exhaustive()
    }
}

/// A connection.
struct Entry {
    handle: ConnectionHandle,
    end: End,
    line: Arc<Line>,
    server: bool,
    connected: Option<Connected>,
    is_connected: bool,
    is_news: bool,
    scheduled: Option<Time>,
    readers: HashMap<StreamId, Waker>,
    writers: HashMap<StreamId, Waker>,
    /// Tasks that wait for anything else.
    tasks: Vec<Waker>,
}

/// What is known of a connection even after it.
#[derive(Debug)]
struct Line {
    remote: SocketAddr,
    governor: Arc<Governor>,
    rtts: Mutex<Rtts>,
    /// Why it is over.
    ended: std::sync::OnceLock<String>,
}

/// RTT samples, all of them, in a histogram.
#[derive(Clone, Debug, Default)]
pub struct Rtts {
    /// The samples.
    pub samples: Distribution,
    /// The smallest, exactly.
    pub least: Option<brakelight_core::time::Duration>,
}

impl Rtts {
    /// Counts one sample.
    pub fn record(&mut self, rtt: brakelight_core::time::Duration) {
        self.samples.record(rtt);
        self.least = Some(self.least.map_or(rtt, |least| least.min(rtt)));
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Shared {
    /// Says that connection `number` has news; the thread is rung for if it waits.
    fn tell(&self, state: &mut State, number: u64) {
        state.note(number);
        self.ring(state);
    }

    fn ring(&self, state: &mut State) {
        if std::mem::take(&mut state.waiting) {
            // A bell that cannot be rung has been rung 2^64 - 2 times.
            let _ = rustix::io::write(&self.bell, &1_u64.to_ne_bytes());
        }
    }

    fn now(&self) -> Time {
        time(self.base, Instant::now())
    }
}

impl State {
    fn note(&mut self, number: u64) {
        if let Some(entry) = self.entries.get_mut(&number)
            && !std::mem::replace(&mut entry.is_news, true)
        {
            self.news.push_back(number);
        }
    }
}

impl Hub {
    /// A hub at `address`, whose connections run the controller of `settings`; with `listen` it answers those who come.
    /// `buffer` bytes are asked for on either side of the socket.
    pub fn bind(
        address: SocketAddr,
        settings: Settings,
        listen: Option<Listen>,
        buffer: usize,
    ) -> io::Result<Self> {
        let socket = Socket::bind(address, buffer)?;
        let address = socket.address()?;
        let listen = listen.map(|listen| (ServerConfig::with_crypto(listen.crypto.clone()), listen));
        let server = listen.as_ref().map(|(config, _)| Arc::new(config.clone()));
        let endpoint =
            Endpoint::new(Arc::new(EndpointConfig::default()), server, !socket.may_fragment(), None);
        let unmarked = settings.encoding() == Encoding::None;
        let stamps = Arc::new(if unmarked { Stamps::always(Ecn::NotEct) } else { Stamps::new() });
        let state = State {
            endpoint,
            listen,
            settings: settings.clone(),
            entries: HashMap::new(),
            numbers: HashMap::new(),
            next: 0,
            news: VecDeque::new(),
            deadlines: BTreeSet::new(),
            waiting: false,
            stopped: false,
            accepted: VecDeque::new(),
            tasks: Vec::new(),
        };
        let shared = Arc::new(Shared {
            state: Mutex::new(state),
            bell: eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?,
            base: Instant::now(),
            stamps,
        });
        let carrier = Carrier { shared: shared.clone(), socket, buffer: Vec::new() };
        let thread =
            std::thread::Builder::new().name("quic".to_string()).spawn(move || carrier.run()).map(Some)?;
        Ok(Hub { shared, address, settings, thread })
    }

    /// Where its socket is.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Opens a connection to `server`, whose certificate should call it `name`.
    pub fn connect(
        &self,
        crypto: Arc<dyn crypto::ClientConfig>,
        opening: Opening,
        server: SocketAddr,
        name: &str,
    ) -> Result<Connection, ConnectError> {
        let (mut transport, control) =
            (opening.transport, Control::new(&self.settings, server, self.shared.base));
        control.apply(&mut transport);
        let mut config = ClientConfig::new(control.tap(&self.shared.stamps).client(crypto));
        config.transport_config(Arc::new(transport));
        let mut state = locked(&self.shared.state);
        let (handle, connection) = state.endpoint.connect(Instant::now(), config, server, name)?;
        let end = control.end(self.shared.base, connection);
        let number = state.begin(handle, end, control.governor, server, opening.connected, false);
        let connection = state.handle(&self.shared, number);
        self.shared.tell(&mut state, number);
        Ok(connection)
    }

    /// The next connection of those who came, once its handshake is complete; or from where one came that did not get so far,
    /// and why.
    pub async fn accept(&self) -> Result<Connection, (SocketAddr, String)> {
        std::future::poll_fn(|cx| {
            let mut state = locked(&self.shared.state);
            match state.accepted.pop_front() {
                Some(accepted) => std::task::Poll::Ready(accepted),
                None => {
                    state.tasks.push(cx.waker().clone());
                    std::task::Poll::Pending
                }
            }
        })
        .await
    }

    /// Waits until no connection is left that its peer could ask about.
    pub async fn wait_idle(&self) {
        std::future::poll_fn(|cx| {
            let mut state = locked(&self.shared.state);
            if state.entries.is_empty() {
                return std::task::Poll::Ready(());
            }
            state.tasks.push(cx.waker().clone());
            std::task::Poll::Pending
        })
        .await;
    }
}

impl Drop for Hub {
    fn drop(&mut self) {
        let mut state = locked(&self.shared.state);
        state.stopped = true;
        self.shared.ring(&mut state);
        drop(state);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// A connection's congestion control and its ears.
struct Control {
    governor: Arc<Governor>,
    ears: Arc<Ears>,
    marks: bool,
}

impl Control {
    fn new(settings: &Settings, remote: SocketAddr, base: Instant) -> Self {
        let mut settings = settings.clone();
        settings.overhead = overhead(remote);
        let marks = !matches!(settings.encoding(), Encoding::None | Encoding::Classic);
        let governor = Arc::new(Governor::new(settings, true, Some(base)));
        Control { marks, ears: Ears::beside(governor.clone()), governor }
    }

    /// Where every mark counts, the peer is asked to acknowledge every other packet, if it knows how to be asked
    /// (draft-ietf-quic-ack-frequency).
    fn apply(&self, transport: &mut TransportConfig) {
        transport.congestion_controller_factory(Factory::only(self.governor.clone()));
        if self.marks {
            transport.ack_frequency_config(Some(AckFrequencyConfig::default()));
        }
    }

    fn tap(&self, stamps: &Arc<Stamps>) -> Tap {
        let ears = self.ears.clone();
        Tap::new(Arc::new(move || ears.clone()), stamps.clone())
    }

    fn end(&self, base: Instant, connection: quinn_proto::Connection) -> End {
        let hearing = Hearing::new(self.ears.clone(), Clock::default(), true);
        End::new(base, connection, Some(self.governor.clone()), Some(hearing))
    }
}

/// Bytes of IP and UDP headers towards `remote`. A socket for both families sends an address of version 4 as itself.
fn overhead(remote: SocketAddr) -> u64 {
    match remote.ip().to_canonical() {
        IpAddr::V4(_) => HEADERS_V4,
        IpAddr::V6(_) => HEADERS_V6,
    }
}

impl State {
    fn begin(
        &mut self,
        handle: ConnectionHandle,
        end: End,
        governor: Arc<Governor>,
        remote: SocketAddr,
        connected: Option<Connected>,
        server: bool,
    ) -> u64 {
        let number = self.next;
        self.next += 1;
        let line =
            Arc::new(Line { remote, governor, rtts: Mutex::default(), ended: std::sync::OnceLock::new() });
        let entry = Entry {
            handle,
            end,
            line,
            server,
            connected,
            is_connected: false,
            is_news: false,
            scheduled: None,
            readers: HashMap::new(),
            writers: HashMap::new(),
            tasks: Vec::new(),
        };
        self.entries.insert(number, entry);
        self.numbers.insert(handle, number);
        number
    }

    fn handle(&self, shared: &Arc<Shared>, number: u64) -> Connection {
        Connection::new(shared.clone(), number, self.entries[&number].line.clone())
    }
}

/// The thread's own.
struct Carrier {
    shared: Arc<Shared>,
    socket: Socket,
    buffer: Vec<u8>,
}

impl Carrier {
    fn run(mut self) {
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
            for _ in 0..state.news.len() {
                if let Some(number) = state.news.pop_front() {
                    self.serve(&mut state, number);
                }
            }
            let rest = if state.news.is_empty() || self.socket.is_full() {
                state
                    .deadlines
                    .first()
                    .map(|&(at, _)| std::time::Duration::from_nanos(at.since(shared.now()).as_nanos()))
            } else {
                Some(std::time::Duration::ZERO)
            };
            state.waiting = true;
            drop(state);
            readable = self.wait(rest);
            locked(&shared.state).waiting = false;
        }
    }

    /// Waits `rest` long at most: whether the socket has something, or an error, for us.
    fn wait(&self, rest: Option<std::time::Duration>) -> bool {
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
                let ecn = meta.ecn.map_or(Ecn::NotEct, |ecn| Ecn::from_bits(ecn as u8));
                for datagram in bytes[..meta.len].chunks(meta.stride.max(1)) {
                    self.take(state, now, meta, ecn, BytesMut::from(datagram));
                }
            }
            if count < BATCH_SIZE {
                return;
            }
        }
    }

    /// One datagram.
    fn take(&mut self, state: &mut State, at: Instant, meta: &RecvMeta, ecn: Ecn, data: BytesMut) {
        self.buffer.clear();
        let codepoint = quinn_proto::EcnCodepoint::from_bits(ecn as u8);
        let event = state.endpoint.handle(at, meta.addr, meta.dst_ip, codepoint, data, &mut self.buffer);
        let now = time(self.shared.base, at);
        match event {
            None => {}
            Some(DatagramEvent::ConnectionEvent(handle, event)) => {
                let Some(&number) = state.numbers.get(&handle) else { return };
                if let Some(entry) = state.entries.get_mut(&number) {
                    entry.end.connection().handle_event(event);
                    entry.end.hear(now, ecn);
                    entry.take_rtt();
                }
                state.note(number);
            }
            Some(DatagramEvent::NewConnection(incoming)) => self.welcome(state, incoming, at),
            Some(DatagramEvent::Response(transmit)) => self.answer(&transmit),
        }
    }

    fn welcome(&mut self, state: &mut State, incoming: Incoming, at: Instant) {
        let Some((config, listen)) = &state.listen else {
            state.endpoint.ignore(incoming);
            return;
        };
        let remote = incoming.remote_address();
        let control = Control::new(&state.settings, remote, self.shared.base);
        let Opening { mut transport, connected } = (listen.opening)();
        control.apply(&mut transport);
        let mut config = config.clone();
        config.crypto = control.tap(&self.shared.stamps).server(listen.crypto.clone());
        config.transport = Arc::new(transport);
        self.buffer.clear();
        match state.endpoint.accept(incoming, at, &mut self.buffer, Some(Arc::new(config))) {
            Ok((handle, connection)) => {
                let end = control.end(self.shared.base, connection);
                let number = state.begin(handle, end, control.governor, remote, connected, true);
                state.note(number);
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
            if self.socket.send(&self.shared.stamps, &transmit, contents) == Sent::Full {
                break;
            }
        }
        while let Some(event) = entry.end.connection().poll_endpoint_events() {
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

    fn forget(&self, state: &mut State, number: u64) {
        let Some(mut entry) = state.entries.remove(&number) else { return };
        state.numbers.remove(&entry.handle);
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
        for (_, mut entry) in state.entries.drain() {
            entry.end_with("its endpoint is gone");
        }
        state.tasks.drain(..).for_each(Waker::wake);
    }
}

impl Entry {
    fn take_rtt(&mut self) {
        if let Some(rtt) = self.line.governor.take_rtt_sample() {
            locked(&self.line.rtts).record(rtt);
        }
    }

    /// Wakes whom it concerns. Of a connection that came: whether it is ready, or why it never will be.
    fn on_event(&mut self, event: Event) -> Option<Result<(), (SocketAddr, String)>> {
        match event {
            Event::Connected => {
                self.is_connected = true;
                if let Some(Connected(act)) = self.connected.take() {
                    act();
                }
                self.wake_tasks();
                return self.server.then_some(Ok(()));
            }
            Event::ConnectionLost { reason } => {
                let reason = reason.to_string();
                self.end_with(&reason);
                return (self.server && !self.is_connected).then_some(Err((self.line.remote, reason)));
            }
            Event::Stream(StreamEvent::Readable { id }) => wake(&mut self.readers, id),
            Event::Stream(
                StreamEvent::Writable { id } | StreamEvent::Finished { id } | StreamEvent::Stopped { id, .. },
            ) => wake(&mut self.writers, id),
            Event::Stream(StreamEvent::Opened { .. } | StreamEvent::Available { .. }) => self.wake_tasks(),
            _ => {}
        }
        None
    }

    fn wake_tasks(&mut self) {
        self.tasks.drain(..).for_each(Waker::wake);
    }

    /// Nothing more will happen, because of `reason` unless there was another before.
    fn end_with(&mut self, reason: &str) {
        self.line.ended.get_or_init(|| reason.to_string());
        let streams = self.readers.drain().chain(self.writers.drain());
        streams.for_each(|(_, waker)| waker.wake());
        self.wake_tasks();
    }
}

fn wake(wakers: &mut HashMap<StreamId, Waker>, id: StreamId) {
    if let Some(waker) = wakers.remove(&id) {
        waker.wake();
    }
}
