//! The end that takes and gives bytes as it is asked to, for any number of clients at once.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use brakelight_core::units::Bytes;
use tokio::time::{Duration, MissedTickBehavior, interval};

use super::identity::{Fingerprint, Identity};
use super::link::{Connection, RecvStream, SendStream};
use super::qlog::{Folder, Logs, Role};
use super::token::{PROOF_LENGTH, Token};
use super::watch::Watch;
use super::wire::{LENGTH, Received, Request};
use super::{Error, SOCKET_BUFFER};
use crate::adapter;
use crate::driver::net::{self, Connected, Hub, Listen, Opening, StreamError};

/// Between two looks at whether a connection has passed its limits.
const CHECKS: Duration = Duration::from_secs(1);

/// How soon a client must show that it knows the token.
const TOKEN_WITHIN: Duration = Duration::from_secs(5);

/// Between two looks at whether all connections are gone.
const IDLE_CHECKS: Duration = Duration::from_secs(5);

/// Between two receipts.
const RECEIPTS: Duration = Duration::from_millis(100);

/// Settings of a server.
#[derive(Debug)]
pub struct ServerSettings {
    /// Where to listen; port 0 for any.
    pub listen: SocketAddr,
    /// Congestion control of what it sends, under our driver.
    pub control: adapter::ControlSettings,
    /// Who it is.
    pub identity: Identity,
    /// What its clients must know, if anything.
    pub token: Option<Token>,
    /// Where qlog files go, if anywhere, and how much of them.
    pub qlog: Option<Logs>,
    /// How much it takes on.
    pub limits: Limits,
}

/// Limits on the work of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// How many connections.
    pub connections: net::Limits,
    /// The longest life of a connection.
    pub duration: Duration,
    /// The most bytes on the wire of a connection, both ways together.
    pub bytes: Bytes,
}

impl Default for Limits {
    fn default() -> Self {
        let duration = Duration::from_secs(3600);
        Limits { connections: net::Limits::default(), duration, bytes: Bytes(1_000_000_000_000) }
    }
}

/// Who is told what a server does, in words.
type Say = Arc<dyn Fn(&str) + Send + Sync>;

/// A server with a bound socket.
pub struct Server {
    runtime: tokio::runtime::Runtime,
    hub: Hub,
    fingerprint: Fingerprint,
    say: Say,
    rules: Rules,
    idle: Box<dyn Fn() + Send>,
}

/// What holds for every connection.
#[derive(Clone, Debug)]
struct Rules {
    limits: Limits,
    token: Option<Token>,
}

impl std::fmt::Debug for Server {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Server").field("hub", &self.hub).finish_non_exhaustive()
    }
}

impl Server {
    /// Opens the socket. `say` is told of every connection.
    pub fn bind(
        settings: &ServerSettings,
        say: impl Fn(&str) + Send + Sync + 'static,
    ) -> Result<Self, Error> {
        let runtime = super::runtime()?;
        let crypto =
            settings.identity.crypto().map_err(|error| Error::System(std::io::Error::other(error)))?;
        let qlog = settings.qlog.as_ref().map(|logs| Folder::of(logs, Role::Server)).transpose()?;
        let say = rarely(say);
        let listen = Listen {
            crypto: Arc::new(crypto),
            opening: opening(qlog, say.clone()),
            limits: settings.limits.connections,
        };
        let control = settings.control.clone().under_driver();
        let hub = Hub::bind(settings.listen, control, Some(listen), SOCKET_BUFFER)
            .map_err(|source| Error::Bind { address: settings.listen, source })?;
        Ok(Server {
            runtime,
            hub,
            fingerprint: settings.identity.fingerprint(),
            say,
            rules: Rules { limits: settings.limits, token: settings.token.clone() },
            idle: Box::new(|| ()),
        })
    }

    /// Calls `act` some seconds after the last connection is gone, half-open ones included: what a flood of
    /// them took can be given back.
    pub fn when_idle(self, act: impl Fn() + Send + 'static) -> Self {
        Server { idle: Box::new(act), ..self }
    }

    /// Returns where it listens.
    pub fn address(&self) -> SocketAddr {
        self.hub.address()
    }

    /// Returns the fingerprint of its certificate.
    pub fn fingerprint(&self) -> Fingerprint {
        self.fingerprint
    }

    /// Serves until the process, or the thread that carries packets, ends.
    pub fn serve(self) {
        let say = self.say;
        self.runtime.block_on(async {
            let mut ticks = interval(IDLE_CHECKS);
            ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
            let mut was_idle = true;
            loop {
                let arrived = tokio::select! {
                    arrived = self.hub.accept() => arrived,
                    _ = ticks.tick() => {
                        let is_idle = self.hub.is_idle();
                        if is_idle && !was_idle {
                            (self.idle)();
                        }
                        was_idle = is_idle;
                        continue;
                    }
                };
                match arrived {
                    None => break,
                    Some(Ok(connection)) => {
                        was_idle = false;
                        drop(tokio::spawn(attend(connection, say.clone(), self.rules.clone())));
                    }
                    Some(Err((from, reason))) => say(&format!("{from}: no connection: {reason}")),
                }
            }
        });
    }
}

/// Lines of a second that are said; the rest are counted.
const LINES: u32 = 50;

/// `say`, of no more than [`LINES`] lines a second: who floods a server with connections must not flood its
/// log.
fn rarely(say: impl Fn(&str) + Send + Sync + 'static) -> Say {
    let state = Mutex::new((Instant::now(), 0_u32));
    Arc::new(move |line| {
        let mut state = state.lock().unwrap_or_else(PoisonError::into_inner);
        let (since, lines) = &mut *state;
        if since.elapsed() >= Duration::from_secs(1) {
            if *lines > LINES {
                say(&format!("{} more lines were left out", *lines - LINES));
            }
            (*since, *lines) = (Instant::now(), 0);
        }
        *lines = lines.saturating_add(1);
        if *lines <= LINES {
            say(line);
        }
    })
}

/// What connections are made with: a log in `qlog`, if there is such a folder, once they have shown that they
/// are there.
fn opening(qlog: Option<Folder>, say: Say) -> Box<dyn Fn() -> Opening + Send> {
    let number = Arc::new(AtomicU64::new(0));
    let told = AtomicBool::new(false);
    Box::new(move || {
        let mut transport = super::transport();
        let full = qlog.as_ref().is_some_and(Folder::is_full);
        if full && !told.swap(true, Ordering::Relaxed) {
            say("the limit of the qlog files is reached: nothing more is logged");
        }
        let log = qlog.as_ref().filter(|_| !full).map(|folder| folder.log(&mut transport));
        let (number, say) = (number.clone(), say.clone());
        let connected = log.map(|log| {
            Connected::new(move || {
                let number = number.fetch_add(1, Ordering::Relaxed) + 1;
                if let Err(error) = log.name(&number.to_string()) {
                    say(&error.to_string());
                }
            })
        });
        Opening { transport, connected }
    })
}

async fn attend(connection: net::QuicConnection, say: Say, rules: Rules) {
    let limits = rules.limits;
    let from = connection.remote_address();
    say(&format!("{from}: connected"));
    let link = Connection::Driver(connection.clone());
    let client = Arc::new(Client {
        link: link.clone(),
        watch: Watch::start(&link),
        counted: AtomicU64::new(0),
        shown: AtomicBool::new(rules.token.is_none()),
        token: rules.token,
    });
    let (began, end) = (tokio::time::Instant::now(), tokio::time::Instant::now() + limits.duration);
    let mut ticks = interval(CHECKS);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        let (send, receive) = tokio::select! {
            accepted = connection.accept_bi() => match accepted {
                Ok(streams) => streams,
                Err(_) => break,
            },
            now = ticks.tick() => {
                let stats = connection.stats();
                let passed = if now >= began + TOKEN_WITHIN && !client.shown.load(Ordering::Relaxed) {
                    Some(format!("no token was shown within {} s", TOKEN_WITHIN.as_secs()))
                } else if now >= end {
                    Some(format!("the server's limit of {} s is reached", limits.duration.as_secs()))
                } else if stats.udp_rx.bytes + stats.udp_tx.bytes > limits.bytes.0 {
                    Some(format!("the server's limit of {} is reached", limits.bytes))
                } else {
                    None
                };
                if let Some(reason) = passed {
                    say(&format!("{from}: {reason}"));
                    link.close(2, reason.as_bytes());
                }
                continue;
            }
        };
        let (client, say) = (client.clone(), say.clone());
        let streams = (SendStream::Driver(send), RecvStream::Driver(receive));
        tokio::spawn(async move {
            // A client that goes away in the middle has what it wanted.
            if let Err(Unserved::Refused(reason)) = serve(&client, streams.0, streams.1).await {
                say(&format!("{from}: {reason}"));
                client.link.close(1, reason.as_bytes());
            }
        });
    }
    say(&format!("{from}: {}", connection.closed().await));
}

/// Who is served.
struct Client {
    link: Connection,
    watch: Watch,
    /// Bytes on the wire that belong to uploads before.
    counted: AtomicU64,
    /// What it must know, if anything.
    token: Option<Token>,
    /// Whether it has shown that.
    shown: AtomicBool,
}

enum Unserved {
    Refused(String),
    Gone,
}

impl From<StreamError> for Unserved {
    fn from(_: StreamError) -> Self {
        Unserved::Gone
    }
}

async fn serve(client: &Client, mut send: SendStream, mut receive: RecvStream) -> Result<(), Unserved> {
    let mut request = [0; LENGTH];
    receive.read_exact(&mut request).await?;
    let request = Request::decode(&request);
    if !client.shown.load(Ordering::Acquire) && request != Some(Request::Token) {
        return Err(Unserved::Refused("this server requires its token: --token".to_string()));
    }
    match request {
        None => return Err(Unserved::Refused("a request that this server does not know".to_string())),
        Some(Request::Upload) => take(&client.link, &client.counted, &mut send, &mut receive).await?,
        Some(Request::Download { bytes }) => send.fill(if bytes == 0 { u64::MAX } else { bytes }).await?,
        Some(Request::Exchange { request, response }) => {
            let mut left = request;
            while left > 0 {
                let Some(chunk) = receive.read_chunk(left.min(1 << 20) as usize).await? else {
                    return Err(Unserved::Gone);
                };
                left -= chunk.len() as u64;
            }
            send.fill(response).await?;
        }
        Some(Request::Report) => {
            let report = serde_json::to_vec(&client.watch.report()).expect("a report is numbers and words");
            send.write_all(&report).await?;
        }
        Some(Request::Token) => {
            let mut proof = [0; PROOF_LENGTH];
            receive.read_exact(&mut proof).await?;
            let session = client.link.session().ok_or(Unserved::Gone)?;
            // Who shows a token to a server without one shows it to the wrong server, and may go on.
            if client.token.as_ref().is_some_and(|token| !token.is_proved(session, &proof)) {
                return Err(Unserved::Refused("the token is not this server's".to_string()));
            }
            client.shown.store(true, Ordering::Release);
            send.write_all(&[1]).await?;
        }
    }
    let _ = send.finish();
    // Up to its end, which an honest client has sent or will: to drop the stream before would tell the client
    // to stop.
    match request {
        Some(Request::Upload) => {}
        _ => drop(receive.read_chunk(1).await?),
    }
    Ok(())
}

/// Counts what comes. Bytes on the wire are those since `counted` bytes had come, at the end of the upload
/// before: what came before this task had its turn belongs to it.
async fn take(
    connection: &Connection,
    counted: &AtomicU64,
    send: &mut SendStream,
    receive: &mut RecvStream,
) -> Result<(), Unserved> {
    let began = Instant::now();
    let mut received = Received::default();
    let mut ticks = interval(RECEIPTS);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            biased;
            _ = ticks.tick() => {
                received.wire = connection.wire_bytes().saturating_sub(counted.load(Ordering::Relaxed));
                send.write_all(&received.encode()).await?;
            }
            read = receive.read_chunk(usize::MAX) => match read {
                Ok(Some(chunk)) => {
                    received.payload += chunk.len() as u64;
                    received.micros = began.elapsed().as_micros() as u64;
                }
                // The client ends by time with a reset: what it had still to send is of no use to anybody.
                Ok(None) | Err(StreamError::Reset) => break,
                Err(error) => return Err(error.into()),
            }
        }
    }
    // Nothing is known any more of a connection that is gone.
    received.wire = connection.wire_bytes().saturating_sub(counted.load(Ordering::Relaxed));
    counted.store(connection.wire_bytes(), Ordering::Relaxed);
    received.done = true;
    send.write_all(&received.encode()).await?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_of_lines_is_counted_and_not_said() {
        let said = Arc::new(Mutex::new(Vec::new()));
        let heard = said.clone();
        let say = rarely(move |line| heard.lock().unwrap().push(line.to_string()));
        for number in 0..5000 {
            say(&format!("line {number}"));
        }
        std::thread::sleep(Duration::from_millis(1100));
        say("line 5000");
        let said = said.lock().unwrap();
        let left_out = said.iter().filter_map(|line| line.strip_suffix(" more lines were left out"));
        let left_out: usize = left_out.map(|count| count.parse::<usize>().unwrap()).sum();
        let lines = said.iter().filter(|line| line.starts_with("line ")).count();
        assert_eq!(lines + left_out, 5001);
        // 5,000 lines take far less than ten seconds.
        assert!(lines <= 10 * LINES as usize && said.last().unwrap() == "line 5000", "{lines} lines");
    }
}
