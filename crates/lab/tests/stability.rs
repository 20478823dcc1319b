//! The maps and their pictures in the book are what `brakelight stability --flows 16,32,64 --out DIR` makes,
//! without and with `--variant adaptive`.

use brakelight_core::time::Duration;
use brakelight_core::units::Rate;
use brakelight_lab::analysis::stability::{Rule, Setting};
use brakelight_lab::figures;
use brakelight_lab::stability::{LOOP_RATIOS, RATIOS, map, ratios};
use brakelight_lab::text::Screen;
use brakelight_lab::text::stability::in_words;
use brakelight_scenario::documents::Origin;
use brakelight_testkit::part;
use brakelight_testkit::sources::hold_picture;

/// Checks the picture `picture` and the part `part` of the page against the map of `rule`.
fn check(rule: Rule, usual: &str, picture: &str, part: &str) {
    let setting = Setting {
        rule,
        rate: Rate::from_mbps(24),
        rtt: Duration::from_millis(100),
        duration: Duration::from_secs(60),
        seed: 1,
    };
    let ratios = ratios(usual).expect("the default ratios");
    let map = map(&setting, &ratios, &[16, 32, 64], Origin::default(), &()).expect("the map");
    hold_picture(picture, &figures::stability(&map).svg());
    let table = in_words(&map, &Screen::default());
    part::check("../stability", part, &format!("```text\n{}\n```\n", table.trim_end()));
}

#[test]
fn the_stability_map_of_the_book_is_what_the_command_makes() {
    check(Rule::Paper { eta: 0.98, target: Duration::from_millis(50) }, RATIOS, "stability.svg", "map");
}

#[test]
fn the_map_of_the_rule_that_tunes_itself_is_what_the_command_makes() {
    check(Rule::Adaptive, LOOP_RATIOS, "stability-adaptive.svg", "adaptive");
}
