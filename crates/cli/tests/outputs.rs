//! What `--out` may replace: nothing but regular files. FIFOs and devices are written through, links are
//! followed.

mod support;

use std::fs::{self, OpenOptions};
use std::io::Read;
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt, PermissionsExt, symlink};
use std::path::Path;
use std::process::{Child, Command, Output};

use support::world::{eventually, send};
use support::{Scratch, TWO_FLOWS, ok, text};

/// A trace of a few lines, which goes to `out`.
const SYNTH: [&str; 5] = ["trace", "synth", "fixed", "--duration", "100ms"];

fn synth(scratch: &Scratch, out: &str) -> Output {
    scratch.brakelight(&[&SYNTH[..], &["--out", out]].concat())
}

/// What it should hold.
fn expected(scratch: &Scratch) -> String {
    ok(&scratch.brakelight(&SYNTH))
}

fn make_fifo(path: &Path) {
    assert!(Command::new("mkfifo").arg(path).status().unwrap().success());
}

/// A refusal: one line, exit code 2.
fn refused(output: &Output, why: &str) {
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains(why) && said.lines().count() == 1, "{said}");
}

#[test]
fn a_fifo_is_written_through() {
    let scratch = Scratch::new("out-fifo");
    let path = scratch.path("fifo");
    make_fifo(&path);
    // Open for both, so that neither end waits for the other.
    let mut reader =
        OpenOptions::new().read(true).write(true).custom_flags(libc::O_NONBLOCK).open(&path).unwrap();
    ok(&synth(&scratch, "fifo"));
    assert!(fs::symlink_metadata(&path).unwrap().file_type().is_fifo(), "the FIFO was replaced");
    let mut buffer = [0; 65536];
    let read = reader.read(&mut buffer).unwrap();
    assert_eq!(text(&buffer[..read]), expected(&scratch));
}

#[test]
fn a_device_is_written_through() {
    let scratch = Scratch::new("out-device");
    let path = scratch.path("null");
    // A node of the test's own, with the numbers of /dev/null.
    let made = Command::new("mknod").arg(&path).args(["c", "1", "3"]).output().unwrap();
    if !made.status.success() {
        brakelight_testkit::skip("devices under --out", "no device node can be made");
        return;
    }
    let output = synth(&scratch, "null");
    assert!(fs::symlink_metadata(&path).unwrap().file_type().is_char_device(), "the device was replaced");
    // A file system mounted without devices lets nobody open it.
    assert!(output.status.success() || text(&output.stderr).contains("Permission denied"));
    assert_eq!(scratch.list(), ["null"]);
}

#[test]
fn a_link_is_followed_to_a_regular_file_and_nowhere_else() {
    let scratch = Scratch::new("out-link");
    scratch.write("kept", "before");
    fs::set_permissions(scratch.path("kept"), fs::Permissions::from_mode(0o640)).unwrap();
    fs::create_dir(scratch.path("folder")).unwrap();
    symlink("kept", scratch.path("link")).unwrap();
    symlink("nothing", scratch.path("dangling")).unwrap();
    symlink("folder", scratch.path("to-folder")).unwrap();
    symlink("round", scratch.path("round")).unwrap();
    let is_link = |name: &str| fs::symlink_metadata(scratch.path(name)).unwrap().is_symlink();

    ok(&synth(&scratch, "link"));
    assert!(is_link("link"), "the link was replaced");
    assert_eq!(fs::read_to_string(scratch.path("kept")).unwrap(), expected(&scratch));
    let mode = fs::metadata(scratch.path("kept")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o640, "the file's permissions changed");

    refused(&synth(&scratch, "dangling"), "it is a link to nothing");
    refused(&synth(&scratch, "to-folder"), "it is a folder");
    refused(&synth(&scratch, "round"), "`round` cannot be written");
    assert!(["dangling", "to-folder", "round"].into_iter().all(is_link));
    assert_eq!(scratch.list(), ["dangling", "folder", "kept", "link", "round", "to-folder"]);
}

#[test]
fn standard_output_by_its_path_is_standard_output() {
    let scratch = Scratch::new("out-stdout");
    // As /dev/stdout is one, but not the machine's.
    symlink("/proc/self/fd/1", scratch.path("stdout")).unwrap();
    let expected = expected(&scratch);
    assert_eq!(ok(&synth(&scratch, "stdout")), expected);
    // Appended to, where a shell would append.
    scratch.write("log", "before\n");
    let log = OpenOptions::new().append(true).open(scratch.path("log")).unwrap();
    let arguments = [&SYNTH[..], &["--out", "stdout"]].concat();
    assert!(scratch.command(&arguments).stdout(log).status().unwrap().success());
    assert_eq!(fs::read_to_string(scratch.path("log")).unwrap(), format!("before\n{expected}"));
    assert!(fs::symlink_metadata(scratch.path("stdout")).unwrap().is_symlink(), "the link was replaced");
}

#[test]
fn a_folder_of_results_replaces_regular_files_only() {
    let scratch = Scratch::new("out-folder");
    scratch.write("two.toml", TWO_FLOWS);
    scratch.write("mine", "mine");
    let run = || scratch.brakelight(&["run", "two.toml", "--out", "results"]);
    fs::create_dir(scratch.path("results")).unwrap();

    make_fifo(&scratch.path("results/report.html"));
    refused(&run(), "report.html` is not a regular file");
    assert!(fs::metadata(scratch.path("results/report.html")).unwrap().file_type().is_fifo());
    assert_eq!(scratch.list(), ["mine", "results", "results/report.html", "two.toml"]);

    fs::remove_file(scratch.path("results/report.html")).unwrap();
    symlink("../mine", scratch.path("results/runs.csv")).unwrap();
    refused(&run(), "runs.csv` is a link");
    assert_eq!(fs::read_to_string(scratch.path("mine")).unwrap(), "mine");

    fs::remove_file(scratch.path("results/runs.csv")).unwrap();
    scratch.write("results/runs.csv", "old");
    ok(&run());
    assert_eq!(
        scratch.list(),
        ["mine", "results", "results/report.html", "results/runs.csv", "results/runs.json", "two.toml"]
    );

    // A link to nothing is no folder that can be made.
    symlink("nowhere", scratch.path("dangling")).unwrap();
    refused(&scratch.brakelight(&["run", "two.toml", "--out", "dangling"]), "it is a link to nothing");
}

/// A grid of one short run.
const GRID: &str = "[axes]\nscheme = \"cubic\"\ntrace = \"fixed\"\nduration = \"1s\"\n";

#[test]
fn a_sweep_writes_to_regular_files_only() {
    let scratch = Scratch::new("out-sweep");
    scratch.write("grid.toml", GRID);
    scratch.write("mine", "mine\n");
    fs::create_dir(scratch.path("results")).unwrap();
    let sweep = |more: &[&str]| {
        scratch.brakelight(&[&["sweep", "grid.toml", "--out", "results", "--force"], more].concat())
    };
    let place = |name: &str| scratch.path(&format!("results/{name}"));

    // The journal, which grows: neither through a link, be it to nothing, nor into anything but a file.
    for target in ["../mine", "../nothing"] {
        symlink(target, place("runs.jsonl")).unwrap();
        refused(&sweep(&["--resume"]), "runs.jsonl");
        assert!(place("runs.jsonl").is_symlink());
        fs::remove_file(place("runs.jsonl")).unwrap();
    }
    make_fifo(&place("runs.jsonl"));
    refused(&sweep(&["--resume"]), "runs.jsonl");
    fs::remove_file(place("runs.jsonl")).unwrap();

    // The tables, and what they are called while they are made.
    for name in ["runs.csv", ".runs.csv.partial"] {
        symlink("../mine", place(name)).unwrap();
        let output = sweep(&["--resume"]);
        if name == "runs.csv" {
            refused(&output, "runs.csv` is a link");
        } else {
            ok(&output);
        }
        assert!(place(name).is_symlink(), "{name} was replaced");
        fs::remove_file(place(name)).unwrap();
    }
    assert_eq!(fs::read_to_string(scratch.path("mine")).unwrap(), "mine\n");
    assert!(!scratch.path("nothing").exists());
}

#[test]
fn an_attack_writes_to_regular_files_only() {
    let scratch = Scratch::new("out-attack");
    scratch.write("mine", "mine\n");
    fs::create_dir(scratch.path("worst")).unwrap();
    let attack = || {
        let bounds = "duration=1s,rate=1Mbps..2Mbps";
        scratch.brakelight(&["attack", "cubic", "--budget", "8", "--bounds", bounds, "--out", "worst"])
    };
    let place = |name: &str| scratch.path(&format!("worst/{name}"));

    // The journal, what was found, and what a file could be called while it is made.
    for name in ["evaluations.jsonl", "found.json", ".found.json.partial"] {
        symlink("../mine", place(name)).unwrap();
        let output = attack();
        if name == ".found.json.partial" {
            ok(&output);
        } else {
            refused(&output, name);
        }
        assert!(place(name).is_symlink(), "{name} was replaced");
        fs::remove_file(place(name)).unwrap();
    }
    assert_eq!(fs::read_to_string(scratch.path("mine")).unwrap(), "mine\n");
}

/// Starts a run of 70 hours in `scratch`, and waits until its folder is in the making.
fn start_long(scratch: &Scratch) -> Child {
    let before = partial(scratch);
    let mut child = scratch.command(&["run", "long.toml", "--out", "results"]).spawn().unwrap();
    while partial(scratch).iter().all(|name| before.contains(name)) {
        assert!(child.try_wait().unwrap().is_none(), "it ended before it made its folder");
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    child
}

fn partial(scratch: &Scratch) -> Vec<String> {
    scratch.list().into_iter().filter(|name| name.ends_with(".partial")).collect()
}

fn kill(mut child: Child) {
    child.kill().unwrap();
    child.wait().unwrap();
}

/// Kills the processes that a command has started, and then the command.
fn kill_with_its_children(child: Child) {
    let children = fs::read_to_string(format!("/proc/{0}/task/{0}/children", child.id())).unwrap();
    for pid in children.split_whitespace() {
        send(pid.parse().unwrap(), "KILL");
    }
    kill(child);
}

#[test]
fn a_run_that_is_killed_leaves_nothing() {
    let scratch = Scratch::new("out-janitor");
    scratch.write("long.toml", TWO_FLOWS.replace("\"10s\"", "\"70h\""));
    let before = scratch.list();
    kill(start_long(&scratch));
    eventually("a folder in the making is left", || scratch.list() == before);
    // The folders above it too, where they were made for it.
    let child = scratch.command(&["run", "long.toml", "--out", "a/b/results"]).spawn().unwrap();
    eventually("no folder is made", || scratch.path("a/b").exists());
    kill(child);
    eventually("a folder in the making is left", || scratch.list() == before);
}

#[test]
fn what_a_killed_run_left_is_removed_by_the_next_and_what_a_living_one_makes_is_not() {
    let scratch = Scratch::new("out-killed");
    scratch.write("short.toml", TWO_FLOWS);
    scratch.write("long.toml", TWO_FLOWS.replace("\"10s\"", "\"70h\""));
    kill_with_its_children(start_long(&scratch));
    assert_eq!(partial(&scratch).len(), 1);

    let living = start_long(&scratch);
    assert_eq!(partial(&scratch).len(), 1, "what the killed run left is still there");
    let output = scratch.brakelight(&["run", "short.toml", "--out", "results"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert_eq!(partial(&scratch).len(), 1, "the living run's folder was removed");
    kill_with_its_children(living);

    let output = scratch.brakelight(&["run", "short.toml", "--out", "results"]);
    assert!(text(&output.stderr).contains("left by a run that was killed"), "{}", text(&output.stderr));
    let names = [
        "long.toml",
        "results",
        "results/report.html",
        "results/runs.csv",
        "results/runs.json",
        "short.toml",
    ];
    assert_eq!(scratch.list(), names);
}

#[test]
fn figures_are_written_beside_other_results_and_not_into_a_folder_of_other_things() {
    let scratch = Scratch::new("out-figures");
    let compare =
        ["compare", "--trace", "fixed", "--schemes", "abc,cubic", "--duration", "2s", "--runs", "1"];
    ok(&scratch.brakelight(&[&compare[..], &["--out", "report", "--figures", "figures"]].concat()));
    for name in [
        "figures.html",
        "scatter.svg",
        "scatter.pdf",
        "bars.fixed.pdf",
        "cdf.fixed.svg",
        "series.abc.fixed.svg",
    ] {
        assert!(scratch.path("figures").join(name).exists(), "{name}");
    }
    assert!(scratch.path("report/report.html").exists());
    let pdf = fs::read(scratch.path("figures/scatter.pdf")).unwrap();
    // Again into the same folder: earlier figures are replaced, by the same bytes.
    ok(&scratch.brakelight(&[&compare[..], &["--figures", "figures"]].concat()));
    assert!(fs::read(scratch.path("figures/scatter.pdf")).unwrap() == pdf);
    scratch.write("mine/letter.txt", "dear");
    let output = scratch.brakelight(&[&compare[..], &["--figures", "mine"]].concat());
    refused(&output, "--figures `mine`: the folder holds other files (`letter.txt`)");
    scratch.write("grid.toml", "runs = 2\n[axes]\nscheme = [\"abc\", \"cubic\"]\ntrace = \"fixed\"\nrtt = [\"20ms\", \"100ms\"]\nduration = \"1s\"\n");
    ok(&scratch.brakelight(&["sweep", "grid.toml", "--figures", "swept"]));
    assert!(scratch.path("swept/lines.rtt.pdf").exists());
}
