//! Advice on links whose answer is known.

use brakelight_core::time::Duration;
use brakelight_lab::advise::{Advice, Can, LEAST_THROUGHPUT, Request, advise};
use brakelight_lab::{Simulator, Table};
use brakelight_scenario::documents::Origin;
use brakelight_scenario::trace::names::Names;

fn advice(down: &str, up: Option<&str>, can: Can) -> Advice {
    asked(down, up, can).0
}

fn asked(down: &str, up: Option<&str>, can: Can) -> (Advice, Table) {
    let request = Request {
        down: down.to_string(),
        up: up.map(str::to_string),
        can,
        rtt: Duration::from_millis(40),
        buffer: None,
        duration: Some(Duration::from_secs(10)),
        runs: Some(6),
        seed: 1,
        series: false,
    };
    advise(&request, &Names::default(), &Simulator, &()).unwrap()
}

/// A deep buffer on a link that moves: every change is better than today, and none costs a third of the
/// throughput.
#[test]
fn whoever_can_change_something_is_told_what() {
    for can in [Can::Senders, Can::Router, Can::Both] {
        let advice = advice("lte-walking", None, can);
        let [advised] = advice.directions.as_slice() else { panic!("one direction: {advice:?}") };
        assert_eq!(advised.today.name, "cubic");
        let deploy = advised.deploy.as_ref().unwrap_or_else(|| panic!("{can:?}: {advised:?}"));
        let best = advised.candidates.iter().find(|it| it.name == deploy.name).unwrap();
        assert!(best.eligible && best.throughput_of_today >= LEAST_THROUGHPUT, "{can:?}: {best:?}");
        assert!(best.queueing_p95_ms < 0.5 * advised.today.queueing_p95_ms, "{can:?}: {best:?}");
        assert!(!deploy.settings.is_empty(), "{can:?}: {deploy:?}");
        assert!(deploy.power.unwrap().is_significant(), "{can:?}: {deploy:?}");
    }
}

/// On a link that does not move, a shaper a little below its rate takes the queue away, in either direction.
#[test]
fn a_shaper_below_a_steady_link_takes_the_queue_away_in_both_directions() {
    let advice = advice("fixed", Some("step"), Can::Shaper);
    assert_eq!(advice.directions.len(), 2);
    let down = &advice.directions[0];
    let deploy = down.deploy.as_ref().unwrap_or_else(|| panic!("{down:?}"));
    assert!(deploy.name.starts_with("cake at "), "{deploy:?}");
    let best = &down.candidates.iter().find(|it| it.name == deploy.name).unwrap();
    assert!(best.queueing_p95_ms < 20.0 && down.today.queueing_p95_ms > 40.0, "{down:?}");
    let shaped = advice.directions.iter().map(|way| way.candidates.len());
    assert_eq!(shaped.collect::<Vec<_>>(), [5, 5], "today and four shapers");
}

/// The report says what the terminal says, and has the rows of both directions.
#[test]
fn a_report_begins_with_the_advice_for_both_directions() {
    let (advice, table) = asked("lte-walking", Some("step"), Can::Router);
    let rows: usize = advice.directions.iter().map(|way| way.candidates.len()).sum();
    assert_eq!(table.runs.len(), rows);
    assert_eq!(table.decision(), None, "the advice says it");
    let html = table.report(&Origin::default()).html();
    let data = html.split_once(r#""advice":["#).expect("the advice is in the data").1;
    for way in ["Download over lte-walking", "Upload over step"] {
        assert!(data.contains(way), "{way}");
    }
    let deploy = advice.directions[0].deploy.as_ref().unwrap();
    assert!(data.contains(&deploy.settings[0].replace('"', "\\\"")), "{deploy:?}");
}

/// A sender that keeps the queue short gets little beside one that fills it, and whoever is told to deploy it
/// is told that, too.
#[test]
fn advice_for_senders_says_what_they_get_beside_those_of_today() {
    let [senders, router] = [Can::Senders, Can::Router].map(|can| {
        let advice = advice("lte-walking", None, can);
        advice.directions[0].deploy.as_ref().unwrap_or_else(|| panic!("{advice:?}")).beside_today
    });
    assert!(senders.is_some_and(|share| share < 0.3), "{senders:?}");
    assert_eq!(router, None, "its senders are those of today");
}

#[test]
fn the_same_question_has_the_same_answer() {
    let ask = || serde_json::to_string(&advice("wifi", None, Can::Senders)).unwrap();
    assert_eq!(ask(), ask());
}
