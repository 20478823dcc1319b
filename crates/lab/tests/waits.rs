//! The table and the picture of docs/abc-bound.md are what
//! `brakelight stability --rates 6Mbps..24Mbps --flows 1,8 --out DIR` makes.

use brakelight_core::time::Duration;
use brakelight_core::units::Rate;
use brakelight_lab::figures;
use brakelight_lab::stability::changes;
use brakelight_lab::stability::waits::{CHANGES, Links, waits};
use brakelight_lab::text::Screen;
use brakelight_lab::text::stability::waits_in_words;
use brakelight_scenario::documents::Origin;
use brakelight_testkit::part;
use brakelight_testkit::sources::hold_picture;

#[test]
fn the_longest_waits_of_the_book_are_what_the_command_makes() {
    let links = Links {
        rates: [Rate::from_mbps(6), Rate::from_mbps(24)],
        rtt: Duration::from_millis(100),
        eta: 0.98,
        target: Duration::from_millis(50),
        duration: Duration::from_secs(60),
        seed: 1,
    };
    let changes = changes(CHANGES).expect("the default factors");
    let found = waits(&links, &changes, &[1, 8], Origin::default(), &()).expect("the waits");
    for wait in &found.points {
        let [fluid_ms, packets_ms] = [wait.fluid_ms, wait.packets_ms].map(|bound| bound.expect("a bound"));
        assert!(wait.stairs_ms <= packets_ms && fluid_ms <= packets_ms, "{wait:?}");
    }
    hold_picture("waits.svg", &figures::waits(&found).svg());
    let table = waits_in_words(&found, &Screen::default());
    part::check("../abc-bound", "waits", &format!("```text\n{}\n```\n", table.trim_end()));
}
