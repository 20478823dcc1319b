//! The end that asks, measures and tells.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use brakelight_core::time::Duration as Span;
use brakelight_scenario::measure::distribution::Distribution;
use quinn::{ConnectionError, TransportConfig};
use rustix::time::{ClockId, clock_gettime};
use tokio::time::{Instant, MissedTickBehavior};

use super::identity::{Fingerprint, Trust, plain};
use super::link::{Connection, RecvStream, SendStream};
use super::qlog::{Folder, Logs, Role};
use super::token::Token;
use super::watch::{SenderReport, Watch};
use super::wire::{RECEIVED_LENGTH, Received, Request};
use super::{Control, Error, Parts, SOCKET_BUFFER};
use crate::adapter::PacketSender;
use crate::driver::net::{Hub, Opening, StreamError};

/// How long a connection may take to come about.
const PATIENCE: Duration = Duration::from_secs(10);

/// How long nothing may come from the server before it is taken for dead: longer than the outages of mobile
/// links, and than five probes in a row that are lost on a crowded one. Probe timeouts double (RFC 9002
/// section 6.2.1): from half a second, five take 15.5 s.
const SILENCE: Duration = Duration::from_secs(30);

/// How often a connection without work shows that it lives: several times before it would be given up.
const KEEP_ALIVE: Duration = Duration::from_secs(3);

/// How long the last answer may take after the end: it may be lost as often as anything else.
const FAREWELL: Duration = SILENCE;

/// How long a measurement that failed waits for its connections to end.
const PARTING: Duration = Duration::from_secs(1);

/// Bytes of a server's report, of which a histogram is nearly all: several times what one of every RTT can
/// take.
const LONGEST_REPORT: usize = 1 << 20;

/// Payload of either half of a probe.
const PROBE: u64 = 64;

/// A measurement plan.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The server.
    pub server: SocketAddr,
    /// What its certificate should call it.
    pub server_name: String,
    /// Whether that matters.
    pub trust: Trust,
    /// What the server asks its clients to know, if it does.
    pub token: Option<Token>,
    /// Congestion control of what the client sends.
    pub control: Control,
    /// The traffic of a measurement.
    pub work: Work,
    /// When a measurement ends.
    pub until: Until,
    /// Connections that do it side by side.
    pub connections: u32,
    /// How often one more connection sends a small message there and back, if at all.
    pub probe: Option<Duration>,
    /// Where qlog files go, if anywhere, and how much of them.
    pub qlog: Option<Logs>,
}

/// The traffic of a measurement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Work {
    /// Send bytes.
    Upload,
    /// Fetch bytes.
    Download,
    /// Send a message and wait for the answer, one after another.
    Exchange {
        /// Bytes of each message.
        request: u64,
        /// Bytes of each answer.
        response: u64,
    },
}

/// When a measurement ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Until {
    /// After so long.
    Time(Duration),
    /// After so many bytes of payload of all connections together; of exchanges, as many as take them.
    Bytes(u64),
}

impl Until {
    /// Returns how much of it is done: 0 at the start; 1 at the end, or more.
    pub fn share(self, elapsed: Duration, bytes: u64) -> f64 {
        match self {
            Until::Time(time) => elapsed.as_secs_f64() / time.as_secs_f64(),
            Until::Bytes(all) => bytes as f64 / all as f64,
        }
    }
}

/// The result of one connection.
#[derive(Clone, Debug, Default)]
pub struct Flow {
    /// Payload that arrived at its receiver, and what it took on the wire.
    pub received: Received,
    /// What its sender knows.
    pub report: SenderReport,
    /// From a request to the end of the answer.
    pub exchanges: Option<Distribution>,
}

/// The result of a measurement.
#[derive(Clone, Debug, Default)]
pub struct Measurement {
    /// One per connection.
    pub flows: Vec<Flow>,
    /// What the probe saw.
    pub probe: Option<Distribution>,
    /// How long it took.
    pub elapsed: Duration,
    /// Processor time of this process meanwhile.
    pub processor: Duration,
    /// The server's certificate.
    pub peer: Option<Fingerprint>,
    /// Whether events are missing from the qlog files because their limit was reached.
    pub logs_cut: bool,
}

/// Does what `plan` says. `progress` is told every 200 ms how long it has been going on and how many bytes of
/// payload have arrived.
pub fn measure(plan: &Plan, progress: impl Fn(Duration, u64) + Send + Sync) -> Result<Measurement, Error> {
    super::runtime()?.block_on(run(plan, &progress))
}

async fn run(plan: &Plan, progress: &(impl Fn(Duration, u64) + Send + Sync)) -> Result<Measurement, Error> {
    let client = Client::new(plan)?;
    let mut connections = Vec::new();
    let mut measured = run_over(&client, &mut connections, progress).await;
    // However it went: what a server is not told of, it keeps until it has heard nothing for half a minute.
    connections.iter().for_each(|connection| connection.close(0, b"done"));
    match &mut measured {
        Ok(measured) => {
            client.host.wait_idle().await;
            measured.logs_cut = client.qlog.as_ref().is_some_and(Folder::is_full);
        }
        // A connection that is not made yet may take longer.
        Err(_) => drop(tokio::time::timeout(PARTING, client.host.wait_idle()).await),
    }
    measured
}

/// The measurement, over connections that it opens and leaves open.
async fn run_over(
    client: &Client<'_>,
    connections: &mut Vec<Connection>,
    progress: &(impl Fn(Duration, u64) + Send + Sync),
) -> Result<Measurement, Error> {
    let plan = client.plan;
    for number in 1..=plan.connections {
        connections.push(client.connect(&number.to_string()).await?);
    }
    let probe = match plan.probe {
        None => None,
        Some(interval) => Some((client.connect("probe").await?, interval)),
    };
    let peer = connections.first().and_then(Connection::peer);
    let (began, processor) = (Instant::now(), processor_time());
    let total = Arc::new(AtomicU64::new(0));
    let deadline = match plan.until {
        Until::Time(time) => Some(began + time),
        Until::Bytes(_) => None,
    };
    let tasks: Vec<_> = (connections.iter().zip(shares(plan)))
        .map(|(connection, bytes)| {
            let job = Job { work: plan.work, deadline, bytes, total: total.clone() };
            tokio::spawn(job.explained(connection.clone()))
        })
        .collect();
    let probing =
        probe.as_ref().map(|(connection, interval)| tokio::spawn(ping(connection.clone(), *interval)));
    let mut flows = Vec::new();
    let ended = {
        let all = async {
            for task in tasks {
                flows.push(task.await.expect("no task panics"));
            }
        };
        tokio::pin!(all);
        let mut ticks = tokio::time::interval(Duration::from_millis(200));
        loop {
            tokio::select! {
                () = &mut all => break Instant::now(),
                _ = ticks.tick() => progress(began.elapsed(), total.load(Ordering::Relaxed)),
            }
        }
    };
    let processor = processor_time().saturating_sub(processor);
    let flows = flows.into_iter().collect::<Result<Vec<Flow>, String>>();
    let flows = flows.map_err(|reason| Error::Lost { server: plan.server, reason })?;
    let probe = match (probe, probing) {
        (Some((connection, _)), Some(task)) => {
            connection.close(0, b"done");
            task.await.ok()
        }
        _ => None,
    };
    Ok(Measurement { flows, probe, elapsed: ended - began, processor, peer, logs_cut: false })
}

/// Bytes of each connection, where bytes end it.
fn shares(plan: &Plan) -> impl Iterator<Item = Option<u64>> {
    let count = u64::from(plan.connections);
    let until = plan.until;
    (0..count).map(move |at| match until {
        Until::Time(_) => None,
        Until::Bytes(bytes) => Some(bytes / count + u64::from(at < bytes % count)),
    })
}

fn processor_time() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// Who carries the packets.
enum Host {
    Driver(Hub),
    Stack { parts: Parts, endpoint: quinn::Endpoint },
}

impl Host {
    fn new(control: &Control, address: SocketAddr) -> Result<Self, Error> {
        match control {
            Control::Ours(settings) if settings.packet_sender() == PacketSender::Driver => {
                let hub = Hub::bind(address, settings.as_ref().clone(), None, SOCKET_BUFFER);
                Ok(Host::Driver(hub.map_err(|source| Error::Bind { address, source })?))
            }
            _ => {
                let parts = Parts::new(control);
                let endpoint = parts.endpoint(address)?;
                Ok(Host::Stack { parts, endpoint })
            }
        }
    }

    async fn wait_idle(&self) {
        match self {
            Host::Driver(hub) => hub.wait_idle().await,
            Host::Stack { endpoint, .. } => endpoint.wait_idle().await,
        }
    }
}

struct Client<'a> {
    plan: &'a Plan,
    host: Host,
    crypto: Arc<quinn::crypto::rustls::QuicClientConfig>,
    qlog: Option<Folder>,
}

impl<'a> Client<'a> {
    fn new(plan: &'a Plan) -> Result<Self, Error> {
        let any = match plan.server {
            SocketAddr::V4(_) => IpAddr::from(Ipv4Addr::UNSPECIFIED),
            SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
        };
        let host = Host::new(&plan.control, (any, 0).into())?;
        let crypto = plan.trust.crypto().map_err(|error| Error::System(std::io::Error::other(error)))?;
        let qlog = plan.qlog.as_ref().map(|logs| Folder::of(logs, Role::Client)).transpose()?;
        Ok(Client { plan, host, crypto: Arc::new(crypto), qlog })
    }

    async fn connect(&self, name: &str) -> Result<Connection, Error> {
        let mut transport = super::transport();
        transport
            .max_idle_timeout(Some(SILENCE.try_into().expect("a few seconds")))
            .keep_alive_interval(Some(KEEP_ALIVE));
        if let Some(folder) = &self.qlog {
            folder.log(&mut transport).name(name)?;
        }
        let connecting = self.connecting(transport);
        let server = self.plan.server;
        let no_answer = || Error::NoAnswer { server, seconds: PATIENCE.as_secs() };
        let failed = |reason: String| match reason {
            // The stack's own patience, which may end a moment before ours.
            reason if reason == ConnectionError::TimedOut.to_string() => no_answer(),
            reason => Error::Connect { server, reason: plain(reason) },
        };
        match tokio::time::timeout(PATIENCE, connecting).await {
            Ok(connected) => {
                let connection = connected.map_err(failed)?;
                if let Some(token) = &self.plan.token {
                    let shown = tokio::time::timeout(PATIENCE, show(&connection, token)).await;
                    let late = || "the server did not say whether it takes the token".to_string();
                    shown.unwrap_or_else(|_| Err(late())).map_err(failed)?;
                }
                Ok(connection)
            }
            Err(_) => Err(no_answer()),
        }
    }

    async fn connecting(&self, transport: TransportConfig) -> Result<Connection, String> {
        let (server, name) = (self.plan.server, self.plan.server_name.as_str());
        match &self.host {
            Host::Driver(hub) => {
                let opening = Opening { transport, connected: None };
                let connection = hub.connect(self.crypto.clone(), opening, server, name);
                let connection = connection.map_err(|error| error.to_string())?;
                connection.connected().await.map_err(|error| error.to_string())?;
                Ok(Connection::Driver(connection))
            }
            Host::Stack { parts, endpoint } => {
                let config = parts.client(self.crypto.clone(), transport);
                let connecting = endpoint.connect_with(config, server, name);
                let connection = connecting.map_err(|error| error.to_string())?.await;
                connection.map(Connection::Stack).map_err(|error| error.to_string())
            }
        }
    }
}

/// How long after a stream broke the server's reason for closing the connection may come.
const LAST_WORDS: Duration = Duration::from_millis(500);

/// What one connection is to do.
struct Job {
    work: Work,
    deadline: Option<Instant>,
    bytes: Option<u64>,
    total: Arc<AtomicU64>,
}

impl Job {
    /// [`Job::work`]. A stream that ends early is often the first sign that the server closes the connection:
    /// what it says of that is the better message, and comes a moment later.
    async fn explained(self, connection: Connection) -> Result<Flow, String> {
        let done = self.work(connection.clone()).await;
        match done {
            Err(_) => tokio::time::timeout(LAST_WORDS, connection.closed()).await.map_or(done, Err),
            Ok(_) => done,
        }
    }

    async fn work(self, connection: Connection) -> Result<Flow, String> {
        let watch = Watch::start(&connection);
        let mut flow = Flow::default();
        match self.work {
            Work::Upload => flow.received = self.upload(&connection).await?,
            Work::Download => flow.received = self.download(&connection).await?,
            Work::Exchange { request, response } => {
                let mut exchanges = Distribution::default();
                flow.received = self.exchange(&connection, request, response, &mut exchanges).await?;
                flow.exchanges = Some(exchanges);
            }
        }
        flow.report = match self.work {
            Work::Download => fetch_report(&connection).await?,
            Work::Upload | Work::Exchange { .. } => watch.report(),
        };
        Ok(flow)
    }

    /// Runs `act` until the deadline, if there is one: whether it came first.
    async fn until_deadline<T>(
        &self,
        act: impl Future<Output = Result<T, String>>,
    ) -> Result<Option<T>, String> {
        match self.deadline {
            None => act.await.map(Some),
            Some(deadline) => {
                tokio::time::timeout_at(deadline, act).await.map_or(Ok(None), |done| done.map(Some))
            }
        }
    }

    async fn upload(&self, connection: &Connection) -> Result<Received, String> {
        let (mut send, receive) = open(connection, Request::Upload).await?;
        let total = self.total.clone();
        let receipts = tokio::spawn(read_receipts(receive, total));
        let bytes = self.bytes.unwrap_or(u64::MAX);
        let ended =
            self.until_deadline(async { send.fill(bytes).await.map_err(|error| error.to_string()) }).await?;
        match ended {
            Some(()) => send.finish().map_err(|error| error.to_string())?,
            None => send.reset().map_err(|error| error.to_string())?,
        }
        let receipts = async { receipts.await.map_err(|error| error.to_string())? };
        let last = match self.deadline {
            None => receipts.await,
            Some(_) => tokio::time::timeout(FAREWELL, receipts)
                .await
                .unwrap_or_else(|_| Err("the last receipt did not come".to_string())),
        };
        match last? {
            Some(received) => Ok(received),
            // The reset overtook the request, which had not come through in all the time.
            None if ended.is_none() => Ok(Received { done: true, ..Received::default() }),
            None => Err(StreamError::Ended.to_string()),
        }
    }

    async fn download(&self, connection: &Connection) -> Result<Received, String> {
        let before = connection.wire_bytes();
        let began = Instant::now();
        let (mut send, mut receive) =
            open(connection, Request::Download { bytes: self.bytes.unwrap_or(0) }).await?;
        send.finish().map_err(|error| error.to_string())?;
        let mut received = Received::default();
        let ended = self
            .until_deadline(async {
                while let Some(chunk) =
                    receive.read_chunk(usize::MAX).await.map_err(|error| error.to_string())?
                {
                    let bytes = chunk.len() as u64;
                    received.payload += bytes;
                    received.micros = began.elapsed().as_micros() as u64;
                    self.total.fetch_add(bytes, Ordering::Relaxed);
                }
                Ok(())
            })
            .await?;
        if ended.is_none() {
            receive.stop();
        }
        Ok(Received { wire: connection.wire_bytes() - before, done: true, ..received })
    }

    async fn exchange(
        &self,
        connection: &Connection,
        request: u64,
        response: u64,
        exchanges: &mut Distribution,
    ) -> Result<Received, String> {
        let before = connection.wire_bytes();
        let began = Instant::now();
        let mut received = Received::default();
        let mut left = self.bytes.unwrap_or(u64::MAX);
        self.until_deadline(async {
            while left > 0 {
                let asked = Instant::now();
                exchange(connection, request, response).await?;
                exchanges.record(span(asked.elapsed()));
                received.payload += response;
                received.micros = began.elapsed().as_micros() as u64;
                self.total.fetch_add(request + response, Ordering::Relaxed);
                left = left.saturating_sub(request + response);
            }
            Ok(())
        })
        .await?;
        Ok(Received { wire: connection.wire_bytes() - before, done: true, ..received })
    }
}

fn span(duration: Duration) -> Span {
    Span::from_nanos(duration.as_nanos() as u64)
}

async fn open(connection: &Connection, request: Request) -> Result<(SendStream, RecvStream), String> {
    let (mut send, receive) = connection.open_bi().await.map_err(|error| error.to_string())?;
    send.write_all(&request.encode()).await.map_err(|error| error.to_string())?;
    Ok((send, receive))
}

/// Reads receipts to the last; none if the stream ends before the first.
async fn read_receipts(mut receive: RecvStream, total: Arc<AtomicU64>) -> Result<Option<Received>, String> {
    let mut bytes = [0; RECEIVED_LENGTH];
    let mut before = None;
    loop {
        match (receive.read_exact(&mut bytes).await, before) {
            (Ok(()), _) => {}
            (Err(StreamError::Ended), None) => return Ok(None),
            (Err(error), _) => return Err(error.to_string()),
        }
        let received = Received::decode(&bytes);
        total.fetch_add(received.payload.saturating_sub(before.unwrap_or(0)), Ordering::Relaxed);
        before = Some(received.payload);
        if received.done {
            return Ok(Some(received));
        }
    }
}

/// Proves that this end knows the token.
async fn show(connection: &Connection, token: &Token) -> Result<(), String> {
    let session = connection.session().ok_or("the connection broke before the token was shown")?;
    let (mut send, mut receive) = open(connection, Request::Token).await?;
    send.write_all(&token.prove(session)).await.map_err(|error| error.to_string())?;
    send.finish().map_err(|error| error.to_string())?;
    let taken = receive.read_chunk(1).await.map_err(|error| error.to_string())?;
    taken.map(drop).ok_or_else(|| "the server rejects the token".to_string())
}

async fn exchange(connection: &Connection, request: u64, response: u64) -> Result<(), String> {
    let (mut send, mut receive) = open(connection, Request::Exchange { request, response }).await?;
    send.fill(request).await.map_err(|error| error.to_string())?;
    send.finish().map_err(|error| error.to_string())?;
    let mut left = response;
    while let Some(chunk) = receive.read_chunk(1 << 20).await.map_err(|error| error.to_string())? {
        left = left.saturating_sub(chunk.len() as u64);
    }
    if left > 0 { Err("an answer was too short".to_string()) } else { Ok(()) }
}

async fn fetch_report(connection: &Connection) -> Result<SenderReport, String> {
    let (mut send, mut receive) = open(connection, Request::Report).await?;
    send.finish().map_err(|error| error.to_string())?;
    let answer = tokio::time::timeout(FAREWELL, receive.read_to_end(LONGEST_REPORT)).await;
    let answer = answer.map_err(|_| "the server's report did not come".to_string())?;
    serde_json::from_slice(&answer.map_err(|error| error.to_string())?).map_err(|error| error.to_string())
}

/// Sends small messages there and back until the connection ends.
async fn ping(connection: Connection, interval: Duration) -> Distribution {
    let mut seen = Distribution::default();
    let mut ticks = tokio::time::interval(interval);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        let sent = Instant::now();
        if exchange(&connection, PROBE, PROBE).await.is_err() {
            return seen;
        }
        seen.record(span(sent.elapsed()));
    }
}
