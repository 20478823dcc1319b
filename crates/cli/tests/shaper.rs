//! `brakelight shaper` in this machine's kernel: a tbf on a device of a network namespace, and one before an
//! emulated link whose rate falls.

mod support;

use std::process::{Child, Command, Output, Stdio};

use serde_json::Value;
use support::world::{can_emulate, has, is_root, send};
use support::{Lines, Scratch, ended, text};

const PROGRAM: &str = env!("CARGO_BIN_EXE_brakelight");

/// A network namespace with two devices that are each other's end, gone with its process.
struct Lab {
    holder: Child,
}

impl Lab {
    /// Makes one; says what is not run where that cannot be.
    fn new(what: &str) -> Option<Self> {
        let what = format!("kernel: {what}");
        if !is_root() {
            brakelight_testkit::skip(&what, "it needs root");
            return None;
        }
        if !has("tc", &what) || !has("ip", &what) {
            return None;
        }
        let mut holder = Command::new("unshare")
            .args([
                "--net",
                "sh",
                "-c",
                "ip link add up0 type veth peer name up1 && ip link set lo up && echo up && exec cat",
            ])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = Lines::of(holder.stdout.take().unwrap());
        assert_eq!(lines.next(), "up");
        Some(Lab { holder })
    }

    fn command(&self, program: &str, arguments: &[&str]) -> Command {
        let mut command = Command::new("nsenter");
        command.args(["--target", &self.holder.id().to_string(), "--net", "--", program]).args(arguments);
        command.stdin(Stdio::null());
        command
    }

    fn shaper(&self, arguments: &str) -> Command {
        let words: Vec<&str> = std::iter::once("shaper").chain(arguments.split_whitespace()).collect();
        self.command(PROGRAM, &words)
    }

    /// Runs `tc`, which must go well.
    fn tc(&self, line: &str) -> String {
        let words: Vec<&str> = line.split_whitespace().collect();
        support::ok(&self.command("tc", &words).output().unwrap())
    }

    /// What `tc` shows of the device, without the counters.
    fn shown(&self) -> String {
        self.tc("qdisc show dev up0").trim().to_string()
    }

    fn start(&self, arguments: &str) -> (Child, Lines) {
        let mut child = self.shaper(arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let lines = Lines::of(child.stdout.take().unwrap());
        (child, lines)
    }
}

impl Drop for Lab {
    fn drop(&mut self) {
        drop(self.holder.stdin.take());
        let _ = self.holder.wait();
    }
}

/// The one line on standard error of a command that failed with `code`.
fn refusal(output: &Output, code: i32) -> String {
    let said = text(&output.stderr);
    assert_eq!((output.status.code(), said.lines().count()), (Some(code), 1), "{said}");
    assert_eq!(text(&output.stdout), "");
    said
}

const TBF: &str = "qdisc replace dev up0 root tbf rate 20mbit burst 5000 limit 60000";

#[test]
fn a_rate_is_set_on_a_tbf_and_given_back_at_the_end() {
    let Some(lab) = Lab::new("shaper on tbf") else { return };
    lab.tc(TBF);
    let before = lab.shown();
    for signal in ["INT", "TERM"] {
        let (mut child, lines) = lab.start("--device up0 --up fixed/rate=7Mbps --format json");
        let line: Value = serde_json::from_str(&lines.next()).unwrap();
        assert_eq!((&line["direction"], &line["rate_mbps"]), (&"up".into(), &7.0.into()), "{line}");
        // Bucket and queue are those of before.
        let shown = lab.shown();
        assert!(shown.contains(" rate 7Mbit burst 50") && before.contains("burst 5000b"), "{shown}");
        send(child.id() as i32, signal);
        assert_eq!(ended(&mut child).code(), Some(130));
        let after = lab.shown();
        // A burst is shown in whole ticks of time, so a byte may come and go.
        assert_eq!(words(&after), words(&before));
        assert!(after.contains("rate 20Mbit burst 500"), "{after}");
    }
    let links = support::ok(&lab.command("ip", &["-br", "link"]).output().unwrap());
    assert_eq!(links.lines().count(), 3, "{links}");
}

/// What `tc` shows, without sizes of buckets and the times of queues that follow from them.
fn words(shown: &str) -> Vec<&str> {
    shown.split_whitespace().filter(|word| !word.ends_with('b') && !word.ends_with("ms")).collect()
}

#[test]
fn a_daemon_that_is_killed_leaves_its_last_rate() {
    let Some(lab) = Lab::new("shaper that is killed") else { return };
    lab.tc(TBF);
    let (mut child, lines) = lab.start("--device up0 --up fixed/rate=9Mbps --format json");
    lines.next();
    send(child.id() as i32, "KILL");
    ended(&mut child);
    assert!(lab.shown().contains(" rate 9Mbit "), "{}", lab.shown());
    // The next one takes that for the rate of before.
    let (mut child, lines) = lab.start("--device up0 --up fixed/rate=4Mbps --count 1 --format json");
    lines.next();
    assert!(ended(&mut child).success());
    assert!(lab.shown().contains(" rate 9Mbit "), "{}", lab.shown());
}

#[test]
fn a_dry_run_changes_nothing() {
    let Some(lab) = Lab::new("dry run of the shaper") else { return };
    lab.tc(TBF);
    let before = lab.shown();
    let (mut child, lines) =
        lab.start("--device up0 --up fixed/rate=7Mbps --dry-run --count 1 --format json");
    let line: Value = serde_json::from_str(&lines.next()).unwrap();
    assert_eq!(line["rate_mbps"], 7.0);
    assert!(ended(&mut child).success());
    assert_eq!(lab.shown(), before);
}

#[test]
fn a_qdisc_that_goes_ends_the_daemon_with_one_line() {
    let Some(lab) = Lab::new("shaper whose qdisc goes") else { return };
    let take_away: [(&str, &[&str], &str); 3] = [
        ("tc", &["qdisc", "del", "dev", "up0", "root"], "removed"),
        ("tc", &["qdisc", "replace", "dev", "up0", "root", "handle", "7:", "htb"], "htb"),
        ("ip", &["link", "del", "dev", "up0"], "the device is gone"),
    ];
    for (program, arguments, why) in take_away {
        lab.tc(TBF);
        let (child, lines) = lab.start("--device up0 --up fixed/rate=7Mbps --format json --quiet");
        lines.next();
        support::ok(&lab.command(program, arguments).output().unwrap());
        let output = child.wait_with_output().unwrap();
        let said = refusal(&output, 1);
        assert!(said.starts_with("error: the shaper of up0: ") && said.contains(why), "{said}");
    }
}

#[test]
fn what_cannot_be_shaped_is_refused_in_one_line_and_left_as_it_is() {
    let Some(lab) = Lab::new("refusals of the shaper") else { return };
    let refuse = |arguments: &str, why: &str| {
        let before = lab.shown();
        let said = refusal(&lab.shaper(arguments).output().unwrap(), 2);
        assert!(said.contains(why), "{arguments}: {said}");
        assert_eq!(lab.shown(), before, "{arguments}");
    };
    refuse("--device up0 --up fixed/rate=7Mbps", "up0 has no qdisc with a rate: valid is cake or tbf");
    refuse("--device none0 --up fixed/rate=7Mbps", "there is no device `none0`");
    lab.tc("qdisc replace dev up0 root handle 1: htb");
    refuse("--device up0 --up fixed/rate=7Mbps", "the qdisc of up0 is htb");
    lab.tc("qdisc del dev up0 root");
    lab.tc("qdisc replace dev up0 root tbf rate 20mbit burst 5000 limit 60000 peakrate 30mbit minburst 2000");
    refuse("--device up0 --up fixed/rate=7Mbps", "peakrate");
    lab.tc("qdisc del dev up0 root");
    lab.tc(
        "qdisc replace dev up0 root stab overhead 20 linklayer atm tbf rate 20mbit burst 5000 limit 60000",
    );
    refuse("--device up0 --up fixed/rate=7Mbps", "stab");
    lab.tc("qdisc del dev up0 root");
    lab.tc(TBF);
    refuse("--device up0 --up autorate", "--reflector");
    refuse(
        "--device up0 --up fixed/rate=7Mbps --down fixed/rate=9Mbps --down-device up1",
        "up1 has no qdisc with a rate",
    );
    // Without privileges: nothing is set, and nothing was before that.
    let words = ["--reuid", "65534", "--regid", "65534", "--clear-groups", "--", PROGRAM, "shaper"];
    let arguments = ["--device", "up0", "--up", "fixed/rate=7Mbps"];
    let mut user = lab.command("setpriv", &[&words[..], &arguments[..]].concat());
    let before = lab.shown();
    let output = user.output().unwrap();
    if text(&output.stderr).contains("Permission denied") && output.status.code() != Some(2) {
        brakelight_testkit::skip("kernel: the shaper without privileges", "an ordinary user cannot run it");
    } else {
        let said = refusal(&output, 2);
        assert!(said.contains("CAP_NET_ADMIN"), "{said}");
    }
    assert_eq!(lab.shown(), before);
}

/// The link falls from 20 to 6 Mbit/s after four seconds, and so on.
const LINK: &str = "4s:20Mbps,4s:6Mbps";

/// Runs `script` before that link, where `$1` is the program: the p95 of the round trip in milliseconds, the
/// throughput in Mbit/s, and why the run is unreliable.
fn behind_the_link(scratch: &Scratch, script: &str) -> (f64, f64, Vec<String>) {
    let path = scratch.write("client.sh", script);
    let server = format!("{PROGRAM} perf-server --listen 0.0.0.0:4433 --quiet");
    let mut command = scratch.command(&["emulate", "--up", LINK, "--delay", "20ms", "--server", &server]);
    command.args(["--", "sh", path.to_str().unwrap(), PROGRAM]).stdin(Stdio::null());
    let output = command.output().unwrap();
    let document: Value = serde_json::from_str(&support::ok(&output)).unwrap();
    let row = &document["runs"][0];
    let [rtt, throughput] =
        ["/rtt_ms/p95", "/throughput_mbps"].map(|at| row.pointer(at).unwrap().as_f64().unwrap());
    (rtt, throughput, support::unreliable(&text(&output.stderr)))
}

const SEND: &str = "$1 perf $BRAKELIGHT_HOST --controller cubic --duration 16s --format json --quiet";

#[test]
fn autorate_before_a_link_that_falls_keeps_the_round_trip_below_that_of_no_shaper() {
    let what = "kernel: a shaper before an emulated link";
    if !is_root() {
        brakelight_testkit::skip(what, "it needs root");
        return;
    }
    if !can_emulate(what) || !has("tc", what) {
        return;
    }
    let scratch = Scratch::new("shaper-emulated");
    let lines = scratch.path("lines");
    let script = format!(
        "tc qdisc replace dev brakelight0 root tbf rate 15mbit burst 3100 limit 30000 || exit 9
        $1 shaper --device brakelight0 --up autorate/min=2Mbps/base=10Mbps/max=50Mbps/pingers=1/ping_interval=50ms \
            --reflector $BRAKELIGHT_HOST --interval 1ms --format json --quiet > {lines} &
        shaper=$!
        {SEND}
        kill -INT $shaper; wait $shaper
        tc qdisc show dev brakelight0 | grep -q 'tbf.* rate 15Mbit ' || exit 8",
        lines = lines.display()
    );
    support::judge("a shaper before an emulated link", || {
        let (without, _, mut reasons) = behind_the_link(&scratch, SEND);
        let (with, throughput, more) = behind_the_link(&scratch, &script);
        reasons.extend(more);
        let lines = std::fs::read_to_string(&lines).unwrap();
        let rates = lines.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        let rates: Vec<f64> = rates.map(|line| line["rate_mbps"].as_f64().unwrap()).collect();
        let most = rates.iter().copied().fold(0.0, f64::max);
        let least = rates.iter().copied().fold(f64::MAX, f64::min);
        // It falls with the link each time, and rises in between.
        let steps =
            |is_step: fn(f64, f64) -> bool| rates.windows(2).filter(|pair| is_step(pair[0], pair[1])).count();
        let is_right = with < without / 2.0
            && throughput > 3.0
            && most > 10.0
            && least < 9.0
            && steps(|from, to| to < from) >= 2
            && steps(|from, to| to > from) >= 2;
        let wrong = format!("{with} ms, and {without} ms without it; {throughput} Mbit/s; rates {rates:?}");
        (is_right.then_some(()).ok_or(wrong), reasons)
    });
}

/// What the init script gives procd, where its functions are these.
const PROCD: &str = r#"
config_load() { [ "$1" = brakelight-shaper ]; }
config_foreach() { for section in wan lte; do "$1" $section; done; }
config_get_bool() { [ "$2" = lte ] && eval "$1=0" || eval "$1=1"; }
config_get() {
    case $3 in
        device) eval "$1=eth1" ;;
        up) eval "$1=autorate/max=35Mbps" ;;
        down) eval "$1=fixed/rate=80Mbps" ;;
        down_device) eval "$1=ifb4eth1" ;;
    esac
}
config_list_foreach() { [ "$2" = reflector ] && "$3" 192.0.2.1 && "$3" 192.0.2.2; }
procd_open_instance() { echo "instance $1"; }
procd_close_instance() { :; }
procd_set_param() { [ "$1" != command ] || { shift; echo "$@"; }; }
procd_append_param() { shift; echo "$@"; }
"#;

#[test]
fn the_init_script_of_openwrt_starts_what_its_configuration_says() {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../tcp/openwrt/files/brakelight-shaper.init");
    let run = format!("{PROCD}\n. {script}\nstart_service");
    let output = Command::new("sh").args(["-euc", &run]).output().unwrap();
    let said = support::ok(&output);
    let words: Vec<&str> = said.split_whitespace().collect();
    let expected = "instance wan /usr/bin/brakelight shaper --device eth1 --up autorate/max=35Mbps \
        --down fixed/rate=80Mbps --down-device ifb4eth1 --reflector 192.0.2.1 --reflector 192.0.2.2 --interval 60s";
    assert_eq!(words, expected.split_whitespace().collect::<Vec<_>>());
    accepts(&words[4..]);
}

/// Fails if the command does not take these words of `shaper`: the device is none, which is what it may say.
fn accepts(words: &[&str]) {
    let words: Vec<&str> = words.iter().map(|word| if *word == "eth1" { "none0" } else { word }).collect();
    let output = Command::new(PROGRAM).arg("shaper").args(&words).output().unwrap();
    let said = refusal(&output, 2);
    assert!(said.contains("there is no device"), "{words:?}: {said}");
}

#[test]
fn the_example_of_a_unit_is_one_that_the_command_takes() {
    let example = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/examples/brakelight-shaper.service");
    let unit = std::fs::read_to_string(example).unwrap();
    let line = unit.lines().find_map(|line| line.strip_prefix("ExecStart=/usr/local/bin/brakelight shaper "));
    let line = line.expect("a line that starts the daemon").replace("eth0", "none0");
    accepts(&line.split_whitespace().collect::<Vec<_>>());
    if Command::new("systemd-analyze").arg("--version").stdout(Stdio::null()).status().is_err() {
        brakelight_testkit::skip("the example of a systemd unit", "no `systemd-analyze`");
        return;
    }
    let scratch = Scratch::new("shaper-unit");
    // It must find the program to be content.
    let path = scratch.write("brakelight-shaper.service", unit.replace("/usr/local/bin/brakelight", PROGRAM));
    let output = Command::new("systemd-analyze").arg("verify").arg(&path).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && !said.contains("brakelight-shaper"), "{said}");
}
