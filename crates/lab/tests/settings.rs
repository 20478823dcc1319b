//! The settings in which experiments of one paper differ, each with its reason. A setting that one claim
//! alone chose would stand here without one: the test lists every parameter that has other values in other
//! experiments of the same paper, and fails where `docs/reproduction/reasons.toml` does not say why. What
//! differs between the schemes or the cases of one experiment is its subject, and no difference here.

use std::collections::{BTreeMap, BTreeSet};
use std::env;
use std::fmt::Write;
use std::fs;
use std::path::PathBuf;

use brakelight_lab::reproduce::all;
use brakelight_scenario::experiment::Experiment;
use brakelight_scenario::identity;
use serde::Deserialize;
use serde_json::Value;

/// The papers: their pages' titles, and how the ids of their experiments begin.
const PAPERS: [(&str, &str); 4] =
    [("ABC (NSDI 2020)", "ABC-"), ("ABC (HotNets 2017)", "HN-"), ("BMCC", "B-"), ("QUIC-DC", "Q-")];

/// As many values of a parameter are written out; of more only how many there are.
const SHOWN: usize = 4;

/// Values of one parameter in one experiment.
type Values = BTreeSet<String>;

/// The parameters of a paper: experiments and their values, by parameter.
type Parameters = BTreeMap<String, BTreeMap<String, Values>>;

/// `docs/reproduction/reasons.toml`: by paper, parameter and reason.
#[derive(Deserialize)]
#[serde(transparent)]
struct Reasons(BTreeMap<String, BTreeMap<String, String>>);

fn path(file: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs/reproduction").join(file)
}

/// Adds a value, with the options of an algorithm as parameters of their own. `place` is the kind of
/// algorithm.
fn algorithm(place: &str, text: &str, add: &mut impl FnMut(String, String)) {
    let (name, options) = text.split_once(':').unwrap_or((text, ""));
    for option in options.split(',').filter(|option| !option.is_empty()) {
        match option.split_once('=') {
            Some((key, value)) => add(format!("{place} {name}: {key}"), value.to_string()),
            None => add(format!("{place} {name}: {option}"), "yes".to_string()),
        }
    }
}

/// Adds every parameter below `value`; entries of a list are told apart by nothing.
fn flatten(name: &str, value: &Value, add: &mut impl FnMut(String, String)) {
    let inner = |key: &str| if name.is_empty() { key.to_string() } else { format!("{name}.{key}") };
    match value {
        Value::Object(map) => {
            for (key, value) in map {
                match (key.as_str(), value) {
                    ("name" | "seed", _) => {}
                    ("controller" | "feedback" | "queue" | "radio", Value::String(text)) => {
                        algorithm(key, text, add);
                    }
                    // Links are named for the experiment; elements beside them are settings.
                    ("path" | "reverse", Value::Array(stations)) => {
                        let stations = stations.iter().filter_map(Value::as_str);
                        for station in stations.filter(|station| station.contains(':')) {
                            algorithm("element", station, add);
                        }
                    }
                    _ => flatten(&inner(key), value, add),
                }
            }
        }
        Value::Array(list) => {
            for value in list {
                flatten(name, value, add);
            }
        }
        Value::String(text) => add(name.to_string(), text.clone()),
        other => add(name.to_string(), other.to_string()),
    }
}

/// The parameters of the experiments whose ids begin with `ids`, but of those that no paper claims.
fn parameters(experiments: &[Experiment], ids: &str) -> Parameters {
    let mut all = Parameters::new();
    let of_paper = |one: &&Experiment| one.id.starts_with(ids) && one.claims.iter().any(|claim| !claim.ours);
    for experiment in experiments.iter().filter(of_paper) {
        let mut add = |name: String, value: String| {
            all.entry(name).or_default().entry(experiment.id.clone()).or_default().insert(value);
        };
        let seeds: BTreeSet<u64> = experiment.jobs.iter().map(|job| job.scenario.seed).collect();
        if !seeds.is_empty() {
            add("seeds".to_string(), seeds.len().to_string());
        }
        for job in &experiment.jobs {
            let scenario = serde_json::from_str(&identity::canonical(&job.scenario)).expect("JSON");
            flatten("", &scenario, &mut add);
        }
    }
    // What one experiment sets and another does not differs too. An algorithm's options are all written out.
    let run: BTreeSet<String> = all.get("seeds").into_iter().flat_map(|by| by.keys().cloned()).collect();
    for (_, values) in all.iter_mut().filter(|(name, _)| !name.contains(": ")) {
        for experiment in &run {
            values.entry(experiment.clone()).or_insert_with(|| Values::from(["unset".to_string()]));
        }
    }
    all
}

/// Whether experiments that have the parameter have other values of it.
fn differs(values: &BTreeMap<String, Values>) -> bool {
    values.values().collect::<BTreeSet<_>>().len() > 1
}

/// The values of a parameter and the experiments that have them, in one cell of a table.
fn cell(values: &BTreeMap<String, Values>) -> String {
    let mut by_values: BTreeMap<&Values, Vec<&str>> = BTreeMap::new();
    for (experiment, values) in values {
        by_values.entry(values).or_default().push(experiment);
    }
    let distinct: BTreeSet<&String> = values.values().flatten().collect();
    if distinct.len() > SHOWN {
        return format!("{} values in {} experiments", distinct.len(), values.len());
    }
    // The experiments of the most frequent values are not named.
    let most = by_values.iter().max_by_key(|(_, experiments)| experiments.len()).map(|(values, _)| *values);
    let mut cells = Vec::new();
    for (values, experiments) in &by_values {
        let values_text = values.iter().map(|value| format!("`{value}`")).collect::<Vec<_>>().join(", ");
        let who = if most == Some(values) && experiments.len() > 1 {
            format!("{} experiments", experiments.len())
        } else {
            experiments.join(", ")
        };
        cells.push(format!("{values_text}: {who}"));
    }
    cells.join("; ")
}

#[test]
fn every_setting_that_differs_between_experiments_of_one_paper_has_a_reason() {
    let experiments = all().expect("the experiments can be read");
    let text = fs::read_to_string(path("reasons.toml")).expect("docs/reproduction/reasons.toml can be read");
    let Reasons(reasons) = toml::from_str(&text).expect("reasons by paper and parameter");
    let mut problems = Vec::new();
    let mut page = String::from(HEAD);
    let mut count = 0;
    for (title, ids) in PAPERS {
        let none = BTreeMap::new();
        let reasons = reasons.get(ids.trim_end_matches('-')).unwrap_or(&none);
        let mut used = BTreeSet::new();
        let _ = write!(page, "\n## {title}\n\n| parameter | values | reason |\n|---|---|---|\n");
        for (name, values) in parameters(&experiments, ids).iter().filter(|(_, values)| differs(values)) {
            count += 1;
            // A reason stands for a parameter, or for all whose names begin as it does up to a `*`.
            let reason = reasons.iter().find(|(of, _)| match of.strip_suffix('*') {
                Some(beginning) => name.starts_with(beginning),
                None => *of == name,
            });
            let exact = reasons.get_key_value(name).or(reason);
            match exact {
                Some((of, reason)) => {
                    used.insert(of.clone());
                    let _ = writeln!(page, "| `{name}` | {} | {reason} |", cell(values));
                }
                None => problems.push(format!("{ids} {name}: no reason for {}", cell(values))),
            }
        }
        let unused = reasons.keys().filter(|of| !used.contains(*of));
        problems.extend(unused.map(|of| format!("{ids} {of}: a reason, and no difference")));
    }
    assert!(problems.is_empty(), "docs/reproduction/reasons.toml:\n{}", problems.join("\n"));
    assert!(count > 0, "experiments that differ in nothing would need no test");
    let file = path("settings.md");
    if env::var_os("BRAKELIGHT_BLESS").is_some() {
        fs::write(&file, &page).expect("docs can be written");
    }
    let kept = fs::read_to_string(&file).unwrap_or_default();
    assert!(kept == page, "docs/reproduction/settings.md is stale: BRAKELIGHT_BLESS=1 writes it again");
}

/// The page above its tables.
const HEAD: &str = "\
# Settings that differ between experiments

Nobody should be able to choose a setting for one claim alone. So a test reads all experiments of a paper, and lists every parameter that has
different values in different experiments. It fails where a difference has no reason. The reasons are in
[reasons.toml](reasons.toml).

Within one experiment a parameter may have several values: those are its schemes and cases. A parameter of an algorithm counts only where the
algorithm runs. Experiments of which all claims are our own are left out.
";

#[test]
fn a_setting_of_one_experiment_alone_is_found() {
    let text = |id: &str, scheme: &str| {
        let text = format!(
            "id = \"{id}\"\ntitle = \"t\"\nsource = \"s\"\nschemes = [\"{scheme}\"]\ntraces = [\"fixed\"]\nseeds = 3\n\
             [[claim]]\nclaim = \"c\"\ncheck = \"utilization > 0\""
        );
        brakelight_scenario::experiment::read("x.toml", &text).unwrap()
    };
    let same = [text("X-1", "abc"), text("X-2", "abc")];
    assert!(parameters(&same, "X-").values().all(|values| !differs(values)));
    let other = [text("X-1", "abc"), text("X-2", "abc:eta=0.9"), text("X-3", "cubic")];
    let parameters = parameters(&other, "X-");
    let found: Vec<_> = parameters.iter().filter(|(_, values)| differs(values)).collect();
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!(found[0].0, "queue abc: eta");
    assert_eq!(cell(found[0].1), "`0.9`: X-2; `none`: X-1");
}
