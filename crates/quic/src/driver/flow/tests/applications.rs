//! Every application over the stack, on a path whose effect can be worked out: 10 Mbit/s, 20 ms each way.

use brakelight_apps::traffic::{Call, Game, OnOff, Video};

use super::*;

fn over(traffic: Traffic) -> FlowSettings {
    FlowSettings { traffic, ..settings(CONTROLLER, &[]) }
}

/// A path without losses.
fn deep() -> Path {
    Path { limit: 10_000, ..Path::default() }
}

/// Asserts that the outcome `name` lies within `low..=high`.
#[track_caller]
fn expect(seen: &Seen, name: &str, low: f64, high: f64) {
    let value = outcome(seen, name).unwrap_or_else(|| panic!("there is no `{name}`"));
    assert!((low..=high).contains(&value), "{name} = {value}, not in {low} to {high}");
}

#[test]
fn every_response_arrives_whole_and_none_is_sent_twice() {
    let exchange = |request, response| {
        let (request, response) = (Bytes(request), Bytes(response));
        Traffic::RequestResponse(RequestResponse { request, response, think: Duration::ZERO })
    };
    // Four parts of a request; a response of 13 packets, which fits the window from the second one on.
    let seen = run(over(exchange(5_000, 17_000)), &Path::default(), 10);
    // A round trip and 13 packets at 1.2 ms.
    expect(&seen, "response_ms_p50", 53.0, 62.0);
    let responses = outcome(&seen, "responses").unwrap() as u64;
    let received = seen.flow.received();
    assert!((responses * 17_000..=(responses + 1) * 17_000).contains(&received), "{responses}, {received}");
    // The same where one packet of responses in forty is lost.
    let lossy = Path { lose: |place, _| place % 40 == 0, ..Path::default() };
    let seen = run(over(exchange(5_000, 17_000)), &lossy, 10);
    let (responses, received) = (outcome(&seen, "responses").unwrap() as u64, seen.flow.received());
    assert!(responses > 60, "{responses}");
    assert!((responses * 17_000..=(responses + 1) * 17_000).contains(&received), "{responses}, {received}");
}

#[test]
fn a_request_of_the_largest_size_is_carried_and_a_larger_one_refused() {
    let exchange = |request| {
        let traffic = RequestResponse { request, response: Bytes(1_000), think: Duration::ZERO };
        over(Traffic::RequestResponse(traffic))
    };
    let largest = Bytes(64 * 1_434);
    let seen = run(exchange(largest), &Path::default(), 3);
    assert!(outcome(&seen, "responses").unwrap() >= 5.0);
    let error = exchange(largest + Bytes(1)).check().unwrap_err().to_string();
    assert!(error.contains("traffic.request") && error.contains("1B to"), "{error}");
    let large = Game { size: Bytes(1_435), ..Game::default() };
    assert!(over(Traffic::Game(large)).check().is_err());
}

#[test]
fn a_game_measures_the_round_trip_from_either_end() {
    let game = Game { size: Bytes(80), interval: Duration::from_millis(20) };
    let seen = run(over(Traffic::Game(game)), &Path::default(), 10);
    // Two propagation delays, and what jitter and the link add.
    expect(&seen, "rtt_ms_p50", 39.5, 41.0);
    expect(&seen, "updates_lost_percent", 0.0, 0.0);
    // 500 beats; the last ones are on the way.
    expect(&seen, "updates", 496.0, 500.0);
    let lossy = Path { lose: |place, _| place > 10 && place % 4 == 0, ..Path::default() };
    let seen = run(over(Traffic::Game(game)), &lossy, 10);
    // Besides updates the sending end sends ACKs of inputs, which are lost in their stead.
    expect(&seen, "updates_lost_percent", 5.0, 45.0);
}

#[test]
fn a_call_sends_what_the_encoder_can() {
    let seen = run(over(Traffic::Call(Call::default())), &Path::default(), 20);
    expect(&seen, "bitrate_mbps", 2.3, 2.5);
    expect(&seen, "freezes", 0.0, 0.0);
    expect(&seen, "frames_late_percent", 0.0, 0.0);
    // Half a round trip, and eight packets of a frame.
    expect(&seen, "frame_delay_ms_p50", 20.0, 32.0);
}

#[test]
fn a_player_climbs_and_never_stalls() {
    let seen = run(over(Traffic::Video(Video::default())), &Path::default(), 60);
    expect(&seen, "stalls", 0.0, 0.0);
    expect(&seen, "startup_ms", 200.0, 1_500.0);
    expect(&seen, "bitrate_mbps", 2.5, 5.0);
}

#[test]
fn a_rate_is_offered_without_drift_and_arrives() {
    let seen = run(over(Traffic::RateLimited(Rate::from_mbps(2))), &Path::default(), 10);
    expect(&seen, "offered_mbps", 2.0, 2.002);
    // What half a round trip holds, and a packet.
    expect(&seen, "backlog_kb", 0.0, 9.0);
}

/// The stack takes nothing back, so what is left to discard must not be in it.
#[test]
fn a_pause_of_a_backlogged_flow_takes_effect_at_once() {
    let second = Duration::from_secs(1);
    let periods = OnOff { on: second, off: second, rate: None, random: false };
    let seen = run(over(Traffic::OnOff(periods)), &deep(), 4);
    let full = |from_ms: u64, to_ms: u64| {
        let period = Time::from_millis(from_ms)..Time::from_millis(to_ms);
        let forward = seen.left.iter().filter(|packet| packet.1 == Direction::Forward && packet.2 > 1_000);
        forward.filter(|packet| period.contains(&packet.0)).count()
    };
    assert!(full(0, 1_000) > 500);
    assert!(full(1_001, 2_000) <= 5, "{}", full(1_001, 2_000));
    assert!(full(2_000, 3_000) > 500);
    assert!(full(3_001, 4_000) <= 5, "{}", full(3_001, 4_000));
}

#[test]
fn what_was_sent_before_the_stop_arrives_and_nothing_after_it() {
    let lossy = Path { lose: |place, _| place % 50 == 0, ..Path::default() };
    let stop = Some(Time::from_secs(2));
    let seen = run(FlowSettings { stop, ..over(Traffic::Backlogged) }, &lossy, 20);
    assert_eq!(seen.flow.received(), seen.flow.delivered());
    assert_eq!(seen.flow.received(), seen.flow.sender.stream_sent());
    assert!(seen.flow.received() > 200_000);
    assert!(seen.flow.is_quiet());
}
