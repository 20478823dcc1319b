//! What the data path costs and how precise it is: two namespaces, two TUN devices, the forwarding thread
//! between them, and kernel TCP (iperf3) and ICMP (ping) over it.
//!
//! ```text
//! cargo bench -p brakelight-emulator --bench path [-- OPTION=VALUE ...]
//!
//! measure=rate,processor,latency,wakeup     which: at 2 Gbit/s, at 100 Mbit/s, of an idle link; what
//!                                           sleeping costs without the emulator; or rates such as 500Mbps
//! measure=trace                             by a trace of 100 Mbit/s on the grid of milliseconds, both ways
//! measure=floor                             what the system calls for the packets of `processor` and `trace`
//!                                           cost without the emulator
//! seconds=10                                of each run of TCP
//! congestion=cubic                          TCP's congestion control, as the kernel names it
//! log=true                                  whether to keep log, series and flows as `emulate --log` does
//! gather=125us                             how late a delivery may be for the sake of others
//! fifo=true                                 whether the thread asks for SCHED_FIFO
//! threads=1                                 1: both directions in one thread, 2: one each
//! ```
//!
//! It needs root, iperf3 and ping, and prints one JSON document. The machine should be idle: the load average
//! is printed beside.

use std::env;
use std::io::{self, Write as _};
use std::os::fd::AsFd;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};
use std::thread;
use std::time;

use brakelight_core::time::Duration;
use brakelight_core::units::{Limit, Rate};
use brakelight_emulator::clock::{Epoch, Lateness, Stop};
use brakelight_emulator::device::{Port, TunSettings};
use brakelight_emulator::forward::{self, CarriedDirection, Facts, Finished, ForwardSettings};
use brakelight_emulator::measure::{self, Measured, Meter};
use brakelight_emulator::spec::{Bottleneck, DirectionSpec};
use brakelight_scenario::trace::names::Names;
use nix::poll::{PollFd, PollFlags};
use nix::sched::{CloneFlags, unshare};
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike;
use nix::sys::timerfd::{ClockId, Expiration, TimerFd, TimerFlags, TimerSetTimeFlags};

mod floor;

type Job = Box<dyn FnOnce() + Send>;

/// A network namespace, held by a thread that does things in it.
struct Namespace {
    jobs: Sender<Job>,
}

impl Namespace {
    fn new() -> Self {
        let (jobs, queue) = channel::<Job>();
        thread::spawn(move || {
            unshare(CloneFlags::CLONE_NEWNET).expect("a network namespace needs root");
            for job in queue {
                job();
            }
        });
        let namespace = Namespace { jobs };
        namespace.command("ip link set lo up");
        namespace
    }

    fn run<T: Send + 'static>(&self, job: impl FnOnce() -> T + Send + 'static) -> T {
        let (reply, answer) = channel();
        self.jobs.send(Box::new(move || reply.send(job()).expect("asked for"))).expect("the thread runs");
        answer.recv().expect("the job ends")
    }

    /// Runs `line`, which must succeed.
    fn command(&self, line: &str) -> String {
        let words: Vec<String> = line.split_whitespace().map(String::from).collect();
        let output: io::Result<Output> = self.run(move || Command::new(&words[0]).args(&words[1..]).output());
        let output = output.unwrap_or_else(|error| panic!("{line}: {error}"));
        assert!(output.status.success(), "{line}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// Starts `line`; it ends with this process at the latest.
    fn start(&self, line: &str) -> std::process::Child {
        let words: Vec<String> = line.split_whitespace().map(String::from).collect();
        self.run(move || {
            let mut command = Command::new(&words[0]);
            command.args(&words[1..]).stdout(Stdio::null()).stderr(Stdio::null());
            command.process_group(0).spawn().expect("the program is installed")
        })
    }

    fn tun(&self, name: &'static str, address: &str, peer: &str) -> Arc<Port> {
        let port = self.run(move || Port::tun(name, &TunSettings::default()).expect("a TUN device"));
        self.command(&format!("ip addr add {address} peer {peer} dev {name}"));
        let queue = TunSettings::default().queue;
        self.command(&format!("ip link set {name} up txqueuelen {queue}"));
        Arc::new(port)
    }
}

#[derive(Clone)]
struct Options {
    measure: Vec<String>,
    seconds: u64,
    congestion: String,
    threads: usize,
    log: bool,
    settings: ForwardSettings,
}

fn options() -> Options {
    let mut options = Options {
        measure: ["rate", "processor", "latency", "wakeup"].map(String::from).to_vec(),
        seconds: 10,
        congestion: "cubic".into(),
        threads: 1,
        log: true,
        settings: ForwardSettings::default(),
    };
    for argument in env::args().skip(1).filter(|argument| argument.contains('=')) {
        let (name, value) = argument.split_once('=').expect("filtered");
        match name {
            "measure" => options.measure = value.split(',').map(String::from).collect(),
            "seconds" => options.seconds = value.parse().expect("seconds=10"),
            "congestion" => options.congestion = value.into(),
            "threads" => options.threads = value.parse().expect("threads=1"),
            "log" => options.log = value.parse().expect("log=true"),
            "gather" => options.settings.gather = value.parse().expect("gather=125us"),
            "fifo" => options.settings.fifo = value.parse().expect("fifo=true"),
            _ => panic!("unknown option `{argument}`"),
        }
    }
    options
}

const OUTER: &str = "10.177.0.1";
const INNER: &str = "10.177.0.2";

/// A path between two namespaces that runs until it is stopped.
struct Running {
    inner: Namespace,
    outer: Namespace,
    stop: Arc<Stop>,
    threads: Vec<thread::JoinHandle<(Vec<Finished<Meter>>, f64)>>,
    /// Time this process had spent when the path began.
    spent: f64,
    folder: Option<PathBuf>,
}

fn start(options: &Options, up: &str, down: &str, buffer: Limit) -> Running {
    let (inner, outer) = (Namespace::new(), Namespace::new());
    let inside = inner.tun("inside", INNER, OUTER);
    let outside = outer.tun("outside", OUTER, INNER);
    let folder =
        options.log.then(|| env::temp_dir().join(format!("brakelight-bench-{}", std::process::id())));
    if let Some(folder) = &folder {
        std::fs::create_dir_all(folder).expect("a folder for the log");
    }
    let spent = processor_seconds(UsageWho::RUSAGE_SELF);
    let direction = |name: &str, service: &str, input: &Arc<Port>, output: &Arc<Port>| {
        let mut direction = DirectionSpec::open(name, 1);
        direction.link =
            Some(Bottleneck::parse(name, service, "droptail", buffer, &Names::default()).expect("a rate"));
        let log = folder.as_ref().map(|folder| (folder.join(format!("{name}.log")), "bench".to_string()));
        let bin = options.log.then(|| Duration::from_millis(100));
        let settings = measure::MeasureSettings { measure_from: Duration::ZERO, bin, log, live: None };
        let mut watch = Meter::new(&direction, &settings).expect("the log can be written");
        if let Some(log) = watch.take_log_thread() {
            log.start().expect("a thread");
        }
        CarriedDirection { direction, input: input.clone(), output: output.clone(), watch }
    };
    let mut directions =
        vec![direction("up", up, &inside, &outside), direction("down", down, &outside, &inside)];
    let groups = match options.threads {
        1 => vec![directions],
        _ => {
            let second = directions.split_off(1);
            vec![directions, second]
        }
    };
    let stop = Arc::new(Stop::new().expect("an event descriptor"));
    let epoch = Epoch::start();
    let threads = groups
        .into_iter()
        .map(|directions| {
            let (stop, settings) = (stop.clone(), options.settings.clone());
            thread::spawn(move || {
                let finished = forward::run(directions, &settings, epoch, &stop).expect("the path runs");
                (finished, processor_seconds(UsageWho::RUSAGE_THREAD))
            })
        })
        .collect();
    Running { inner, outer, stop, threads, spent, folder }
}

/// What a run came to.
struct Ended {
    directions: Vec<Finished<Meter>>,
    /// Seconds of the processor: of the threads that carry packets, and of all of this process, the log's
    /// thread included.
    carrying: f64,
    all: f64,
}

impl Running {
    fn end(self) -> Ended {
        self.stop.set();
        let ended: Vec<_> = self.threads.into_iter().map(|thread| thread.join().expect("it ended")).collect();
        let carrying = ended.iter().map(|(_, seconds)| seconds).sum();
        let all = processor_seconds(UsageWho::RUSAGE_SELF) - self.spent;
        if let Some(folder) = &self.folder {
            // The log's threads may still write: the files go with their last descriptor.
            let _ = std::fs::remove_dir_all(folder);
        }
        let directions = ended.into_iter().flat_map(|(directions, _)| directions).collect();
        Ended { directions, carrying, all }
    }
}

/// User and system time of this thread, or of all threads.
fn processor_seconds(who: UsageWho) -> f64 {
    let usage = getrusage(who).expect("one's own usage");
    (usage.user_time().num_microseconds() + usage.system_time().num_microseconds()) as f64 * 1e-6
}

/// A Mahimahi trace of 100 Mbit/s at the IP layer: 25 opportunities of 1500 bytes in 3 ms.
fn millisecond_trace() -> PathBuf {
    let file = env::temp_dir().join(format!("brakelight-bench-{}.trace", std::process::id()));
    let lines: String = [(1, 8), (2, 8), (3, 9)].map(|(ms, count)| format!("{ms}\n").repeat(count)).concat();
    std::fs::write(&file, lines).expect("a file for the trace");
    file
}

/// The same by that trace, both ways.
fn traced(options: &Options) -> serde_json::Value {
    let file = millisecond_trace();
    let service = file.to_str().expect("a name in UTF-8").to_string();
    let report = tcp(options, &service, Rate::from_mbps(100), Limit::Packets(250));
    let _ = std::fs::remove_file(&file);
    report
}

/// One TCP connection from the outer to the inner side, which is the one that the link of `down` limits.
fn tcp(options: &Options, service: &str, rate: Rate, buffer: Limit) -> serde_json::Value {
    let running = start(options, service, service, buffer);
    let report = connection(&running.inner, &running.outer, options);
    let Ended { directions, carrying, all } = running.end();
    let mut lateness = Lateness::new();
    directions.iter().for_each(|direction| lateness.add(&direction.lateness));
    assert!(directions.iter().all(|direction| direction.facts.conserved()));
    let sum = |of: fn(&Facts) -> u64| directions.iter().map(|direction| of(&direction.facts)).sum::<u64>();
    let down = directions.iter().find(|direction| direction.name == "down").expect("two directions");
    let received = report["end"]["sum_received"]["bits_per_second"].as_f64().unwrap_or(0.0);
    let report = serde_json::json!({
        "rate_mbps": rate.as_mbps_f64(),
        "goodput_mbps": received * 1e-6,
        "delivered_percent": steady_mbps(&report) / rate.as_mbps_f64() * 100.0,
        "processor_percent": all / options.seconds as f64 * 100.0,
        "carrying_percent": carrying / options.seconds as f64 * 100.0,
        "lateness_us": microseconds(&lateness),
        "down_lateness_us": microseconds(&down.lateness),
        "packets": sum(|facts| facts.written),
        "writes": sum(|facts| facts.writes),
        "wakeups": down.facts.wakeups,
        "dropped": sum(|facts| facts.dropped),
        "refused": sum(|facts| facts.refused),
        "scheduling": down.facts.scheduling.to_string(),
    });
    for direction in directions {
        Measured::of(direction).expect("the log was written");
    }
    report
}

/// One connection for as long as the options say: what iperf3 reports of it.
fn connection(inner: &Namespace, outer: &Namespace, options: &Options) -> serde_json::Value {
    let mut server = inner.start("iperf3 -s -1");
    thread::sleep(time::Duration::from_millis(300));
    let Options { seconds, congestion, .. } = options;
    let text = outer.command(&format!("iperf3 -c {INNER} -t {seconds} -C {congestion} -J -Z"));
    let _ = server.wait();
    serde_json::from_str(&text).expect("iperf3's JSON")
}

/// The payload of every second but the first, in which TCP starts, with its headers: what the link delivered.
fn steady_mbps(report: &serde_json::Value) -> f64 {
    let intervals = report["intervals"].as_array().expect("intervals");
    let steady: Vec<f64> =
        intervals.iter().skip(1).filter_map(|i| i["sum"]["bits_per_second"].as_f64()).collect();
    steady.iter().sum::<f64>() / steady.len().max(1) as f64 * (1500.0 / 1448.0) * 1e-6
}

fn microseconds(lateness: &Lateness) -> serde_json::Value {
    let us = |quantile| lateness.quantile(quantile).as_nanos() as f64 * 1e-3;
    serde_json::json!({"p50": us(0.5), "p99": us(0.99), "p999": us(0.999), "max": lateness.max().as_nanos() as f64 * 1e-3})
}

/// Round trips of `count` pings, milliseconds, sorted.
fn round_trips(from: &Namespace, to: &str, count: usize) -> Vec<f64> {
    let text = from.command(&format!("ping -n -i 0.002 -c {count} {to}"));
    let time = |line: &str| line.split("time=").nth(1)?.split_whitespace().next()?.parse().ok();
    let mut times: Vec<f64> = text.lines().filter_map(time).collect();
    times.sort_by(f64::total_cmp);
    assert!(times.len() * 100 >= count * 99, "{} of {count} pings were answered", times.len());
    times
}

fn quantile(sorted: &[f64], quantile: f64) -> f64 {
    sorted[((sorted.len() - 1) as f64 * quantile).round() as usize]
}

/// Half of what the path adds to the round trip of a ping, beside a bare veth.
fn latency(options: &Options) -> serde_json::Value {
    const COUNT: usize = 3000;
    let running = start(options, "1Gbps", "1Gbps", Limit::Packets(1000));
    let through = round_trips(&running.inner, OUTER, COUNT);
    let seconds = running.end().carrying;
    let (left, right) = (Namespace::new(), Namespace::new());
    let peer = right.run(|| nix::unistd::gettid().as_raw());
    left.command(&format!("ip link add one type veth peer name two netns {peer}"));
    for (side, name, address) in [(&left, "one", INNER), (&right, "two", OUTER)] {
        side.command(&format!("ip addr add {address}/24 dev {name}"));
        side.command(&format!("ip link set {name} up"));
    }
    thread::sleep(time::Duration::from_millis(500));
    let bare = round_trips(&left, OUTER, COUNT);
    let added = |q| (quantile(&through, q) - quantile(&bare, q)) / 2.0;
    serde_json::json!({
        "round_trip_ms": {"p50": quantile(&through, 0.5), "p99": quantile(&through, 0.99)},
        "veth_ms": {"p50": quantile(&bare, 0.5), "p99": quantile(&bare, 0.99)},
        "added_one_way_ms": {"p50": added(0.5), "p99": added(0.99)},
        "processor_seconds": seconds,
    })
}

/// What the system charges a thread that does nothing but sleep until the next packet would be due at 100
/// Mbit/s: the floor under all that carries packets one by one. Once with a timeout, once with two timers,
/// each of which is set while the other is pending. And how long the interrupt of a timer alone takes.
fn wakeup(options: &Options) -> serde_json::Value {
    let fifo = options.settings.fifo;
    let measured = |sleeper: fn() -> Box<dyn FnMut(Duration)>| {
        thread::spawn(move || sleeps(fifo, sleeper())).join().expect("it ends")
    };
    let mut report = measured(|| {
        Box::new(|left| {
            let timeout = nix::sys::time::TimeSpec::nanoseconds(left.as_nanos() as i64);
            nix::poll::ppoll(&mut [], Some(timeout), None).expect("a sleep");
        })
    });
    report["two_timers"] = measured(|| Box::new(taking_turns()));
    report["interrupt_us"] = thread::spawn(move || interrupted(fifo)).join().expect("it ends").into();
    report
}

/// For how long the interrupt of a timer keeps a thread from running that does not sleep, microseconds: the
/// median. Most of it is charged to the thread that a timer wakes as well.
fn interrupted(fifo: bool) -> f64 {
    const COUNT: usize = 500;
    brakelight_emulator::clock::sleep_precisely(fifo);
    let timer = TimerFd::new(ClockId::CLOCK_MONOTONIC, TimerFlags::TFD_NONBLOCK).expect("a timer");
    let epoch = Epoch::start();
    let gap = |_| {
        let after = nix::sys::time::TimeSpec::nanoseconds(50_000);
        timer.set(Expiration::OneShot(after), TimerSetTimeFlags::empty()).expect("a time");
        let (mut last, mut longest) = (epoch.now(), Duration::ZERO);
        let end = last + Duration::from_micros(100);
        while last < end {
            let now = epoch.now();
            longest = longest.max(now.since(last));
            last = now;
        }
        longest.as_nanos() as f64 * 1e-3
    };
    let mut gaps: Vec<f64> = (0..COUNT).map(gap).collect();
    gaps.sort_by(f64::total_cmp);
    quantile(&gaps, 0.5)
}

const SLEEP: Duration = Duration::from_micros(120);

/// Sleeps with `sleep`, which is told how long, and says what each sleep cost and how late it ended.
fn sleeps(fifo: bool, mut sleep: Box<dyn FnMut(Duration)>) -> serde_json::Value {
    const COUNT: u64 = 20_000;
    brakelight_emulator::clock::sleep_precisely(fifo);
    let (epoch, mut lateness) = (Epoch::start(), Lateness::new());
    let spent = processor_seconds(UsageWho::RUSAGE_THREAD);
    let mut due = epoch.now() + SLEEP;
    for _ in 0..COUNT {
        let left = due.since(epoch.now());
        if !left.is_zero() {
            sleep(left);
        }
        let now = epoch.now();
        lateness.record(now.since(due));
        due = (due + SLEEP).max(now);
    }
    serde_json::json!({
        "processor_us_per_wakeup": (processor_seconds(UsageWho::RUSAGE_THREAD) - spent) / COUNT as f64 * 1e6,
        "late_us": microseconds(&lateness),
    })
}

/// A sleep until the timer that was set at the last one goes off; the timer for the next is set before.
fn taking_turns() -> impl FnMut(Duration) {
    let timer = || TimerFd::new(ClockId::CLOCK_MONOTONIC, TimerFlags::empty()).expect("a timer");
    let timers = [timer(), timer()];
    let (mut turn, mut first) = (0, true);
    move |left| {
        let set = |timer: &TimerFd, after: Duration| {
            let after = nix::sys::time::TimeSpec::nanoseconds(after.as_nanos() as i64);
            timer.set(Expiration::OneShot(after), TimerSetTimeFlags::empty()).expect("a time");
        };
        if std::mem::take(&mut first) {
            set(&timers[turn], left);
        }
        set(&timers[1 - turn], left + SLEEP);
        let mut fds = [PollFd::new(timers[turn].as_fd(), PollFlags::POLLIN)];
        nix::poll::ppoll(&mut fds, None, None).expect("a sleep");
        turn = 1 - turn;
    }
}

fn main() {
    let options = options();
    let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let mut report = serde_json::Map::new();
    report.insert("load_average".into(), load.trim().into());
    report.insert("fifo".into(), options.settings.fifo.into());
    report.insert("threads".into(), options.threads.into());
    report.insert("congestion".into(), options.congestion.clone().into());
    for what in &options.measure {
        let result = match what.as_str() {
            "rate" => tcp(&options, "2Gbps", Rate::from_mbps(2000), Limit::Packets(4000)),
            "processor" => tcp(&options, "100Mbps", Rate::from_mbps(100), Limit::Packets(250)),
            "trace" => traced(&options),
            "latency" => latency(&options),
            "wakeup" => wakeup(&options),
            "floor" => floor::measure(&options),
            other => match other.parse() {
                Ok(rate) => tcp(&options, other, rate, Limit::Packets(4000)),
                Err(_) => panic!("unknown measurement `{what}`"),
            },
        };
        report.insert(what.clone(), result);
    }
    let text = serde_json::to_string_pretty(&report).expect("JSON");
    writeln!(io::stdout(), "{text}").expect("standard output");
}
