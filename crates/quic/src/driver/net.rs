//! The driver over a real socket and under the real clock: one thread carries the packets of any number of
//! connections, and tasks of whatever runtime work on their streams.
//!
//! ```text
//! turn:   receive what came -> act on deadlines -> for each connection with news: tell tasks, send while
//!         packets are admitted -> wait for the socket, for a task, or for the next deadline
//! ```
//!
//! A thread of its own, because a rate is kept by waking up in time: async runtimes round their timers to a
//! millisecond, in which a controller at 100 Mbit/s has eight packets to send. The wait is `ppoll`'s, whose
//! slack is taken away.
//!
//! Packets that arrive have the time at which this thread read them, which a kernel's own stamp would tell
//! better: quinn-udp 0.5 does not offer those. `docs/quic.md` says what that costs.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Waker;
use std::time::Instant;

use brakelight_core::ecn::{Ecn, Encoding};
use brakelight_core::random::Random;
use brakelight_core::time::Time;
use brakelight_scenario::clock::Clock;
use brakelight_scenario::measure::distribution::Distribution;
use quinn_proto::{
    AckFrequencyConfig, ClientConfig, ConnectError, ConnectionHandle, Endpoint, EndpointConfig, Event,
    ServerConfig, StreamEvent, StreamId, Transmit, TransportConfig, crypto,
};
use rustix::event::{EventfdFlags, eventfd};

use self::admission::Admission;
use self::carrier::Carrier;
use self::parting::Partings;
use self::socket::Socket;
use super::end::{Ears, End, Hearing, time};
use crate::adapter::{ControlSettings, ControllerAdapter, Factory, support};
use crate::io_counts::{IoCounts, IoMeter};
use crate::stamps::Stamps;
use crate::tap::Tap;

mod admission;
mod carrier;
mod handle;
mod parting;
mod socket;

pub use admission::Limits;
pub use handle::{QuicConnection, RecvStream, SendStream, StreamError};

/// Bytes of IP and UDP headers.
const HEADERS_V4: u64 = 28;
const HEADERS_V6: u64 = 48;

/// What leaves in so long may leave together, so that a system call carries many packets at high rates: 1 ms,
/// as `send_quantum` of draft-ietf-ccwg-bbr section 5.6.3 and `tcp_tso_autosize` of Linux 6.12 tcp_output.c
/// have it. Up to 11.6 Mbit/s it is one packet of 1,452 bytes.
const PACING_INTERVAL: brakelight_core::time::Duration = brakelight_core::time::Duration::from_millis(1);

/// Settings of a connection that is to be opened.
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
    /// Returns what calls `act`.
    pub fn new(act: impl FnOnce() + Send + 'static) -> Self {
        Connected(Box::new(act))
    }
}

impl std::fmt::Debug for Connected {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Connected").finish_non_exhaustive()
    }
}

/// How a hub accepts connections.
pub struct Listen {
    /// Its cryptography.
    pub crypto: Arc<dyn crypto::ServerConfig>,
    /// What each connection is made with.
    pub opening: Box<dyn Fn() -> Opening + Send>,
    /// How many it takes.
    pub limits: Limits,
}

/// A socket with its connections.
#[derive(Debug)]
pub struct Hub {
    shared: Arc<Shared>,
    address: SocketAddr,
    settings: ControlSettings,
    thread: Option<std::thread::JoinHandle<()>>,
}

/// What the thread and the tasks share.
#[derive(Debug)]
struct Shared {
    state: Mutex<State>,
    bell: OwnedFd,
    base: Instant,
    stamps: Arc<Stamps>,
    meter: Arc<IoMeter>,
}

struct State {
    endpoint: Endpoint,
    listen: Option<(ServerConfig, Listen)>,
    admission: Admission,
    settings: ControlSettings,
    /// Each by itself, since a connection has some ten kilobytes and the map keeps the room of the most that
    /// there ever were.
    entries: HashMap<u64, Box<Entry>>,
    numbers: HashMap<ConnectionHandle, u64>,
    partings: Partings,
    next: u64,
    /// Connections with news.
    news: VecDeque<u64>,
    deadlines: BTreeSet<(Time, u64)>,
    /// Whether the thread waits, and must be rung for.
    waiting: bool,
    stopped: bool,
    accepted: VecDeque<Result<QuicConnection, (SocketAddr, String)>>,
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
    /// The packet that tells the peer of the end, where this end has closed the connection.
    farewell: Option<(Transmit, Box<[u8]>)>,
    readers: HashMap<StreamId, Waker>,
    writers: HashMap<StreamId, Waker>,
    /// Tasks that wait for anything else.
    tasks: Vec<Waker>,
}

/// What is known of a connection even after it.
#[derive(Debug)]
struct Line {
    remote: SocketAddr,
    adapter: Arc<ControllerAdapter>,
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

    /// Datagrams with `ecn` came at `now` for connection `number`, or for none.
    fn hear(&mut self, number: Option<u64>, now: Time, ecn: Ecn) {
        let Some(number) = number else { return };
        if let Some(entry) = self.entries.get_mut(&number) {
            entry.end.hear(now, ecn);
            entry.take_rtt();
        }
        self.note(number);
    }
}

impl Hub {
    /// Returns a hub at `address`, whose connections run the controller of `settings`; with `listen` it
    /// answers those who come. `buffer` bytes are asked for on either side of the socket.
    pub fn bind(
        address: SocketAddr,
        settings: ControlSettings,
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
            admission: Admission::new(listen.as_ref().map_or(Limits::default(), |(_, listen)| listen.limits)),
            listen,
            settings: settings.clone(),
            entries: HashMap::new(),
            numbers: HashMap::new(),
            partings: Partings::default(),
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
            meter: socket.meter().clone(),
        });
        let carrier = Carrier::new(shared.clone(), socket);
        let thread =
            std::thread::Builder::new().name("quic".to_string()).spawn(move || carrier.run()).map(Some)?;
        Ok(Hub { shared, address, settings, thread })
    }

    /// Returns where its socket is.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns the system calls of its socket so far, and the datagrams that they carried.
    pub fn io_counts(&self) -> IoCounts {
        self.shared.meter.counts()
    }

    /// Opens a connection to `server`, whose certificate should call it `name`.
    pub fn connect(
        &self,
        crypto: Arc<dyn crypto::ClientConfig>,
        opening: Opening,
        server: SocketAddr,
        name: &str,
    ) -> Result<QuicConnection, ConnectError> {
        let mut transport = opening.transport;
        let mut state = locked(&self.shared.state);
        if state.stopped {
            return Err(ConnectError::EndpointStopping);
        }
        let control = Control::new(&self.settings, state.next, server, self.shared.base);
        control.apply(&mut transport);
        let mut config = ClientConfig::new(control.tap(&self.shared.stamps).client(crypto));
        config.transport_config(Arc::new(transport));
        let (handle, connection) = state.endpoint.connect(Instant::now(), config, server, name)?;
        let end = control.end(self.shared.base, connection);
        let number = state.begin(handle, end, control.adapter, server, opening.connected, false);
        let connection = state.handle(&self.shared, number);
        self.shared.tell(&mut state, number);
        Ok(connection)
    }

    /// Returns the next connection of those who came, once its handshake is complete; or from where one came
    /// that did not get so far, and why. None once the thread that carries packets has ended.
    pub async fn accept(&self) -> Option<Result<QuicConnection, (SocketAddr, String)>> {
        std::future::poll_fn(|cx| {
            let mut state = locked(&self.shared.state);
            match state.accepted.pop_front() {
                Some(accepted) => std::task::Poll::Ready(Some(accepted)),
                None if state.stopped => std::task::Poll::Ready(None),
                None => {
                    state.tasks.push(cx.waker().clone());
                    std::task::Poll::Pending
                }
            }
        })
        .await
    }

    /// Returns whether it has no connection, not even a half-open one.
    pub fn is_idle(&self) -> bool {
        locked(&self.shared.state).entries.is_empty()
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
    adapter: Arc<ControllerAdapter>,
    ears: Arc<Ears>,
    ack_frequency: Option<AckFrequencyConfig>,
}

impl Control {
    /// That of a hub's connection `number`, whose random numbers are its own.
    fn new(settings: &ControlSettings, number: u64, remote: SocketAddr, base: Instant) -> Self {
        let mut settings = settings.clone();
        settings.overhead = overhead(remote);
        settings.pacing_interval = PACING_INTERVAL;
        settings.random = Random::stream(number, "controller");
        let ack_frequency = support::ack_frequency(settings.controller());
        let adapter = Arc::new(ControllerAdapter::new(settings, true, Some(base)));
        Control { ack_frequency, ears: Ears::beside(adapter.clone()), adapter }
    }

    /// Sets the controller, and the ACK frequency that suits it.
    fn apply(&self, transport: &mut TransportConfig) {
        transport.congestion_controller_factory(Factory::only(self.adapter.clone()));
        transport.ack_frequency_config(self.ack_frequency.clone());
    }

    fn tap(&self, stamps: &Arc<Stamps>) -> Tap {
        let ears = self.ears.clone();
        Tap::new(Arc::new(move || ears.clone()), stamps.clone())
    }

    fn end(&self, base: Instant, connection: quinn_proto::Connection) -> End {
        let hearing = Hearing::new(self.ears.clone(), Clock::default(), true);
        End::new(base, connection, Some(self.adapter.clone()), Some(hearing))
    }
}

/// Bytes of IP and UDP headers towards `remote`. A socket for both families sends an address of version 4 as
/// itself.
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
        adapter: Arc<ControllerAdapter>,
        remote: SocketAddr,
        connected: Option<Connected>,
        server: bool,
    ) -> u64 {
        let number = self.next;
        self.next += 1;
        let line =
            Arc::new(Line { remote, adapter, rtts: Mutex::default(), ended: std::sync::OnceLock::new() });
        let entry = Entry {
            handle,
            end,
            line,
            server,
            connected,
            is_connected: false,
            is_news: false,
            scheduled: None,
            farewell: None,
            readers: HashMap::new(),
            writers: HashMap::new(),
            tasks: Vec::new(),
        };
        self.entries.insert(number, Box::new(entry));
        self.numbers.insert(handle, number);
        number
    }

    fn handle(&self, shared: &Arc<Shared>, number: u64) -> QuicConnection {
        QuicConnection::new(shared.clone(), number, self.entries[&number].line.clone())
    }
}

impl Entry {
    fn take_rtt(&mut self) {
        if let Some(rtt) = self.line.adapter.settle() {
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
