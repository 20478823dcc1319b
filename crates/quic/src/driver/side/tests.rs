//! Connections that are resumed with 0-RTT data, by real TLS sessions.

use brakelight_core::random::Random;
use brakelight_core::time::Duration;
use brakelight_registry::ControllerConfig;
use quinn_proto::crypto::rustls::{QuicClientConfig, QuicServerConfig};
use quinn_proto::{Dir, StreamEvent, StreamId};

use super::super::identity::Identity;
use super::*;
use crate::adapter::{ControlSettings, Counters, PacketSender, Path};
use crate::validation::State;

const DELAY: Duration = Duration::from_millis(20);
/// Bytes of the stream.
const SIZE: usize = 100_000;

/// A client and a server that know each other, with what they keep from one connection to the next.
struct Pair {
    base: Instant,
    client: Arc<dyn crypto::ClientConfig>,
    server: Arc<dyn crypto::ServerConfig>,
}

/// A server that issues tickets for 0-RTT data, and remembers no client yet.
fn server(identity: &Identity) -> Arc<dyn crypto::ServerConfig> {
    let mut tls = identity.server_tls().unwrap();
    tls.max_early_data_size = u32::MAX;
    Arc::new(QuicServerConfig::try_from(tls).unwrap())
}

impl Pair {
    /// A pair whose client already has a ticket of the server.
    fn acquainted() -> Self {
        let identity = Identity::fixed().unwrap();
        let mut tls = identity.client_tls().unwrap();
        tls.enable_early_data = true;
        let client = Arc::new(QuicClientConfig::try_from(tls).unwrap());
        let pair = Pair { base: Instant::now(), client, server: server(&identity) };
        let mut first = pair.connect("cubic", &[], 10);
        first.run(Duration::from_secs(1));
        assert!(first.connected && !first.early, "the first connection has nothing to resume");
        pair
    }

    fn settings(&self, seed: u8) -> SideSettings {
        SideSettings {
            base: self.base,
            seed: [seed; 32],
            datagram: 1472,
            discover_mtu: false,
            ack_every: Some(2),
            clock: Clock::default(),
            reports: true,
            connection: 0,
        }
    }

    /// A connection that the client has just opened, with all of the stream written where 0-RTT allows it.
    fn connect(&self, controller: &str, options: &[(&str, &str)], initial_window: u32) -> Run {
        let controller = ControllerConfig::new(controller, options).unwrap();
        let mut settings = ControlSettings::new(controller, PacketSender::Driver, Path::Own).unwrap();
        settings.initial_window = initial_window;
        settings.pacing_burst = initial_window;
        settings.random = Random::stream(7, "controller");
        let adapter = Arc::new(ControllerAdapter::new(settings, true, Some(self.base)));
        let mut run = Run {
            sender: Side::sending(self.settings(1), self.client.clone(), adapter.clone()),
            receiver: Side::receiving(self.settings(2), self.server.clone()),
            adapter,
            retry: false,
            rewrite: |_, ecn| ecn,
            now: Time::ZERO,
            forward: VecDeque::new(),
            back: VecDeque::new(),
            forwarded: 0,
            early: false,
            connected: false,
            stream: None,
            finished: false,
        };
        run.sender.connect(Time::ZERO).unwrap();
        run.early = run.sender.connection().unwrap().has_0rtt();
        if run.early {
            run.write();
        }
        run
    }
}

/// A connection over a path without a bottleneck.
struct Run {
    sender: Side,
    receiver: Side,
    adapter: Arc<ControllerAdapter>,
    /// Whether the server answers the first datagram with a Retry.
    retry: bool,
    /// What routers do to the ECN field of the client's datagram with this place, counted from 1.
    rewrite: fn(u64, Ecn) -> Ecn,
    now: Time,
    forward: VecDeque<(Time, Outgoing)>,
    back: VecDeque<(Time, Outgoing)>,
    forwarded: u64,
    /// Whether the client could send 0-RTT data.
    early: bool,
    connected: bool,
    stream: Option<StreamId>,
    /// Whether the whole stream was acknowledged.
    finished: bool,
}

impl Run {
    fn write(&mut self) {
        let connection = self.sender.connection().unwrap();
        let stream = connection.streams().open(Dir::Uni).unwrap();
        let mut sending = connection.send_stream(stream);
        assert_eq!(sending.write(&[0; SIZE]), Ok(SIZE));
        sending.finish().unwrap();
        self.stream = Some(stream);
    }

    fn was_accepted(&mut self) -> bool {
        self.sender.connection().unwrap().accepted_0rtt()
    }

    /// Sends what may be sent now, and returns how many datagrams of the client's had no 1-RTT packet.
    fn send(&mut self) -> usize {
        let at = self.now + DELAY;
        let mut long = 0;
        while let Some(outgoing) = self.sender.poll_transmit(self.now) {
            long += usize::from(outgoing.payload[0] & 0x80 != 0);
            self.forwarded += 1;
            let ecn = (self.rewrite)(self.forwarded, outgoing.ecn);
            self.forward.push_back((at, Outgoing { ecn, ..outgoing }));
        }
        while let Some(outgoing) = self.receiver.poll_transmit(self.now) {
            self.back.push_back((at, outgoing));
        }
        long
    }

    fn run(&mut self, length: Duration) {
        let end = self.now + length;
        loop {
            self.send();
            let arrivals = [&self.forward, &self.back].map(|way| way.front().map(|(at, _)| *at));
            let deadlines = [self.sender.deadline(), self.receiver.deadline()];
            match arrivals.into_iter().chain(deadlines).flatten().min() {
                Some(at) if at <= end => self.now = self.now.max(at),
                _ => break,
            }
            self.sender.on_deadline(self.now);
            self.receiver.on_deadline(self.now);
            while let Some((_, outgoing)) = self.forward.pop_front_if(|(at, _)| *at <= self.now) {
                if std::mem::take(&mut self.retry) {
                    self.answer_with_retry(&outgoing);
                } else {
                    self.receiver.handle(self.now, outgoing.ecn, &outgoing.payload);
                }
            }
            while let Some((_, outgoing)) = self.back.pop_front_if(|(at, _)| *at <= self.now) {
                self.sender.handle(self.now, outgoing.ecn, &outgoing.payload);
            }
            self.serve();
        }
        self.now = end;
    }

    fn answer_with_retry(&mut self, outgoing: &Outgoing) {
        let at = self.receiver.instant(self.now);
        let data = BytesMut::from(&outgoing.payload[..]);
        let mut buffer = Vec::new();
        let endpoint = &mut self.receiver.endpoint;
        let Some(DatagramEvent::NewConnection(incoming)) =
            endpoint.handle(at, CLIENT, None, None, data, &mut buffer)
        else {
            panic!("the first datagram opens a connection");
        };
        let transmit = endpoint.retry(incoming, &mut buffer).unwrap();
        let payload = Bytes::copy_from_slice(&buffer[..transmit.size]);
        let answer = Outgoing { payload, ecn: Ecn::NotEct, data: false, number: None };
        self.back.push_back((self.now + DELAY, answer));
    }

    fn serve(&mut self) {
        while let Some(event) = self.sender.poll_event(self.now) {
            match event {
                Event::Connected => {
                    self.connected = true;
                    // Of streams that were opened by 0-RTT packets a server that rejected these knows
                    // nothing.
                    if self.early && !self.was_accepted() {
                        self.write();
                    }
                }
                Event::Stream(StreamEvent::Finished { id }) => self.finished |= self.stream == Some(id),
                Event::ConnectionLost { reason } => panic!("{reason}"),
                _ => {}
            }
        }
        while self.receiver.poll_event(self.now).is_some() {}
    }

    fn counters(&self) -> Counters {
        self.adapter.counters()
    }
}

/// The controllers whose marks mean something of their own, and a classic one.
const MARKED: [(&str, &[(&str, &str)]); 4] =
    [("abc", &[]), ("bmcc", &[]), ("prague", &[]), ("cubic", &[("ecn", "true")])];

#[test]
fn packets_of_0rtt_are_marked_and_counted_as_those_of_1rtt() {
    for (name, options) in MARKED {
        let pair = Pair::acquainted();
        let mut run = pair.connect(name, options, 10);
        assert!(run.early, "{name}");
        let early = run.send();
        assert!(early >= 9, "{name}: {early} datagrams before the server's first");
        let counters = run.counters();
        assert!(counters.marked_packets >= early as u64 - 1, "{name}: {counters:?}");
        run.run(Duration::from_secs(2));
        assert!(run.was_accepted() && run.finished, "{name}");
        assert_eq!(run.adapter.validation(), State::Capable, "{name}");
        let counters = run.counters();
        assert_eq!((counters.brake_packets, counters.ce_packets), (0, 0), "{name}");
        if name == "abc" {
            assert_eq!(counters.accelerate_packets, counters.marked_packets);
        }
        assert_eq!(run.adapter.inflight(), brakelight_core::units::Bytes::ZERO, "{name}");
    }
}

#[test]
fn what_routers_write_on_packets_of_0rtt_reaches_the_controller() {
    let pair = Pair::acquainted();
    let mut run = pair.connect("abc", &[], 10);
    run.rewrite = |place, ecn| if place <= 6 && ecn == Ecn::Ect1 { Ecn::Ect0 } else { ecn };
    assert!(run.early);
    run.run(Duration::from_secs(2));
    let counters = run.counters();
    assert_eq!((run.adapter.validation(), counters.brake_packets), (State::Capable, 6));
    assert_eq!(counters.accelerate_packets, counters.marked_packets - 6);
}

/// A server that rejects 0-RTT counts none of its packets, and acknowledges none. More are marked than the
/// ten that are tested before an ACK: ECN must be tested anew.
#[test]
fn packets_of_0rtt_that_the_server_rejects_leave_nothing_behind() {
    for (name, options) in MARKED {
        let mut pair = Pair::acquainted();
        pair.server = server(&Identity::fixed().unwrap());
        let mut run = pair.connect(name, options, 20);
        assert!(run.early && run.send() >= 15, "{name}");
        run.run(Duration::from_secs(2));
        assert!(run.connected && !run.was_accepted() && run.finished, "{name}");
        assert_eq!(run.adapter.validation(), State::Capable, "{name}");
        let counters = run.counters();
        assert_eq!((counters.brake_packets, counters.lost_packets), (0, 0), "{name}");
        assert_eq!(run.adapter.inflight(), brakelight_core::units::Bytes::ZERO, "{name}");
    }
}

#[test]
fn packets_of_0rtt_before_a_retry_leave_nothing_behind() {
    for (name, options) in MARKED {
        let pair = Pair::acquainted();
        let mut run = pair.connect(name, options, 20);
        run.retry = true;
        assert!(run.early && run.send() >= 15, "{name}");
        run.run(Duration::from_secs(2));
        assert!(run.connected && run.finished, "{name}");
        assert_eq!(run.adapter.validation(), State::Capable, "{name}");
        assert_eq!(run.counters().brake_packets, 0, "{name}");
        assert_eq!(run.adapter.inflight(), brakelight_core::units::Bytes::ZERO, "{name}");
    }
}
