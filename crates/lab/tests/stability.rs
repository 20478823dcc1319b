//! The map and its picture in the book are what `brakelight stability --flows 16,32,64 --out DIR` makes.

use brakelight_core::time::Duration;
use brakelight_core::units::Rate;
use brakelight_lab::figures;
use brakelight_lab::stability::{RATIOS, map, ratios};
use brakelight_lab::text::Screen;
use brakelight_lab::text::stability::in_words;
use brakelight_scenario::documents::Origin;
use brakelight_sim::analysis::stability::Setting;
use brakelight_testkit::part;
use brakelight_testkit::sources::hold_picture;

#[test]
fn the_stability_map_of_the_book_is_what_the_command_makes() {
    let setting = Setting {
        rate: Rate::from_mbps(24),
        rtt: Duration::from_millis(100),
        eta: 0.98,
        target: Duration::from_millis(50),
        duration: Duration::from_secs(60),
        seed: 1,
    };
    let ratios = ratios(RATIOS).expect("the default ratios");
    let map = map(&setting, &ratios, &[16, 32, 64], Origin::default(), &()).expect("the map");
    hold_picture("stability.svg", &figures::stability(&map).svg());
    let table = in_words(&map, &Screen::default());
    part::check("../stability", "map", &format!("```text\n{}\n```\n", table.trim_end()));
}
