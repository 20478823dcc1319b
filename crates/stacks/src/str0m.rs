//! str0m, WebRTC as it is published, with its own bandwidth estimation: what calls in browsers have.
//!
//! Both ends are str0m's `Rtc`, with ICE, DTLS and SRTP. The stream travels as RTP of one video, whose
//! packets the receiver asks for again when they are lost (NACK, RTX). str0m paces, pads and probes. What
//! its estimation says is the rate that the application sees, and an encoder follows.
//!
//! # What is not str0m's own
//!
//! - Media has no stream. A packet begins with the place of its bytes, and the receiver counts them in order.
//!   str0m gives a packet up after five requests, or when retransmissions take too much of the rate. What
//!   is missing for [`REPAIR`] is then asked for by feedback of the application, and sent as new media.
//! - After [`BEAT`] without media an empty packet says where the stream ends, so that a lost end is seen.
//! - The certificate and the key exchange of DTLS are those of `dtls`.
//! - str0m is given four packets of media at most before they have left: the rest waits with the application.
//! - It does not say how many packets it holds for lost.

use std::collections::{BTreeMap, VecDeque};
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, Instant};

use brakelight_core::controller::Rtt;
use brakelight_core::ecn::{Ecn, Encoding};
use brakelight_core::host::{About, HostFactory, HostedController, Pair, Setup};
use brakelight_core::parameters::{OptionValues, ParameterError, Parameters};
use brakelight_core::time::Time;
use brakelight_registry::Options;
use str0m::bwe::{Bitrate, BweKind};
use str0m::format::Codec;
use str0m::ice::IceCreds;
use str0m::media::{MediaKind, Pt};
use str0m::net::{Protocol, Receive};
use str0m::rtp::{RtpWrite, Ssrc};
use str0m::{Candidate, Event, Input, Output, Rtc};

use crate::options::str0m::Config;
use crate::side::{Side, Stack, Values};
use crate::{ZEROES, clock, entropy};

mod dtls;

const GCC: &str = "str0m/gcc";
/// The video, its retransmissions, and the receiver's own numbers.
const MEDIA: u32 = 100;
const RESENT: u32 = 101;
const RECEIVER: u32 = 200;
/// rtp's clock of video, per second
const CLOCK: f64 = 90_000.0;
/// Of the stream in one packet, so that datagrams stay below 1,200 bytes.
const PAYLOAD: u64 = 1100;
/// The place of a packet's bytes in the stream.
const PLACE: usize = 8;
/// Packets of media that wait in str0m, at most.
const MOST_QUEUED: u64 = 4;
/// How long a part of the stream may be missing before the application asks for it.
const REPAIR: Duration = Duration::from_millis(500);
/// Missing parts that are asked for at once, so that the request fits into a datagram.
const MOST_ASKED: usize = 60;
/// How long after the last media the stream's end is told, and told again.
const BEAT: Duration = Duration::from_millis(500);
/// Calls in a row at one moment: a stack that asks for more is called a moment later.
const MOST_CALLS: u32 = 10_000;

/// The host `str0m`.
#[derive(Debug)]
pub(crate) struct Str0m;

impl HostFactory for Str0m {
    fn about(&self) -> About {
        About {
            summary: "str0m, WebRTC in Rust, unmodified (https://github.com/algesten/str0m)",
            version: env!("STR0M_VERSION"),
            licence: "MIT OR Apache-2.0",
            shows: &[],
            // It neither sets nor reads the ECN field.
            encoding: Encoding::None,
            messages: false,
        }
    }

    fn controllers(&self) -> Vec<HostedController> {
        let summary = "Google Congestion Control of str0m, after libwebrtc's";
        vec![HostedController { name: GCC, summary, parameters: Config::describe }]
    }

    fn settings(&self, _controller: &str, options: Options<'_>) -> Result<OptionValues, ParameterError> {
        Ok(Config::from_options(options.iter().copied())?.settings())
    }

    fn pair(&self, setup: &Setup<'_>) -> Result<Pair, String> {
        entropy::check()?;
        clock::check()?;
        let options = setup.settings.iter().map(|(name, value)| (*name, value.as_str()));
        let options = Config::from_options(options).map_err(|error| error.to_string())?;
        let mut random = setup.random.clone();
        let mut end = |opens| Side::new(&mut random, None, || Media::new(&options, opens));
        Ok(Pair { sender: Box::new(end(true)?), receiver: Box::new(end(false)?) })
    }
}

/// One end.
struct Media {
    options: Config,
    opens: bool,
    /// Not there before the connection opens.
    rtc: Option<Rtc>,
    now: Instant,
    wake_at: Option<Instant>,
    outbox: VecDeque<Vec<u8>>,
    is_connected: bool,
    closed: Option<String>,
    estimate: Option<Bitrate>,
    rtt: Option<Rtt>,
    sending: Sending,
    receiving: Receiving,
}

/// The stream at its sender.
#[derive(Debug, Default)]
struct Sending {
    payload_type: Option<Pt>,
    /// Bytes of the stream so far.
    written: u64,
    /// Packets of media so far, and of these what has left.
    packets: u64,
    left: u64,
    beat_at: Option<Instant>,
}

/// The stream at its receiver.
#[derive(Debug, Default)]
struct Receiving {
    /// All before this place arrived.
    next: u64,
    /// Of this, what was read.
    read: u64,
    /// Where the stream goes on after what is missing: places and ends.
    beyond: BTreeMap<u64, u64>,
    /// The end of what is known of the stream.
    end: u64,
    /// When what is missing is asked for.
    repair_at: Option<Instant>,
}

impl Receiving {
    /// `length` bytes from `place` on arrived at `now`.
    fn take(&mut self, now: Instant, place: u64, length: u64) {
        let (before, end) = (self.next, place + length);
        self.end = self.end.max(end);
        if end > self.next && length > 0 {
            let known = self.beyond.entry(place).or_default();
            *known = end.max(*known);
        }
        while let Some(first) = self.beyond.first_entry()
            && *first.key() <= self.next
        {
            self.next = self.next.max(first.remove());
        }
        if self.next == self.end {
            self.repair_at = None;
        } else if self.next > before || self.repair_at.is_none() {
            self.repair_at = Some(now + REPAIR);
        }
    }

    /// What is missing, each part from where to where, if it is to be asked for at `now`.
    fn repair(&mut self, now: Instant) -> Option<Vec<(u64, u64)>> {
        self.repair_at.filter(|at| *at <= now)?;
        self.repair_at = Some(now + REPAIR);
        let (mut from, mut missing) = (self.next, Vec::new());
        for (&place, &end) in self.beyond.iter().chain([(&self.end, &self.end)]) {
            if place > from {
                missing.push((from, place));
            }
            from = from.max(end);
        }
        missing.truncate(MOST_ASKED);
        Some(missing)
    }
}

impl Media {
    fn new(options: &Config, opens: bool) -> Result<Self, String> {
        Ok(Media {
            options: options.clone(),
            opens,
            rtc: None,
            now: clock::instant(Time::ZERO),
            wake_at: None,
            outbox: VecDeque::new(),
            is_connected: false,
            closed: None,
            estimate: None,
            rtt: None,
            sending: Sending::default(),
            receiving: Receiving::default(),
        })
    }

    /// Where this end is, and where the other one.
    fn addresses(&self) -> [SocketAddr; 2] {
        let address = |host| SocketAddr::from((Ipv4Addr::new(192, 0, 2, host), 3478));
        if self.opens { [address(1), address(2)] } else { [address(2), address(1)] }
    }

    /// Both ends know of each other what SDP would have told them.
    fn open(&self) -> Result<(Rtc, Pt), String> {
        // It draws what is no secret from a generator of the thread, which it seeds by the time.
        let mut seed = [0; 8];
        entropy::fill_from_lent(&mut seed);
        fastrand::seed(u64::from_le_bytes(seed));
        let credentials =
            |end: &str| IceCreds { ufrag: format!("{end}-name"), pass: format!("{end}-password-of-ice") };
        let names = if self.opens { ["sender", "receiver"] } else { ["receiver", "sender"] };
        let [own, peer] = self.addresses();
        let mut config = Rtc::builder()
            .set_crypto_provider(Arc::new(dtls::provider()))
            .set_dtls_cert(dtls::certificate())
            .set_fingerprint_verification(false)
            .set_local_ice_credentials(credentials(names[0]))
            .set_stats_interval(Some(Duration::from_secs(1)))
            .set_rtp_mode(true);
        if self.opens {
            config = config.enable_bwe(Some(Bitrate::bps(self.options.initial_rate.bps())));
        }
        let mut rtc = config.build(self.now);
        let video = rtc.codec_config().find(|codec| codec.spec().codec == Codec::Vp8).map(|codec| codec.pt());
        let video = video.ok_or("str0m: it has no video")?;
        let candidate = |at| Candidate::host(at, "udp").map_err(|error| format!("str0m: {error}"));
        rtc.add_local_candidate(candidate(own)?);
        rtc.add_remote_candidate(candidate(peer)?);
        let opens = self.opens;
        let mut direct = rtc.direct_api();
        let fingerprint = direct.local_dtls_fingerprint().clone();
        direct.set_remote_fingerprint(fingerprint);
        direct.set_remote_ice_credentials(credentials(names[1]));
        direct.set_ice_controlling(opens);
        direct.start_dtls(opens).map_err(|error| format!("str0m: {error}"))?;
        let mid = "vid".into();
        direct.declare_media(mid, MediaKind::Video);
        if opens {
            direct.declare_stream_tx(MEDIA.into(), Some(RESENT.into()), mid, None);
            direct.expect_stream_rx(RECEIVER.into(), None, mid, None);
        } else {
            direct.declare_stream_tx(RECEIVER.into(), None, mid, None);
            direct.expect_stream_rx(MEDIA.into(), Some(RESENT.into()), mid, None);
            direct.enable_twcc_feedback();
        }
        if opens {
            rtc.bwe().set_desired_bitrate(Bitrate::bps(self.options.desired_rate.bps()));
        }
        Ok((rtc, video))
    }

    fn start(&mut self) {
        match self.open() {
            Ok((rtc, video)) => {
                self.rtc = Some(rtc);
                self.sending.payload_type = Some(video);
                self.input(Input::Timeout(self.now));
            }
            Err(error) => self.closed = Some(error),
        }
    }

    fn input(&mut self, input: Input<'_>) {
        let Some(rtc) = &mut self.rtc else { return };
        if let Err(error) = rtc.handle_input(input) {
            self.closed = Some(error.to_string());
        }
    }

    /// Sends the `length` bytes of the stream from `place` on as media.
    fn send(&mut self, place: u64, length: u64) {
        let (Some(rtc), Some(video)) = (&mut self.rtc, self.sending.payload_type) else { return };
        let mut payload = place.to_be_bytes().to_vec();
        payload.extend_from_slice(&ZEROES[..length as usize]);
        let seconds = clock::time(self.now).since(Time::ZERO).as_secs_f64();
        let ticks = (seconds * CLOCK) as u64 as u32;
        let packet = RtpWrite::new(video, self.sending.packets.into(), ticks, self.now, payload);
        if let Some(stream) = rtc.direct_api().stream_tx(&Ssrc::from(MEDIA)) {
            stream.write_rtp(packet.nackable(true));
            self.sending.packets += 1;
            self.sending.beat_at = Some(self.now + BEAT);
        }
    }

    fn on_event(&mut self, event: Event) {
        match event {
            Event::Connected => self.is_connected = true,
            Event::EgressBitrateEstimate(BweKind::Twcc { estimate, .. }) => self.estimate = Some(estimate),
            Event::RtpPacket(packet) => {
                if let Some((place, bytes)) = packet.payload.split_first_chunk::<PLACE>() {
                    self.receiving.take(self.now, u64::from_be_bytes(*place), bytes.len() as u64);
                }
            }
            Event::AppSpecificFeedback(asked) => {
                let places = asked
                    .payload
                    .chunks_exact(PLACE)
                    .map(|place| place.iter().fold(0, |sum, byte| sum << 8 | u64::from(*byte)));
                for part in places.collect::<Vec<u64>>().chunks_exact(2) {
                    let (from, to) = (part[0], part[1].min(self.sending.written));
                    for place in (from..to).step_by(PAYLOAD as usize) {
                        self.send(place, PAYLOAD.min(to - place));
                    }
                }
            }
            Event::PeerStats(stats) => {
                if let Some(rtt) = stats.rtt.map(clock::length) {
                    let min = self.rtt.map_or(rtt, |before| before.min.min(rtt));
                    let variation = brakelight_core::time::Duration::ZERO;
                    self.rtt = Some(Rtt { sample: None, smoothed: rtt, variation, min });
                }
            }
            _ => {}
        }
    }

    /// A datagram is about to leave: of media, there is room for another one.
    fn on_leaving(&mut self, datagram: &[u8]) {
        // rfc3550 5.1, rfc5761 4: version 2, no RTCP, and the source in bytes 8 to 11.
        let is_rtp = datagram.first().is_some_and(|byte| byte >> 6 == 2)
            && datagram.get(1).is_some_and(|byte| !(192..=223).contains(byte));
        if is_rtp && datagram.get(8..12) == Some(&MEDIA.to_be_bytes()) {
            self.sending.left += 1;
        }
    }
}

impl Stack for Media {
    /// str0m's own DTLS encrypts.
    fn is_read(&self) -> bool {
        false
    }

    fn connect(&mut self, now: Instant) {
        self.now = now;
        self.start();
    }

    fn arrive_at(&mut self, now: Instant) {
        self.now = now;
        if self.wake_at.is_some_and(|at| at <= now) {
            self.input(Input::Timeout(now));
        }
        if self.sending.beat_at.is_some_and(|at| at <= now) {
            self.send(self.sending.written, 0);
        }
        if let Some(missing) = self.receiving.repair(now)
            && let Some(rtc) = &mut self.rtc
        {
            let places = missing.iter().flat_map(|&(from, to)| [from.to_be_bytes(), to.to_be_bytes()]);
            let places = places.collect::<Vec<_>>().concat();
            rtc.direct_api().send_app_specific_feedback(RECEIVER.into(), MEDIA.into(), places);
        }
    }

    fn receive(&mut self, now: Instant, _ecn: Ecn, payload: &[u8]) {
        if self.rtc.is_none() {
            self.start();
        }
        let [destination, source] = self.addresses();
        // What is none of ICE, DTLS, RTP and RTCP is dropped.
        if let Ok(contents) = payload.try_into() {
            self.input(Input::Receive(now, Receive { proto: Protocol::Udp, source, destination, contents }));
        }
    }

    fn transmit(&mut self, _now: Instant, payload: &mut Vec<u8>) -> Option<Ecn> {
        *payload = self.outbox.pop_front()?;
        Some(Ecn::NotEct)
    }

    fn on_timeout(&mut self, _now: Instant) {}

    fn write(&mut self, size: usize) -> usize {
        let mut taken = 0;
        while self.is_connected
            && taken < size as u64
            && self.sending.packets < self.sending.left + MOST_QUEUED
        {
            let length = PAYLOAD.min(size as u64 - taken);
            self.send(self.sending.written, length);
            self.sending.written += length;
            taken += length;
        }
        taken as usize
    }

    fn finish(&mut self) {}

    fn read(&mut self) -> u64 {
        let Receiving { next, read, .. } = &mut self.receiving;
        *next - std::mem::replace(read, *next)
    }

    fn send_message(&mut self, _message: &[u8]) -> bool {
        false
    }

    fn take_message(&mut self) -> Option<Vec<u8>> {
        None
    }

    fn settle(&mut self) {
        for _ in 0..MOST_CALLS {
            let Some(rtc) = &mut self.rtc else { return };
            match rtc.poll_output() {
                Ok(Output::Transmit(transmit)) => {
                    self.on_leaving(&transmit.contents);
                    self.outbox.push_back(transmit.contents.into());
                }
                Ok(Output::Event(event)) => self.on_event(event),
                Ok(Output::Timeout(at)) if at > self.now => {
                    self.wake_at = Some(at);
                    return;
                }
                Ok(Output::Timeout(_)) => self.input(Input::Timeout(self.now)),
                Err(error) => {
                    self.closed = Some(error.to_string());
                    return;
                }
            }
        }
        self.wake_at = Some(self.now + Duration::from_micros(1));
    }

    fn deadline(&mut self) -> Option<Instant> {
        [self.wake_at, self.sending.beat_at, self.receiving.repair_at].into_iter().flatten().min()
    }

    fn values(&mut self) -> Option<Values> {
        let rate = self.estimate?;
        Some(Values { pacing_bps: Some(rate.as_u64()), rtt: self.rtt, ..Values::default() })
    }

    fn closed(&self) -> Option<&str> {
        self.closed.as_deref()
    }
}
