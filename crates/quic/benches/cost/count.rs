//! Instructions for each packet, counted by callgrind: the stack, both ends of it in one process and under a
//! virtual clock, so that every run has the same packets and ACKs. No system call is among them.
//!
//! Two runs of different length are subtracted, so that handshake and start do not count.

use std::collections::VecDeque;
use std::net::{Ipv4Addr, SocketAddr};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use brakelight_core::ecn::{Ecn, Encoding};
use brakelight_quic::adapter::{ControlSettings, Factory, PacketSender};
use brakelight_quic::stamps::Stamps;
use brakelight_quic::tap::Tap;
use bytes::{Bytes, BytesMut};
use quinn_proto::{
    ClientConfig, Connection, ConnectionHandle, DatagramEvent, Dir, EcnCodepoint, Endpoint, EndpointConfig,
    ServerConfig, StreamId, TransportConfig,
};
use serde_json::{Value, json};

use super::ends;

/// One way, of a path that loses nothing and has room for everything.
const DELAY: Duration = Duration::from_millis(5);
/// How often the application has something to send.
const TICK: Duration = Duration::from_millis(1);
/// Bytes that it sends each time: 400 Mbit/s.
const PIECE: usize = 50_000;
/// Datagrams of a transmission: quinn's own limit.
const SEGMENTS: usize = 10;
/// Ticks of the two runs.
const TICKS: (u32, u32) = (100, 400);

/// Packets of the first window: no sender ever waits for its window, so that all send alike.
const WINDOW: u32 = 7000;

/// A batch of datagrams on its way.
struct Flight {
    at: Instant,
    ecn: Option<EcnCodepoint>,
    segment: usize,
    bytes: BytesMut,
}

struct End {
    endpoint: Endpoint,
    connection: Option<(ConnectionHandle, Connection)>,
    stamps: Option<Arc<Stamps>>,
    remote: SocketAddr,
    buffer: Vec<u8>,
    /// Towards the other end.
    flights: VecDeque<Flight>,
    packets: u64,
}

impl End {
    fn new(remote: u16, server: Option<Arc<ServerConfig>>) -> Self {
        End {
            endpoint: Endpoint::new(Arc::new(EndpointConfig::default()), server, true, None),
            connection: None,
            stamps: None,
            remote: SocketAddr::from((Ipv4Addr::LOCALHOST, remote)),
            buffer: Vec::new(),
            flights: VecDeque::new(),
            packets: 0,
        }
    }

    /// Sends what there is to send at `now`.
    fn transmit(&mut self, now: Instant) {
        let Some((handle, connection)) = &mut self.connection else { return };
        while let Some(event) = connection.poll_endpoint_events() {
            if let Some(event) = self.endpoint.handle_event(*handle, event) {
                connection.handle_event(event);
            }
        }
        loop {
            self.buffer.clear();
            let Some(transmit) = connection.poll_transmit(now, SEGMENTS, &mut self.buffer) else { return };
            let segment = transmit.segment_size.unwrap_or(transmit.size);
            let contents = &self.buffer[..transmit.size];
            let mut ecn = transmit.ecn;
            if let Some(stamps) = &self.stamps {
                // As the stamping socket does.
                let first = &contents[..segment.min(contents.len())];
                ecn = stamps.find(first).map_or(ecn, codepoint);
                stamps.forget_all(contents, segment);
            }
            self.packets += contents.len().div_ceil(segment) as u64;
            self.flights.push_back(Flight { at: now + DELAY, ecn, segment, bytes: contents.into() });
        }
    }

    fn take(&mut self, now: Instant, flight: Flight) {
        let mut bytes = flight.bytes;
        while !bytes.is_empty() {
            let datagram = bytes.split_to(flight.segment.min(bytes.len()));
            self.buffer.clear();
            let event = self.endpoint.handle(now, self.remote, None, flight.ecn, datagram, &mut self.buffer);
            match event {
                Some(DatagramEvent::ConnectionEvent(_, event)) => {
                    self.connection.as_mut().expect("one connection").1.handle_event(event);
                }
                Some(DatagramEvent::NewConnection(incoming)) => {
                    let accepted = self.endpoint.accept(incoming, now, &mut self.buffer, None);
                    self.connection = Some(accepted.unwrap_or_else(|_| panic!("an honest client")));
                }
                _ => {}
            }
        }
    }
}

fn codepoint(ecn: Ecn) -> Option<EcnCodepoint> {
    EcnCodepoint::from_bits(ecn as u8)
}

/// Runs `ticks` of the application; gives the data packets sent, and the ACKs that came back.
fn transfer(kind: &str, controller: &str, ticks: u32) -> (u64, u64) {
    let mut config = ServerConfig::with_crypto(Arc::new(ends::server_crypto()));
    config.transport_config(Arc::new(transport()));
    let (mut client, mut server) = (End::new(2, None), End::new(1, Some(Arc::new(config))));
    let mut transport = transport();
    let mut crypto: Arc<dyn quinn_proto::crypto::ClientConfig> = ends::client_crypto();
    match kind {
        "stock" => {
            transport
                .congestion_controller_factory(ends::stock_controller(controller, u64::from(WINDOW) * 1452));
        }
        _ => {
            let mut settings: ControlSettings = ends::settings(controller, PacketSender::Stack);
            settings.initial_window = WINDOW;
            // As the builder of endpoints does.
            let unmarked = settings.encoding() == Encoding::None;
            let stamps = Arc::new(if unmarked { Stamps::always(Ecn::NotEct) } else { Stamps::new() });
            let factory = Factory::new(settings);
            crypto = Tap::new(factory.open(), stamps.clone()).client(crypto);
            transport.congestion_controller_factory(factory);
            client.stamps = Some(stamps);
        }
    }
    let mut config = ClientConfig::new(crypto);
    config.transport_config(Arc::new(transport));
    let base = Instant::now();
    let mut now = base;
    client.connection =
        Some(client.endpoint.connect(now, config, client.remote, "localhost").expect("an address"));
    let mut stream: Option<StreamId> = None;
    let mut done = 0;
    let mut tick = now + TICK;
    let piece = Bytes::from_static(&[0x5a; PIECE]);
    while done < ticks {
        client.transmit(now);
        server.transmit(now);
        let timeout = |end: &mut End| end.connection.as_mut().and_then(|(_, c)| c.poll_timeout());
        let timers = [timeout(&mut client), timeout(&mut server)];
        let flights = [&client, &server].map(|end| end.flights.front().map(|flight| flight.at));
        now = timers.into_iter().chain(flights).flatten().fold(tick, Instant::min).max(now);
        for (end, due) in [&mut client, &mut server].into_iter().zip(timers) {
            if due.is_some_and(|due| due <= now) {
                end.connection.as_mut().expect("it has a timer").1.handle_timeout(now);
            }
        }
        while client.flights.front().is_some_and(|flight| flight.at <= now) {
            let flight = client.flights.pop_front().expect("seen");
            server.take(now, flight);
        }
        while server.flights.front().is_some_and(|flight| flight.at <= now) {
            let flight = server.flights.pop_front().expect("seen");
            client.take(now, flight);
        }
        if let Some((_, connection)) = &mut server.connection {
            while connection.poll().is_some() {}
            if let Some(id) = stream {
                let mut stream = connection.recv_stream(id);
                if let Ok(mut chunks) = stream.read(true) {
                    while let Ok(Some(_)) = chunks.next(usize::MAX) {}
                    let _ = chunks.finalize();
                }
            }
        }
        let connection = &mut client.connection.as_mut().expect("made").1;
        while connection.poll().is_some() {}
        if now >= tick {
            tick += TICK;
            if !connection.is_handshaking() {
                let id = *stream.get_or_insert_with(|| {
                    connection.streams().open(Dir::Uni).expect("the first of a hundred")
                });
                let _ = connection.send_stream(id).write_chunks(&mut [piece.clone()]);
                done += 1;
            }
        }
    }
    let acks = client.connection.as_ref().expect("made").1.stats().frame_rx.acks;
    (client.packets, acks)
}

fn transport() -> TransportConfig {
    let mut transport = ends::transport();
    transport.initial_mtu(1452).mtu_discovery_config(None);
    transport
}

/// Is one run: `KIND CONTROLLER TICKS`.
#[allow(clippy::print_stdout)]
pub fn run(arguments: &[String]) {
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let [kind, controller, ticks] = words[..] else { panic!("what is {words:?}?") };
    let (packets, acks) = transfer(kind, controller, ticks.parse().expect("ticks"));
    println!("{packets} {acks}");
}

/// Instructions, packets and ACKs of a run under callgrind; `None` without valgrind.
fn counted(kind: &str, controller: &str, ticks: u32) -> Option<(u64, u64, u64)> {
    let program = std::env::current_exe().expect("this program is a file");
    let mut command = Command::new("valgrind");
    command.args(["--tool=callgrind", "--callgrind-out-file=/dev/null"]).arg(program);
    command.args(["count", kind, controller, &ticks.to_string()]).stdin(Stdio::null());
    let output = command.output().ok()?;
    let (said, told) = (String::from_utf8_lossy(&output.stderr), String::from_utf8_lossy(&output.stdout));
    let collected = said.lines().find_map(|line| line.split("Collected :").nth(1))?;
    let mut numbers = told.split_whitespace().map(|word| word.parse().expect("a number"));
    Some((collected.trim().parse().ok()?, numbers.next()?, numbers.next()?))
}

/// Instructions per packet of a sender's controller.
pub fn row(kind: &str, controller: &str) -> Option<Value> {
    let (short, long) = (counted(kind, controller, TICKS.0)?, counted(kind, controller, TICKS.1)?);
    let packets = (long.1 - short.1) as f64;
    Some(json!({
        "sender": format!("{kind}:{controller}"),
        "instructions_per_packet": (long.0 - short.0) as f64 / packets,
        "packets_per_ack": packets / (long.2 - short.2).max(1) as f64,
    }))
}
