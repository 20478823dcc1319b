//! Data files of flent: series of values at common times (`x_values`, in seconds; `results`, one list a
//! series, `null` where there is none).
//!
//! | series | unit | use |
//! |---|---|---|
//! | `TCP download`, `TCP upload BE`, `TCP download sum` | Mbit/s | the rate |
//! | `Ping (ms) ICMP` and others in `(ms)` | ms | none |
//!
//! flent.org, "Data file format"; `tests/*.conf` of flent name the series and give both kinds their units.
//! `--direction` or `--column` chooses. Where a direction has several series, the one that ends in `sum` is
//! taken, which flent computes.

use serde_json::{Map, Value};

use super::series::{Sample, Series};
use super::{
    ConvertError, ConvertOptions, Converted, Format, RateUnit, Selection, json, refuse_json, shorten,
};

/// Returns `true` if this JSON begins like a data file.
pub(super) fn is_data(has: impl Fn(&str) -> bool) -> bool {
    has("x_values") || has("raw_values") || has("DATA_FILENAME") && has("metadata")
}

/// The direction of a series of rates.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    Down,
    Up,
    /// Of both, or nobody knows.
    Other,
}

/// The direction of the series called `name`; `None` if it is not of rates.
fn way(name: &str) -> Option<Way> {
    let lower = name.to_ascii_lowercase();
    let words: Vec<&str> = lower.split(|c: char| !c.is_ascii_alphanumeric()).collect();
    let has = |list: &[&str]| words.iter().any(|word| list.contains(word));
    if has(&["ms", "ping", "rtt", "cwnd", "jitter", "loss", "delay", "cpu", "fairness", "retransmits"]) {
        return None;
    }
    match (has(&["download", "down", "downloads"]), has(&["upload", "up", "uploads"])) {
        (true, false) => Some(Way::Down),
        (false, true) => Some(Way::Up),
        _ => has(&["tcp", "udp", "totals", "throughput", "goodput", "bandwidth"]).then_some(Way::Other),
    }
}

pub(super) fn from_data(bytes: &[u8], options: &ConvertOptions) -> Result<Converted, ConvertError> {
    let document = json(bytes)?;
    let results = document.get("results").and_then(Value::as_object);
    let results = results.ok_or_else(|| refuse_json("results", "missing: expected the series of flent"))?;
    let times = document.get("x_values").and_then(Value::as_array);
    let times =
        times.ok_or_else(|| refuse_json("x_values", "missing: expected the times of flent's series"))?;
    let name = choose(results, options)?;
    let field = || format!("results.{}", shorten(name));
    let values = results.get(name).and_then(Value::as_array);
    let values = values.ok_or_else(|| refuse_json(field(), "expected a list of numbers"))?;
    if values.len() != times.len() {
        let problem = format!("{} values, where `x_values` has {}", values.len(), times.len());
        return Err(refuse_json(field(), problem));
    }
    let unit = options.unit.unwrap_or(RateUnit::MBIT);
    let mut samples: Vec<Sample> = Vec::with_capacity(values.len());
    let mut without = 0_u64;
    let mut last = i64::MIN;
    for (index, (time, value)) in times.iter().zip(values).enumerate() {
        let seconds = time.as_f64().filter(|seconds| (-1e10..=1e10).contains(seconds));
        let start = seconds.map(|seconds| libm::round(seconds * 1e3) as i64).filter(|ms| *ms >= last);
        let start = start.ok_or_else(|| {
            let problem = format!("{time} is not a number of seconds, no less than the one before");
            refuse_json(format!("x_values[{index}]"), problem)
        })?;
        last = start;
        if value.is_null() {
            without += 1;
            // What the link did there is not known.
            if let Some(sample) = samples.last_mut().filter(|sample| sample.end.is_none()) {
                sample.end = Some(start).filter(|end| *end > sample.start);
            }
            continue;
        }
        let bps = value.as_f64().map(|value| unit.bps(value)).filter(|bps| (0.0..=1e12).contains(bps));
        let rate = bps.ok_or_else(|| {
            refuse_json(
                format!("{}[{index}]", field()),
                format!("{value} is not a rate from 0 to 1e12 bit/s"),
            )
        })?;
        samples.push(Sample { start, end: None, rate });
    }
    let series = Series::of(&samples).ok_or(ConvertError::Empty("value of this series of flent"))?;
    let mut notes = vec![format!("the rate is the series `{name}`, in Mbit/s")];
    if options.unit.is_some() {
        notes[0] = format!("the rate is the series `{name}`");
    }
    if without > 0 {
        notes.push(format!("{without} times hold no value of it"));
    }
    notes.push(
        "flent counts payload: the headers, about 3.5 % for TCP in 1500-byte packets, are not in these rates"
            .to_string(),
    );
    let warnings = series.warning().into_iter().collect();
    Converted::of_rates(&series.stretches, Format::Flent, options, notes, warnings)
}

/// The name of the series that is taken.
fn choose<'a>(results: &'a Map<String, Value>, options: &ConvertOptions) -> Result<&'a str, ConvertError> {
    let names: Vec<&str> = results.keys().map(String::as_str).collect();
    let list = |names: &[&str]| {
        names.iter().take(30).map(|name| format!("`{}`", shorten(name))).collect::<Vec<_>>().join(", ")
    };
    if let Some(column) = &options.column {
        let found = names.iter().find(|name| name.eq_ignore_ascii_case(column));
        return found
            .copied()
            .ok_or_else(|| ConvertError::NoColumn { column: column.clone(), names: list(&names) });
    }
    let wanted = match options.selection {
        Selection::OneDirection | Selection::All => None,
        Selection::Down => Some(Way::Down),
        Selection::Up => Some(Way::Up),
        selection => {
            let valid = "flent's data has no addresses: give `up` or `down`, or a series as `--column`";
            return Err(ConvertError::Direction { selection, valid });
        }
    };
    let rates: Vec<&str> = names.iter().copied().filter(|name| way(name).is_some()).collect();
    let of = |wanted: Way| rates.iter().copied().filter(|name| way(name) == Some(wanted)).collect::<Vec<_>>();
    let (down, up) = (of(Way::Down), of(Way::Up));
    let mut chosen = match wanted {
        Some(wanted) => of(wanted),
        None if up.is_empty() && !down.is_empty() => down.clone(),
        None if down.is_empty() && !up.is_empty() => up.clone(),
        None => rates.clone(),
    };
    if wanted.is_some() || up.is_empty() || down.is_empty() {
        let sums: Vec<&str> =
            chosen.iter().copied().filter(|name| name.to_ascii_lowercase().ends_with(" sum")).collect();
        if sums.len() == 1 {
            chosen = sums;
        }
    }
    let example = || shorten(chosen.first().or(rates.first()).or(names.first()).unwrap_or(&""));
    match chosen.as_slice() {
        [one] => Ok(one),
        _ if rates.is_empty() => Err(refuse_json(
            "results",
            format!(
                "no series' name says that it holds rates: choose one of {} with `--column`",
                list(&names)
            ),
        )),
        [] => Err(refuse_json(
            "results",
            format!(
                "no series has this direction: choose one of {} with `--column`, such as `--column \"{}\"`",
                list(&rates),
                example()
            ),
        )),
        _ if wanted.is_none() && !up.is_empty() && !down.is_empty() => Err(refuse_json(
            "results",
            format!(
                "several series hold rates: choose with `--direction down`, `--direction up` or `--column \"{}\"`; the \
                 file has {}",
                example(),
                list(&rates)
            ),
        )),
        _ => Err(refuse_json(
            "results",
            format!(
                "several series hold rates: choose with `--column \"{}\"`; the file has {}",
                example(),
                list(&chosen)
            ),
        )),
    }
}

/// Returns the directions of which a file has rates, if it has both.
pub(super) fn selections(bytes: &[u8]) -> Vec<(Selection, brakelight_core::units::Bytes)> {
    let Ok(document) = json(bytes) else { return Vec::new() };
    let Some(results) = document.get("results").and_then(Value::as_object) else { return Vec::new() };
    let has = |wanted| results.keys().any(|name| way(name) == Some(wanted));
    if !(has(Way::Down) && has(Way::Up)) {
        return Vec::new();
    }
    [Selection::Down, Selection::Up]
        .map(|selection| (selection, brakelight_core::units::Bytes::ZERO))
        .to_vec()
}
