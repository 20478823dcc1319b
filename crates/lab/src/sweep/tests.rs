use std::collections::BTreeSet;

use brakelight_core::time::{Duration, Time};
use brakelight_scenario::outcome::Outcome;
use brakelight_sim::RunError;

use super::folder::Places;
use super::*;
use crate::error::Cause;

fn grid() -> Grid {
    let grid =
        Grid::new().axis("scheme", ["cubic", "vegas"]).axis("trace", ["fixed"]).axis("duration", ["1s"]);
    Grid { runs: 3, ..grid.axis("rtt", ["20ms", "100ms"]) }
}

fn sweep_of(grid: &Grid) -> Result<Sweep, Error> {
    Sweep::new(grid, &Names::from_environment().unwrap())
}

fn folder(what: &str) -> std::path::PathBuf {
    std::env::temp_dir().join(format!("brakelight-sweep-{what}-{}", std::process::id()))
}

/// The tables of a sweep in a folder, after which it is removed.
fn tables(folder: &Path) -> Vec<(String, Vec<u8>)> {
    let names = ["runs.csv", "flows.csv", "links.csv"];
    names.map(|name| (name.to_string(), std::fs::read(folder.join(name)).unwrap())).to_vec()
}

fn into(folder: &Path, shard: Shard, resume: bool) -> Result<Written, Error> {
    Folder { path: folder, shard, resume, figures: true }.run(&sweep_of(&grid()).unwrap(), &Simulator, &())
}

#[test]
fn a_grid_has_a_run_for_every_combination_and_every_run_an_identity_of_its_own() {
    let rows = sweep(&grid(), &()).unwrap();
    assert_eq!(rows.len(), 12);
    let ids: BTreeSet<RunId> = rows.iter().map(|row| row.run_id).collect();
    assert_eq!(ids.len(), 12);
    assert!(rows.iter().all(|row| row.run.run_id == Some(row.run_id)), "the identity of the row itself");
    let seeds: Vec<u64> = rows.iter().map(|row| row.run.seed).collect();
    assert_eq!(seeds, [1, 2, 3].repeat(4));
    assert!(rows[..6].iter().all(|row| row.run.scheme == "cubic" && row.run.trace == "fixed"));
    let frame = sweep_of(&grid()).unwrap().runs_frame(&rows).unwrap();
    let names: Vec<&str> = frame.columns().iter().map(|column| column.name.as_str()).collect();
    assert_eq!(names[..7], ["run_id", "duration", "rtt", "rtt_ms", "scheme", "trace", "seed"]);
}

#[test]
fn times_rates_and_sizes_of_axes_are_numbers_too() {
    let grid = Grid::new()
        .axis("scheme", ["cubic"])
        .axis("trace", ["fixed"])
        .axis("duration", ["1s"])
        .axis("rtt", ["100ms", "0.02s"])
        .axis("buffer", ["50pkt", "30kB"])
        .axis("link.forward.rate", ["6Mbps"]);
    // The setup of `compare` has a trace, which a rate cannot stand beside; the table needs no scenario.
    let sweep = Sweep { grid, registry: Registry::standard(), traces: Traces::new() };
    let run_id: RunId = "0123456789abcdef0123456789abcdef".parse().unwrap();
    let rows = [0, 3].map(|index| Row { index, run_id, run: Run::default() });
    let frame = sweep.runs_frame(&rows).unwrap();
    let numbers = |name: &str| match &frame.columns().iter().find(|column| column.name == name)?.values {
        Values::Number(values) => Some(values.clone()),
        other => panic!("{name}: {other:?}"),
    };
    assert_eq!(numbers("rtt_ms"), Some(vec![Some(100.0), Some(20.0)]));
    assert_eq!(numbers("buffer_packets"), Some(vec![Some(50.0), None]));
    assert_eq!(numbers("buffer_bytes"), Some(vec![None, Some(30_000.0)]));
    assert_eq!(numbers("link.forward.rate_mbps"), Some(vec![Some(6.0); 2]));
    // `duration_s` is there, and schemes are names.
    assert_eq!((numbers("duration_ms"), numbers("scheme_ms")), (None, None));
}

#[test]
fn an_interrupted_sweep_goes_on_and_its_tables_have_the_same_bytes() {
    let (whole, parted) = (folder("whole"), folder("parted"));
    into(&whole, Shard::WHOLE, false).unwrap();
    assert!(matches!(into(&whole, Shard::WHOLE, false), Err(Error::SweepExists(_))));
    let expected = tables(&whole);
    // What is left of a sweep that was ended in the middle of a line.
    let journal = std::fs::read(whole.join("runs.jsonl")).unwrap();
    std::fs::create_dir_all(&parted).unwrap();
    std::fs::write(parted.join("runs.jsonl"), &journal[..journal.len() / 2]).unwrap();
    let written = into(&parted, Shard::WHOLE, true).unwrap();
    assert!((1..12).contains(&written.kept), "{written:?}");
    assert_eq!(tables(&parted), expected);
    for folder in [whole, parted] {
        std::fs::remove_dir_all(folder).unwrap();
    }
}

#[test]
fn a_sweep_that_has_grown_keeps_the_runs_that_it_had() {
    let (whole, grown) = (folder("grown-whole"), folder("grown"));
    let more = Grid { runs: 5, ..grid() };
    let more =
        Grid { axes: vec![more.axes[0].clone()], ..more }.axis("trace", ["fixed"]).axis("duration", ["1s"]);
    let more = more.axis("rtt", ["20ms", "60ms", "100ms"]);
    let sweep = sweep_of(&more).unwrap();
    let run = |path: &Path| {
        let folder = Folder { path, shard: Shard::WHOLE, resume: true, figures: false };
        folder.run(&sweep, &Simulator, &()).unwrap()
    };
    assert_eq!(run(&whole).kept, 0);
    into(&grown, Shard::WHOLE, false).unwrap();
    let written = run(&grown);
    assert_eq!((written.runs, written.kept), (30, 12));
    assert_eq!(tables(&grown), tables(&whole));
    // Once more, with the old lines at numbers that are others' now.
    let again = run(&grown);
    assert_eq!((again.runs, again.kept), (30, 30));
    assert_eq!(tables(&grown), tables(&whole));
    for folder in [whole, grown] {
        std::fs::remove_dir_all(folder).unwrap();
    }
}

#[test]
fn a_journal_in_the_order_of_the_grid_takes_no_memory() {
    let place = folder("ordered");
    for index in [1, 2] {
        let shard = Shard::new(index, 2).unwrap();
        let place = place.join(index.to_string());
        into(&place, shard, false).unwrap();
        let places =
            Places::of(&sweep_of(&grid()).unwrap(), &Simulator, &place.join("runs.jsonl"), shard).unwrap();
        assert_eq!(places.memory(), (6, 0));
        let runs: Vec<u64> = places.ordered().map(|(run, _)| run).collect();
        assert_eq!(runs, shard.runs(12));
    }
    std::fs::remove_dir_all(place).unwrap();
}

#[test]
fn a_table_has_a_bounded_number_of_row_groups_of_bounded_size() {
    assert_eq!([1, 5_000_000, 16_777_216].map(folder::group), [16_384; 3]);
    assert!(MOST_RUNS.div_ceil(folder::group(MOST_RUNS)) <= 1025 && folder::group(MOST_RUNS) < 100_000);
}

#[test]
fn the_shards_of_a_grid_are_the_grid() {
    let whole = folder("unsharded");
    into(&whole, Shard::WHOLE, false).unwrap();
    let shards = [1, 2, 3].map(|index| {
        let folder = folder(&format!("shard-{index}"));
        into(&folder, Shard::new(index, 3).unwrap(), false).unwrap();
        folder
    });
    let lines = |folder: &Path, name: usize| {
        let text = String::from_utf8(tables(folder)[name].1.clone()).unwrap();
        text.lines().skip(1).map(str::to_string).collect::<Vec<_>>()
    };
    for table in 0..3 {
        let mut expected = lines(&whole, table);
        let mut found: Vec<String> = shards.iter().flat_map(|folder| lines(folder, table)).collect();
        expected.sort();
        found.sort();
        assert_eq!(found, expected);
    }
    for folder in shards.iter().chain([&whole]) {
        std::fs::remove_dir_all(folder).unwrap();
    }
}

#[test]
fn any_key_of_a_scenario_can_be_an_axis() {
    let text = "duration = \"1s\"\n[[link]]\nname = \"up\"\nrate = \"12Mbps\"\n\
                [[flow]]\nname = \"one\"\ncontroller = \"cubic\"\npath = [\"up\"]\n";
    let base = Base::Scenario { file: "x.toml".into(), text: text.into() };
    let grid = Grid { base, ..Grid::new() }.axis("link.up.rate", ["6Mbps", "24Mbps"]).axis("seed", [7, 8]);
    let rows = sweep(&grid, &()).unwrap();
    let rates: Vec<f64> = rows.iter().map(|row| row.run.capacity_mbps.round()).collect();
    assert_eq!(rates, [6.0, 6.0, 24.0, 24.0]);
    assert_eq!(rows[3].run.seed, 8);
    let frame = sweep_of(&grid).unwrap().runs_frame(&rows).unwrap();
    assert_eq!(frame.columns()[1].name, "link.up.rate");
    let wrong = grid.axis("link.down.rate", ["1Mbps"]);
    let said = sweep_of(&wrong).unwrap_err().to_string();
    assert_eq!(said, "grid: axes: `link.down.rate`: no link is called `down`: there are up");
}

#[test]
fn wrong_grids_are_refused_before_anything_runs() {
    let said = |grid: &Grid| sweep_of(grid).unwrap_err().to_string();
    assert_eq!(said(&Grid::new().axis("trace", ["fixed"])), "grid: axes: there is no `scheme`");
    let rtt = Grid::new().axis("scheme", ["cubic"]).axis("trace", ["fixed"]).axis("rtt", ["20ms", "soon"]);
    assert_eq!(said(&rtt), "grid: axes: rtt = `soon`: valid is a time such as `100ms`");
    assert_eq!(said(&Grid::new().axis::<&str>("rtt", [])), "grid: axes: `rtt` has no value");
    let scheme = Grid::new().axis("trace", ["fixed"]).axis("scheme", ["cubic", "nosuch"]);
    assert!(said(&scheme).contains("nosuch"), "{}", said(&scheme));
    let unknown = Grid::new().axis("scheme", ["cubic"]).axis("trace", ["nosuch"]);
    assert!(said(&unknown).contains("unknown trace `nosuch`"), "{}", said(&unknown));
}

#[test]
fn shards_are_counted_from_one() {
    assert_eq!("2/8".parse(), Ok(Shard { index: 2, of: 8 }));
    for text in ["0/8", "9/8", "1", "a/b", "1/0"] {
        assert!(text.parse::<Shard>().is_err(), "{text}");
    }
}

#[test]
fn a_run_is_done_again_once_its_trace_holds_something_else() {
    let place = folder("trace");
    std::fs::create_dir_all(&place).unwrap();
    let trace = place.join("link.down");
    let grid = Grid::new()
        .axis("scheme", ["cubic"])
        .axis("trace", [trace.display().to_string()])
        .axis("duration", ["1s"]);
    let kept = |text: &str| {
        std::fs::write(&trace, text).unwrap();
        let folder = Folder { path: &place, shard: Shard::WHOLE, resume: true, figures: true };
        folder.run(&sweep_of(&grid).unwrap(), &Simulator, &()).unwrap().kept
    };
    assert_eq!(kept("1\n2\n"), 0);
    assert_eq!(kept("1\n3\n"), 0, "another trace of the same name");
    assert_eq!(kept("1\n3\n"), 1);
    std::fs::remove_dir_all(place).unwrap();
}

/// Fails at one seed of Vegas on the longer path.
struct Fails;

impl Runner for Fails {
    fn run(&self, scenario: &Scenario, traces: &Traces) -> Result<Outcome, Cause> {
        let long = scenario.flows[0].rtt == Duration::from_millis(100);
        if scenario.seed == 2 && long && scenario.flows[0].controller.name() == "vegas" {
            return Err("the machine is gone".into());
        }
        Simulator.run(scenario, traces)
    }
}

#[test]
fn what_finished_before_a_sweep_was_ended_is_kept() {
    let place = folder("ended");
    let sweep = sweep_of(&grid()).unwrap();
    let folder = Folder { path: &place, shard: Shard::WHOLE, resume: true, figures: true };
    assert!(matches!(folder.run(&sweep, &Fails, &()), Err(Error::Run { .. })));
    let journal = std::fs::read_to_string(place.join("runs.jsonl")).unwrap();
    assert!(journal.lines().count() >= 10, "the runs before number 10: {}", journal.lines().count());
    assert!(folder.run(&sweep, &Simulator, &()).unwrap().kept >= 10);
    std::fs::remove_dir_all(place).unwrap();
}

/// As if the stack of one run's flow panicked.
struct Panics;

impl Runner for Panics {
    fn run(&self, scenario: &Scenario, traces: &Traces) -> Result<Outcome, Cause> {
        Fails.run(scenario, traces).map_err(|_| {
            let (flow, controller) = ("a".to_string(), "toy/cubic".to_string());
            RunError::Stack { flow, controller, at: Time::ZERO, reason: "it panicked: no".into() }.into()
        })
    }
}

#[test]
fn a_run_that_a_stack_ends_has_no_row_and_is_run_again() {
    let place = folder("panics");
    let sweep = sweep_of(&grid()).unwrap();
    let folder = Folder { path: &place, shard: Shard::WHOLE, resume: true, figures: true };
    let written = folder.run(&sweep, &Panics, &()).unwrap();
    assert_eq!(written.failed.len(), 1);
    assert!(written.failed[0].contains(", seed 2: flow `a` (toy/cubic), at 0.000000 s"), "{written:?}");
    let journal = std::fs::read_to_string(place.join("runs.jsonl")).unwrap();
    assert_eq!(journal.lines().count() as u64, sweep.runs() - 1);
    let again = folder.run(&sweep, &Simulator, &()).unwrap();
    assert_eq!((again.kept, again.failed.len()), (sweep.runs() - 1, 0));
    std::fs::remove_dir_all(place).unwrap();
}

#[test]
fn a_wrong_axis_is_named_before_anything_runs_and_without_lines_that_are_not_the_grids() {
    let said =
        |grid: Grid| sweep_of(&grid).err().map_or_else(|| "accepted".into(), |error| error.to_string());
    let grid = || Grid::new().axis("scheme", ["cubic"]).axis("trace", ["fixed"]);
    assert_eq!(
        said(grid().axis("seed", [1, -3])),
        "grid: axes: seed = `-3`: valid is a whole number from 0 on"
    );
    assert_eq!(said(grid().axis("rtt", ["20ms", "20ms"])), "grid: axes: `rtt` has \"20ms\" twice");
    let unknown = said(grid().axis("rrt", ["20ms"]));
    let start = "grid: axes: unknown key `rrt` (did you mean `rtt`?): valid are scheme, trace, rtt, buffer, duration, trace_offset, against, seed, name";
    assert!(unknown.starts_with(start), "{unknown}");
    let of_link = said(grid().axis("link.forward.buffer", ["soon"]));
    assert!(of_link.starts_with("grid: axes: link `forward`: buffer = `soon` is not"), "{of_link}");
}

#[test]
fn an_axis_of_numbers_and_words_is_words_in_every_part_of_the_table() {
    let base = Base::Scenario {
        file: "x.toml".into(),
        text: "duration = \"1s\"\n[[link]]\nname = \"up\"\nrate = \"12Mbps\"\n\
               [[flow]]\nname = \"one\"\ncontroller = \"cubic\"\npath = [\"up\"]\n"
            .into(),
    };
    let values = [Value::Integer(10), Value::from("10")];
    let grid = Grid { base, ..Grid::new() }.axis("flow.one.initial_window", values);
    let sweep = Sweep { grid, registry: Registry::standard(), traces: Traces::new() };
    let row = Row { index: 0, run_id: sweep.run_id(0, &Simulator).unwrap(), run: Run::default() };
    let frame = sweep.runs_frame(&[row]).unwrap();
    assert_eq!(frame.columns()[1].values, Values::Text(vec!["10".into()]));
}

#[test]
fn two_sweeps_do_not_share_a_folder() {
    struct Within<'a>(&'a Path, std::sync::Mutex<Vec<String>>);
    impl Progress for Within<'_> {
        fn begin(&self, _: &str, _: usize) {
            // Another sweep into the same folder, while this one is at work.
            let other = into(self.0, Shard::WHOLE, true).unwrap_err();
            self.1.lock().unwrap().push(other.to_string());
        }
        fn step(&self, _: &str) {}
    }
    let folder = folder("shared");
    let within = Within(&folder, std::sync::Mutex::default());
    let sweep = sweep_of(&grid()).unwrap();
    Folder { path: &folder, shard: Shard::WHOLE, resume: false, figures: true }
        .run(&sweep, &Simulator, &within)
        .unwrap();
    let said = within.1.into_inner().unwrap();
    assert!(said.len() == 1 && said[0].contains("another sweep is running"), "{said:?}");
    // Once it is done, the folder is free.
    into(&folder, Shard::WHOLE, true).unwrap();
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn runs_are_refused_where_seeds_are_an_axis() {
    let grid = Grid::new().axis("scheme", ["cubic"]).axis("trace", ["fixed"]).axis("seed", [7, 8]);
    assert!(sweep_of(&grid).is_ok());
    let said = sweep_of(&Grid { runs: 3, ..grid.clone() }).unwrap_err().to_string();
    assert_eq!(said, "grid: runs = 3: the axis `seed` says which seeds there are; give one of the two");
    let said = sweep_of(&Grid { seed: 3, ..grid }).unwrap_err().to_string();
    assert_eq!(said, "grid: seed = 3: the axis `seed` says which seeds there are; give one of the two");
}

#[test]
fn an_option_of_the_schemes_can_be_an_axis() {
    let grid = Grid::new().axis("trace", ["fixed"]).axis("duration", ["1s"]);
    let grid = grid.axis("scheme", ["abc", "abc:eta=0.9"]).axis("option.delta", ["66ms", "133ms"]);
    let rows = sweep(&grid, &()).unwrap();
    let schemes: Vec<&str> = rows.iter().map(|row| row.run.scheme.as_str()).collect();
    let expected = ["abc:delta=66ms", "abc:delta=133ms", "abc:eta=0.9,delta=66ms", "abc:eta=0.9,delta=133ms"];
    assert_eq!(schemes, expected);
    let frame = sweep_of(&grid).unwrap().runs_frame(&rows).unwrap();
    assert!(frame.columns().iter().any(|column| column.name == "option.delta"));
    let said = sweep_of(&grid.axis("option.nosuch", [1])).unwrap_err().to_string();
    assert!(said.contains("unknown option `nosuch`"), "{said}");
}

#[test]
fn a_grid_of_more_runs_than_can_be_numbered_is_refused() {
    let values: Vec<i64> = (1..=1000).collect();
    let axes = (1..=7).map(|number| format!("option.of{number}"));
    let grid = axes.fold(Grid::new(), |grid, name| grid.axis(&name, values.clone()));
    let refused = sweep_of(&grid).unwrap_err().to_string();
    assert!(refused.contains("runs: valid are up to 100000000"), "{refused}");
}
