//! `trace fit`: what it makes of recordings, what it says about it, and what it refuses; and `trace synth` of
//! a recipe that knows delay and loss.

mod support;

use std::process::Output;

use brakelight_testkit::skip;
use serde_json::Value;
use support::{Scratch, ok, text};

/// Two minutes of rates every 100 ms that wander between 4 and 20 Mbit/s, with an outage.
fn log() -> String {
    let mut level = 0.0_f64;
    let rows = (0..1_200_u32).map(|k| {
        // A fixed sequence that looks random is enough.
        let noise = f64::from(k.wrapping_mul(2_654_435_761) >> 16) / 65_536.0 - 0.5;
        level = 0.95 * level + noise;
        let mbps = if (600..606).contains(&k) { 0.0 } else { (12.0 + 4.0 * level).clamp(4.0, 20.0) };
        format!("{:.1},{mbps:.2}\n", f64::from(k) / 10.0)
    });
    format!("time_s,down_mbps\n{}", rows.collect::<String>())
}

fn fit(scratch: &Scratch, arguments: &[&str]) -> Output {
    scratch.brakelight(&[&["trace", "fit"], arguments].concat())
}

fn statistics(scratch: &Scratch, trace: &str) -> Value {
    let shown = ok(&scratch.brakelight(&["trace", "show", trace, "--format", "json"]));
    serde_json::from_str(&shown).unwrap()
}

#[test]
fn a_recording_becomes_a_recipe_that_makes_traces_like_it() {
    let scratch = Scratch::new("fit");
    scratch.write("log.csv", log());
    let output = fit(&scratch, &["log.csv", "--out", "mine.toml"]);
    assert_eq!(ok(&output), "", "the recipe goes into the file");
    let said = text(&output.stderr);
    for words in
        ["trace from csv: 120 s", "recorded", "mean rate", "note: no delay", "autocorrelation at 1 s"]
    {
        assert!(said.contains(words), "`{words}` in {said}");
    }
    let recipe = std::fs::read_to_string(scratch.path("mine.toml")).unwrap();
    assert!(recipe.contains("about = \"Fitted to log.csv: 120s in bins of 100ms."), "{recipe}");
    assert_eq!(ok(&fit(&scratch, &["log.csv"])), recipe, "the same without --out");
    ok(&scratch.brakelight(&["trace", "convert", "log.csv", "--out", "log.down"]));
    ok(&scratch.brakelight(&["trace", "synth", "mine.toml", "--out", "made.down"]));
    let (recorded, made) = (statistics(&scratch, "log.down"), statistics(&scratch, "made.down"));
    for (key, within) in [("mean_mbps", 0.03), ("duration_s", 0.001)] {
        let [recorded, made] = [&recorded, &made].map(|shown| shown["statistics"][key].as_f64().unwrap());
        assert!((made / recorded - 1.0).abs() < within, "{key}: {made} for {recorded}");
    }
    let other = ok(&scratch.brakelight(&["trace", "synth", "mine.toml", "--seed", "7"]));
    assert_ne!(other, std::fs::read_to_string(scratch.path("made.down")).unwrap());
}

#[test]
fn what_cannot_be_fitted_is_refused_in_a_line() {
    let scratch = Scratch::new("fit-refused");
    scratch.write("log.csv", log());
    scratch.write("short.csv", log().lines().take(30).map(|line| format!("{line}\n")).collect::<String>());
    scratch.write("words.csv", "a word\n");
    let cases: &[(&[&str], &str)] = &[
        (&["missing.csv"], "missing.csv: "),
        (&["words.csv"], "words.csv: "),
        (
            &["short.csv"],
            "short.csv: the recording lasts 2900ms, which is 29 bins of 100ms: at least 40 bins are valid",
        ),
        (&["log.csv", "--bin", "10ms"], "log.csv: bin 10ms: whole milliseconds from 100ms to 10s are valid"),
        (&["log.csv", "--kind", "starlink"], "log.csv: kind `starlink` needs the time of every packet"),
        (
            &["log.csv", "--kind", "5g"],
            "`5g` is not a kind of link: valid are `binned`, `bursts`, `starlink`",
        ),
        (&["log.csv", "--delay", "missing.delay"], "missing.delay: "),
        (&["log.csv", "--from", "pcap"], "log.csv: "),
    ];
    for (arguments, words) in cases {
        let output = fit(&scratch, arguments);
        let said = text(&output.stderr);
        assert_eq!((output.status.code(), text(&output.stdout).as_str()), (Some(2), ""), "{said}");
        assert!(said.contains(words), "`{words}` in {said}");
    }
}

/// The recipes of the program are the fits of its samples, and this command finds them again.
#[test]
fn samples_give_the_recipes_of_the_program() {
    let scratch = Scratch::new("fit-samples");
    let Some(bw) = skip::recording("links/leoreplayer/starlink.bw") else { return };
    let Some(delay) = skip::recording("links/leoreplayer/starlink.delay") else { return };
    let Some(fast) = skip::recording("links/columns/5g_103_driving.txt") else { return };
    let [bw, delay, fast] = [bw, delay, fast].map(|path| path.display().to_string());
    ok(&fit(&scratch, &[&bw, "--kind", "starlink", "--delay", &delay, "--out", "starlink.toml"]));
    ok(&fit(&scratch, &[&fast, "--out", "mmwave.toml"]));
    for name in ["starlink", "mmwave"] {
        let synth = |recipe: &str| ok(&scratch.brakelight(&["trace", "synth", recipe]));
        assert_eq!(synth(&format!("{name}.toml")), synth(name), "{name}");
    }
}

/// One draw of capacity, delay and loss: by the name of the recipe, and from the file that `synth` writes.
#[test]
fn a_recipe_with_delay_and_loss_is_the_same_by_its_name_and_as_a_recording() {
    let scratch = Scratch::new("synth-recording");
    ok(&scratch.brakelight(&["trace", "synth", "starlink", "--out", "x.bltrace"]));
    let shown = statistics(&scratch, "x.bltrace");
    let ahead = &shown["path"]["forward"];
    assert!((10.5..=11.5).contains(&ahead["delay_ms"]["p50"].as_f64().unwrap()), "{shown}");
    assert!(ahead["loss_percent"].as_f64().unwrap() > 0.1, "{shown}");
    assert_eq!(ahead, &shown["path"]["reverse"]);
    let rows = |trace: &str| {
        let arguments =
            ["compare", "--schemes", "cubic", "--runs", "2", "--duration", "20s", "--format", "csv"];
        let rows = ok(&scratch.brakelight(&[&arguments[..], &["--trace", trace]].concat()));
        // A run's id and its row have the trace's name.
        let without_names = |row: &str| row.split(',').skip(3).map(str::to_string).collect::<Vec<_>>();
        rows.lines().map(without_names).collect::<Vec<_>>()
    };
    assert_eq!(rows("starlink"), rows("x.bltrace"));
    assert_eq!(rows("starlink"), rows("satellite"), "`satellite` is its other name");
    // Without a name that says so: Mahimahi's format, or what `--to` says.
    let capacity = ok(&scratch.brakelight(&["trace", "synth", "starlink"]));
    assert!(capacity.lines().all(|line| line.parse::<u64>().is_ok()));
    ok(&scratch.brakelight(&["trace", "synth", "starlink", "--to", "bltrace", "--out", "y"]));
    assert_eq!(std::fs::read(scratch.path("x.bltrace")).unwrap(), std::fs::read(scratch.path("y")).unwrap());
}
