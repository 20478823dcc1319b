//! The applications against a socket that writes everything down, without a host.

use brakelight_core::packet::Direction;
use brakelight_core::random::Random;
use brakelight_core::time::{Duration, Time};
use brakelight_core::units::{Bytes, Rate};

use crate::traffic::{Arrivals, Game, OnOff, RequestResponse, ShortFlows, SizeLaw, Traffic, Video};
use crate::{AnyApplication, Application, ArrivalProcess, Datagram, ENDLESS, Socket};

const MSS: Bytes = Bytes(1_000);

/// A flow without a network: what was asked of it, and what has arrived.
struct Notes {
    now: Time,
    written: u64,
    unsent: u64,
    delivered: u64,
    rate: Option<Rate>,
    random: Random,
    sent: Vec<Datagram>,
}

impl Notes {
    fn new() -> Self {
        Notes {
            now: Time::ZERO,
            written: 0,
            unsent: 0,
            delivered: 0,
            rate: None,
            random: Random::stream(1, "notes"),
            sent: Vec::new(),
        }
    }

    fn at(&mut self, ms: u64) -> &mut Self {
        self.now = Time::from_millis(ms);
        self
    }
}

impl Socket for Notes {
    fn now(&self) -> Time {
        self.now
    }
    fn write(&mut self, size: Bytes) {
        self.written = self.written.saturating_add(size.0);
        self.unsent = self.unsent.saturating_add(size.0);
    }
    fn unsent(&self) -> Bytes {
        Bytes(self.unsent)
    }
    fn discard_unsent(&mut self) {
        self.unsent = 0;
    }
    fn delivered(&self) -> Bytes {
        Bytes(self.delivered)
    }
    fn rate(&self) -> Option<Rate> {
        self.rate
    }
    fn random(&mut self) -> &mut Random {
        &mut self.random
    }
    fn send(&mut self, datagram: Datagram) {
        self.sent.push(datagram);
    }
}

fn outcome(application: &AnyApplication, now: Time, name: &str) -> Option<f64> {
    let mut found = None;
    application.outcome(now, &mut |key, value| {
        if key == name {
            found = Some(value);
        }
    });
    found
}

#[test]
fn a_transfer_is_complete_when_its_last_byte_has_arrived() {
    let mut socket = Notes::new();
    let mut transfer = AnyApplication::new(&Traffic::Size(Bytes(5_000)), MSS);
    transfer.start(socket.at(10));
    assert_eq!((socket.written, transfer.listens()), (5_000, true));
    socket.delivered = 4_999;
    transfer.on_delivered(socket.at(20));
    assert!(!transfer.is_over());
    socket.delivered = 5_000;
    transfer.on_delivered(socket.at(30));
    assert!(transfer.is_over() && !transfer.listens());
    assert_eq!(outcome(&transfer, Time::from_millis(99), "completion_ms"), Some(20.0));
}

#[test]
fn a_backlogged_flow_has_no_end_and_a_pause_takes_back_what_was_not_sent() {
    let mut socket = Notes::new();
    AnyApplication::new(&Traffic::Backlogged, MSS).start(&mut socket);
    assert_eq!(socket.unsent(), ENDLESS);
    let ms = Duration::from_millis;
    let periods = OnOff { on: ms(20), off: ms(30), rate: None, random: false };
    let mut on_off = AnyApplication::new(&Traffic::OnOff(periods), MSS);
    on_off.start(socket.at(0));
    assert_eq!(on_off.next_timer(), Time::from_millis(20));
    on_off.on_timer(socket.at(20));
    assert_eq!((socket.unsent, on_off.next_timer()), (0, Time::from_millis(50)));
}

/// Every part of a request reaches the server twice, in any order: it is served once.
#[test]
fn a_request_is_served_once_however_often_it_arrives() {
    let config = RequestResponse { request: Bytes(2_500), response: Bytes(9_000), think: Duration::ZERO };
    let mut socket = Notes::new();
    let mut client = AnyApplication::new(&Traffic::RequestResponse(config), MSS);
    client.start(socket.at(0));
    // Nothing comes back for a second: all of it again.
    assert_eq!(client.next_timer(), Time::from_secs(1));
    client.on_timer(socket.at(1_000));
    let sizes: Vec<u16> = socket.sent.iter().map(|part| part.payload).collect();
    assert_eq!(sizes, [1_000, 1_000, 500, 1_000, 1_000, 500]);
    for part in std::mem::take(&mut socket.sent).iter().rev() {
        client.on_datagram(part, &mut socket);
    }
    assert_eq!(socket.written, 9_000);
    socket.delivered = 9_000;
    client.on_delivered(socket.at(1_300));
    assert_eq!(outcome(&client, socket.now, "response_ms_mean"), Some(1_300.0));
    assert_eq!(client.next_timer(), socket.now);
}

#[test]
fn a_request_that_arrives_after_the_stop_is_not_served() {
    let config = RequestResponse { request: Bytes(400), response: Bytes(9_000), think: Duration::ZERO };
    for traffic in [Traffic::RequestResponse(config), Traffic::Video(Video::default())] {
        let mut socket = Notes::new();
        let mut client = AnyApplication::new(&traffic, MSS);
        client.start(socket.at(0));
        client.stop(socket.at(20));
        for request in std::mem::take(&mut socket.sent) {
            client.on_datagram(&request, socket.at(50));
        }
        assert_eq!(socket.written, 0, "{traffic:?}");
    }
}

#[test]
fn a_player_asks_for_the_next_segment_only_once_there_is_room() {
    let mut socket = Notes::new();
    let mut player = AnyApplication::new(&Traffic::Video(Video::default()), MSS);
    player.start(socket.at(0));
    let mut asked = 0;
    for step in 0..600 {
        for request in std::mem::take(&mut socket.sent) {
            player.on_datagram(&request, &mut socket);
            asked += 1;
        }
        socket.delivered = socket.written;
        player.on_delivered(socket.at(step * 100));
        if player.next_timer() <= socket.now {
            player.on_timer(&mut socket);
        }
    }
    // A minute of playing time and the 30 s that the buffer holds, in segments of 2 s.
    assert!((44..=46).contains(&asked), "{asked}");
    assert_eq!(outcome(&player, socket.now, "stalls"), Some(0.0));
}

#[test]
fn a_game_names_the_newest_input_and_how_long_it_was_held() {
    let game = Game { size: Bytes(80), interval: Duration::from_millis(20) };
    let mut socket = Notes::new();
    let mut game = AnyApplication::new(&Traffic::Game(game), MSS);
    game.start(socket.at(0));
    let ways: Vec<Direction> = socket.sent.iter().map(|message| message.direction).collect();
    assert_eq!(ways, [Direction::Reverse, Direction::Forward]);
    let input = socket.sent[0];
    game.on_datagram(&input, socket.at(15));
    game.on_timer(socket.at(20));
    let update = socket.sent[3];
    assert_eq!((update.echo, update.held_us), (1, 5_000));
    // 35 ms after the input left, of which the server held it for 5.
    game.on_datagram(&update, socket.at(35));
    assert_eq!(outcome(&game, socket.now, "rtt_ms_mean"), Some(30.0));
}

#[test]
fn a_game_keeps_its_beat_where_the_host_wakes_late() {
    let game = Game { size: Bytes(80), interval: Duration::from_millis(20) };
    let mut socket = Notes::new();
    let mut game = AnyApplication::new(&Traffic::Game(game), MSS);
    game.start(socket.at(7));
    for (woken, next) in [(27, 47), (61, 67), (67, 87), (130, 147)] {
        game.on_timer(socket.at(woken));
        assert_eq!(game.next_timer(), Time::from_millis(next));
    }
}

#[test]
fn arrivals_are_as_many_as_the_law_says() {
    let law = ShortFlows { arrivals: Arrivals::PerSecond(50.0), size: SizeLaw::Fixed(Bytes(700)) };
    let mut random = Random::stream(5, "arrivals");
    let mut process = ArrivalProcess::new(law);
    assert_eq!(process.next_at(), Time::MAX);
    process.start(Time::ZERO, &mut random);
    while process.next_at() < Time::from_secs(200) {
        assert_eq!(process.arrive(&mut random), Bytes(700));
    }
    // 10,000 expected, standard deviation 100.
    assert!((9_600..=10_400).contains(&process.started()), "{}", process.started());
    process.stop();
    assert_eq!(process.next_at(), Time::MAX);
}
