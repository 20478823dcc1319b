use super::*;
use brakelight_scenario::compare::Compare;
use brakelight_scenario::outcome::Summary;
use brakelight_scenario::reference::{Model, Real, Tolerance};
use brakelight_scenario::scheme::Scheme;

fn run(throughput_mbps: f64, p95: f64) -> Run {
    let queueing_delay_ms = Some(Summary { p95, ..Summary::default() });
    Run { throughput_mbps, queueing_delay_ms, ..Run::default() }
}

fn pair(reference: Option<&'static Real>) -> Pair {
    let model = Model::of("cubic").unwrap();
    let scenario = Compare::mahimahi(Scheme::parse(model.scheme).unwrap(), "step").scenario().unwrap();
    Pair { label: "x".into(), scenario, tolerance: model.tolerance, source: pairs::TABLE, reference }
}

#[test]
fn the_simulators_median_is_held_against_the_range_of_the_emulated_runs() {
    let simulated = run(4.1, 130.0);
    let emulated = [run(4.0, 90.0), run(4.05, 100.0)];
    let row = judge(&pair(None), &simulated, None, &emulated).unwrap();
    assert_eq!(row.cells.len(), 2);
    assert_eq!((row.cells[0].value, row.cells[0].range), (4.1, [4.0, 4.05]));
    // 4.1 lies 1.2 % above 4.05, of 3; 130 lies 30 % above 100, of 35.
    assert_eq!(row.verdict, Verdict::Within);
    let slower = [run(3.0, 100.0)];
    let row = judge(&pair(None), &simulated, None, &slower).unwrap();
    assert_eq!((row.cells[0].verdict, row.cells[1].verdict), (Verdict::Outside, Verdict::Within));
    assert_eq!((row.verdict, verdict(&row).as_str()), (Verdict::Outside, "OUTSIDE"));
}

#[test]
fn a_run_that_delivered_nothing_is_within_nothing() {
    let nothing = Run::default();
    let row = judge(&pair(None), &nothing, None, std::slice::from_ref(&nothing)).unwrap();
    assert_eq!(row.verdict, Verdict::Outside);
}

#[test]
fn the_emulator_is_held_against_what_was_measured_too() {
    let real = Real::find("Verizon-LTE-short.up", "cubic").unwrap();
    let near = run(5.5, 900.0);
    let row = judge(&pair(Some(real)), &near, None, std::slice::from_ref(&near)).unwrap();
    assert_eq!(row.cells.len(), 4);
    assert_eq!(row.verdict, Verdict::Within);
    let far = run(5.5, 2000.0);
    let row = judge(&pair(Some(real)), &far, None, std::slice::from_ref(&far)).unwrap();
    assert_eq!(verdict(&row), "OUTSIDE what was measured");
}

#[test]
fn what_was_never_measured_gets_the_most_that_the_table_allows() {
    assert_eq!(pairs::loosest(), Tolerance { throughput: 0.08, p95: 0.35 });
}

#[test]
fn the_stack_and_the_model_of_it_are_each_held_against_the_emulated_runs() {
    let emulated = [run(4.0, 90.0), run(4.2, 100.0)];
    let mut pair = pair(None);
    pair.tolerance = pairs::QUIC;
    // 4.5 lies 7.1 % above 4.2, of 10; 140 lies 40 % above 100, of 30.
    let row = judge(&pair, &run(4.5, 100.0), Some(&run(4.1, 140.0)), &emulated).unwrap();
    let verdicts: Vec<_> = row.cells.iter().map(|cell| (cell.of, cell.name, cell.verdict)).collect();
    assert_eq!(
        verdicts,
        [
            ("simulator", "throughput_mbps", Verdict::Within),
            ("simulator", "p95_ms", Verdict::Within),
            ("modelled", "throughput_mbps", Verdict::Within),
            ("modelled", "p95_ms", Verdict::Outside),
        ]
    );
    assert_eq!((row.verdict, verdict(&row).as_str()), (Verdict::Outside, "OUTSIDE: the model"));
}

#[test]
fn simulated_connections_begin_with_the_emulated_ones_and_their_data_a_handshake_later() {
    let pair = pair(None);
    let mut flow = pair.scenario.flows[0].clone();
    flow.name = flow.name_of(0);
    let times = [("started_s".to_string(), 0.4), ("ended_s".to_string(), 60.0)].into();
    let seen = brakelight_scenario::outcome::FlowOutcome {
        name: flow.name.clone(),
        application: Some(times),
        ..Default::default()
    };
    let emulated = [Run { duration_s: 61.0, flows: vec![seen], ..run(4.0, 90.0) }];
    let begin = |host| {
        let scenario = as_emulated(&pair, &emulated, host);
        assert_eq!(scenario.duration, Duration::from_secs(61));
        scenario.flows[0].start.as_millis_f64()
    };
    // The RTT is 100 ms, and the seeds draw half of one to either side.
    assert_eq!(begin(Simulated::KernelTcp), 400.0 + 200.0 - 50.0);
    assert_eq!(begin(Simulated::QuicStack), 400.0 - 50.0);
    assert_eq!(begin(Simulated::QuicModel), 400.0 + 100.0 - 50.0);
}
