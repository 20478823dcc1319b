//! What users write, as they write it: near-misses, common spellings, lists and folders; and what the command
//! says, or leaves out, about itself.

mod support;

use serde_json::Value;
use support::{Scratch, ok, text};

fn said(scratch: &Scratch, arguments: &[&str]) -> String {
    let output = scratch.brakelight(arguments);
    let said = text(&output.stderr);
    assert_eq!((output.status.code(), said.lines().count()), (Some(2), 1), "{arguments:?}: {said}");
    said
}

/// Scheme and trace of every row.
fn rows(scratch: &Scratch, arguments: &[&str]) -> Vec<(String, String)> {
    let document: Value = serde_json::from_str(&ok(&scratch.brakelight(arguments))).unwrap();
    let rows = document["runs"].as_array().unwrap().iter();
    rows.map(|row| ["scheme", "trace"].map(|key| row[key].as_str().unwrap().to_string()).into()).collect()
}

#[test]
fn what_was_nearly_right_is_answered_with_what_is() {
    let scratch = Scratch::new("usability-meant");
    scratch.write("grid.toml", "run = 3\n[axes]\nscheme = \"abc\"\n");
    scratch.write("run.toml", "duraton = \"1s\"\n");
    for (arguments, meant) in [
        (&["compare", "--schemes", "cubik"][..], "did you mean `cubic`?"),
        (&["compare", "--schemes", "cubic+codle"], "did you mean `codel`?"),
        (&["compare", "--schemes", "abc:delt=66ms"], "did you mean `delta`?"),
        (&["compare", "--trace", "lte_driving"], "did you mean `lte-driving`?"),
        (&["trace", "synth", "fixd"], "did you mean `fixed`?"),
        (&["reproduce", "ABC-F1x"], "did you mean `ABC-F1"),
        (&["sweep", "grid.toml"], "did you mean `runs`?"),
        (&["run", "run.toml"], "did you mean `duration`?"),
        (&["compre"], "'compare'"),
        (&["compare", "--scheme", "abc"], "'--schemes'"),
        (&["list", "scheme"], "'schemes'"),
    ] {
        let said = said(&scratch, arguments);
        assert!(said.contains(meant), "{arguments:?}: {said}");
    }
    let said = said(&scratch, &["compare", "--schemes", "torrent"]);
    assert!(!said.contains("did you mean"), "nothing is near: {said}");
}

#[test]
fn common_spellings_are_taken() {
    let scratch = Scratch::new("usability-spellings");
    let short = ["--rtt", "20ms", "--format", "json"];
    let run = ["compare", "--trace", "fixed", "--schemes", "ABC,Cubic+CoDel", "--duration", "0.05m"];
    let found = rows(&scratch, &[&run[..], &short].concat());
    let schemes: Vec<&str> = found.iter().map(|(scheme, _)| scheme.as_str()).collect();
    assert_eq!(schemes, ["abc", "cubic+codel"]);
    scratch.write(
        "lossy.toml",
        "duration = \"3s\"\n[[link]]\nname = \"up\"\nrate = \"5Mbps\"\n\
         [[flow]]\ncontroller = \"Vegas\"\npath = [\"loss:rate=100%\", \"up\"]\n",
    );
    let document: Value =
        serde_json::from_str(&ok(&scratch.brakelight(&["run", "lossy.toml", "--format", "json"]))).unwrap();
    assert_eq!(document["runs"][0]["delivered_packets"], 0, "100% is everything");
}

#[test]
fn traces_come_as_lists_and_as_folders() {
    let scratch = Scratch::new("usability-traces");
    for name in ["b.down", "a.down", ".hidden", "with,comma.down"] {
        scratch.write(&format!("traces/{name}"), "1\n2\n3\n");
    }
    std::fs::create_dir(scratch.path("empty")).unwrap();
    let names = |given: &str| {
        let arguments =
            ["compare", "--trace", given, "--schemes", "vegas", "--duration", "1s", "--format", "json"];
        rows(&scratch, &arguments).into_iter().map(|(_, trace)| trace).collect::<Vec<_>>()
    };
    assert_eq!(names("step,fixed"), ["step", "fixed"]);
    assert_eq!(names("traces"), ["a.down", "b.down", "with,comma.down"]);
    assert_eq!(names("traces/with,comma.down"), ["with,comma.down"], "a file of that name");
    assert!(said(&scratch, &["compare", "--trace", "empty"]).contains("empty"), "the folder is named");
    assert!(said(&scratch, &["compare", "--trace", "step,nosuch"]).contains("`nosuch`"));
}

#[test]
fn quiet_says_nothing_and_verbose_says_every_run() {
    let scratch = Scratch::new("usability-verbosity");
    scratch.write("table.csv", "start_s,mbps\n0,12\n1,9\n");
    let stderr = |arguments: &[&str]| {
        let output = scratch.brakelight(arguments);
        ok(&output);
        text(&output.stderr)
    };
    let convert = ["trace", "convert", "table.csv"];
    assert!(stderr(&convert).contains("warning: "));
    assert_eq!(stderr(&[&convert[..], &["--quiet"]].concat()), "");
    assert_eq!(stderr(&[&["-q"], &convert[..]].concat()), "");
    let compare =
        ["compare", "--trace", "fixed", "--schemes", "vegas,cubic", "--duration", "1s", "--runs", "1"];
    let verbose = stderr(&[&compare[..], &["-v"]].concat());
    assert_eq!(verbose.lines().filter(|line| line.starts_with("done: ")).count(), 2, "{verbose}");
    assert!(verbose.lines().last().unwrap().starts_with("took "), "{verbose}");
    let refused = scratch.brakelight(&["trace", "convert", "nosuch.csv", "--quiet"]);
    assert!(text(&refused.stderr).starts_with("error: "), "why a command ends is always said");
    assert_eq!(scratch.brakelight(&["-q", "-v", "list", "traces"]).status.code(), Some(2));
}

#[test]
fn help_is_a_command_too() {
    let scratch = Scratch::new("usability-help");
    let help = ok(&scratch.brakelight(&["help", "compare"]));
    assert_eq!(help, ok(&scratch.brakelight(&["compare", "--help"])));
    assert!(ok(&scratch.brakelight(&["help", "trace", "convert"])).contains("--direction"));
}

#[test]
fn a_folder_with_other_things_in_it_is_left_alone() {
    let scratch = Scratch::new("usability-folder");
    scratch.write("mine/notes.txt", "mine");
    scratch.write("grid.toml", "[axes]\nscheme = \"vegas\"\ntrace = \"fixed\"\nduration = \"1s\"\n");
    let compare = ["compare", "--trace", "fixed", "--schemes", "vegas", "--duration", "1s", "--out"];
    let into = |arguments: &[&str], folder: &str, more: &[&str]| {
        scratch.brakelight(&[arguments, &[folder], more].concat())
    };
    for arguments in [&compare[..], &["sweep", "grid.toml", "--out"]] {
        let refused = into(arguments, "mine", &[]);
        let said = text(&refused.stderr);
        assert_eq!(refused.status.code(), Some(2), "{said}");
        assert!(said.contains("notes.txt") && said.contains("--force"), "{said}");
        assert_eq!(
            scratch.list().iter().filter(|name| name.starts_with("mine/")).count(),
            1,
            "nothing is written"
        );
    }
    ok(&into(&compare, "mine", &["--force"]));
    assert!(scratch.path("mine/report.html").is_file() && scratch.path("mine/notes.txt").is_file());
    // An earlier result is replaced, also beside what a user has put there since.
    std::fs::write(scratch.path("mine/report.html"), "old").unwrap();
    ok(&into(&compare, "mine", &[]));
    assert_ne!(std::fs::read(scratch.path("mine/report.html")).unwrap(), b"old");
    std::fs::create_dir(scratch.path("empty")).unwrap();
    ok(&into(&compare, "empty", &[]));
}

#[cfg(target_os = "linux")]
#[test]
fn the_doctor_fails_if_something_is_missing() {
    let scratch = Scratch::new("usability-doctor");
    let output = scratch.brakelight(&["tcp", "doctor", "--format", "json"]);
    let checks: Value = serde_json::from_slice(&output.stdout).unwrap();
    let missing =
        checks["checks"].as_array().unwrap().iter().filter(|check| check["verdict"] == "no").count();
    assert_eq!(output.status.code(), Some(i32::from(missing > 0)), "{checks}");
}

#[test]
fn numbers_have_no_more_digits_than_they_mean() {
    let scratch = Scratch::new("usability-numbers");
    let rates = ok(&scratch.brakelight(&["trace", "show", "5g", "--format", "csv"]));
    let convert = ["trace", "convert", "made.down", "--to", "csv", "--bin", "100ms"];
    std::fs::write(scratch.path("made.down"), ok(&scratch.brakelight(&["trace", "synth", "5g"]))).unwrap();
    let table = ok(&scratch.brakelight(&convert));
    for line in rates.lines().chain(table.lines()).skip(1) {
        assert!(line.split(',').all(|value| value.len() <= 9), "{line}");
    }
}
