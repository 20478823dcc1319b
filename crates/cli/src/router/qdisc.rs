//! `router qdisc`: the router as the kernel module `sch_abc`.

use std::thread;
use std::time::Instant;

use brakelight_core::time::Duration;
use brakelight_core::units::{Limit, Rate};
use brakelight_tcp::qdisc::{self, Activity, Buffer, Counts, Qdisc, QdiscSettings, ROOT, class, class_name};
use brakelight_tcp::settings::Variant;
use clap::{Args, Subcommand, ValueEnum};
use serde_json::json;

use crate::arguments::{
    DocumentFormat, count, human, positive_buffer, positive_rate, positive_time, token_limit,
};
use crate::failure::Failure;
use crate::text::{self, number};

/// `router qdisc`.
#[derive(Clone, Debug, Subcommand)]
pub enum Command {
    /// Set a device's qdisc: replace another one, or change the settings of this one
    Set(Box<Set>),
    /// Show the settings and the counters
    Show(Show),
    /// Print a line of statistics every interval
    Watch(Watch),
    /// Remove it
    Remove(Attachment),
}

/// Where a qdisc is.
#[derive(Clone, Debug, Args)]
pub struct Attachment {
    /// The device by which packets leave
    #[arg(value_name = "DEV")]
    pub device: String,
    /// The class of another qdisc, such as 1:10 [default: the device itself]
    #[arg(long, value_name = "CLASS", value_parser = class)]
    pub parent: Option<u32>,
}

/// The meaning of an ABC packet's ECN field.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Encoding {
    /// 01 accelerate, 10 brake, 11 congestion
    Abc,
    /// 01 and 10 accelerate, 11 brake: for senders behind a proxy
    Proxied,
}

/// What x is read from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum DelayOf {
    /// The queued bytes, over mu
    Backlog,
    /// The time that the departing packet has waited
    Sojourn,
}

/// `router qdisc set`.
#[derive(Clone, Debug, Args)]
pub struct Set {
    #[command(flatten)]
    attachment: Attachment,
    /// The link's rate [default: measured while packets wait]
    #[arg(long, value_name = "RATE", value_parser = positive_rate, allow_hyphen_values = true)]
    pub rate: Option<Rate>,
    /// Do not shape: the class above or the device already limits the rate
    #[arg(long, requires = "rate")]
    pub unshaped: bool,
    /// The most that may wait
    #[arg(long, value_name = "SIZE", default_value = "250pkt", value_parser = positive_buffer, allow_hyphen_values = true)]
    pub buffer: Limit,
    /// The rule by which packets are marked
    #[arg(long, default_value = "paper", value_enum)]
    pub variant: super::Variant,
    /// eta, target utilization; not with `l4s` [default: 0.98; 1 for `adaptive`]
    #[arg(long, value_name = "SHARE", value_parser = super::eta, allow_hyphen_values = true)]
    pub eta: Option<f64>,
    /// delta, time in which a queue above the target drains; `paper` only [default: 133ms]
    #[arg(long, value_name = "TIME", value_parser = positive_time, allow_hyphen_values = true)]
    pub delta: Option<Duration>,
    /// d_t, queueing delay below which nothing is drained; `paper` only [default: 50ms]
    #[arg(long, value_name = "TIME", value_parser = human::<Duration>, allow_hyphen_values = true)]
    pub target: Option<Duration>,
    /// T, window over which rates are measured
    #[arg(long, value_name = "TIME", default_value = "20ms", value_parser = positive_time, allow_hyphen_values = true)]
    pub window: Duration,
    /// Maximum number of tokens in the bucket; not with `l4s` [default: 5]
    #[arg(long, value_name = "N", value_parser = token_limit, allow_hyphen_values = true)]
    pub token_limit: Option<f64>,
    /// The meaning of the ECN field; not with `l4s` [default: abc]
    #[arg(long, value_enum)]
    pub encoding: Option<Encoding>,
    /// How x, the queueing delay, is measured; `paper` only [default: backlog]
    #[arg(long, value_name = "WHAT", value_enum)]
    pub x: Option<DelayOf>,
}

/// `router qdisc show`.
#[derive(Clone, Debug, Args)]
pub struct Show {
    /// The device [default: all]
    #[arg(value_name = "DEV")]
    pub device: Option<String>,
    /// How to print it
    #[arg(long, default_value = "table", value_enum)]
    pub format: DocumentFormat,
}

/// `router qdisc watch`.
#[derive(Clone, Debug, Args)]
pub struct Watch {
    #[command(flatten)]
    attachment: Attachment,
    /// Time between lines
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = positive_time, allow_hyphen_values = true)]
    pub interval: Duration,
    /// Number of lines [default: until interrupted]
    #[arg(long, value_name = "N", value_parser = count, allow_hyphen_values = true)]
    pub count: Option<u32>,
    /// How to print them; JSON is one document per line
    #[arg(long, default_value = "table", value_enum)]
    pub format: DocumentFormat,
}

/// Runs the command.
pub fn execute(command: &Command) -> Result<(), Failure> {
    match command {
        Command::Set(arguments) => set(arguments),
        Command::Show(arguments) => show(arguments),
        Command::Watch(arguments) => watch(arguments),
        Command::Remove(attachment) => {
            qdisc::remove(&attachment.device, attachment.parent.unwrap_or(ROOT)).map_err(Failure::from)
        }
    }
}

fn std_time(time: Duration) -> std::time::Duration {
    std::time::Duration::from_nanos(time.as_nanos())
}

fn set(arguments: &Set) -> Result<(), Failure> {
    let too_much =
        |what: &str| Failure::input(format!("--buffer is too large: valid is below 4294967296 {what}"));
    let of_paper = [
        ("target", arguments.target.is_some()),
        ("delta", arguments.delta.is_some()),
        ("x", arguments.x.is_some()),
    ];
    let of_abc = [
        ("eta", arguments.eta.is_some()),
        ("token-limit", arguments.token_limit.is_some()),
        ("encoding", arguments.encoding.is_some()),
    ];
    arguments.variant.refuse(&of_paper, &of_abc)?;
    let variant = Variant::from(arguments.variant);
    let settings = QdiscSettings {
        rate_bps: arguments.rate.map(Rate::bps),
        shape: !arguments.unshaped,
        buffer: match arguments.buffer {
            Limit::Packets(packets) => Buffer::Packets(packets),
            Limit::Bytes(bytes) => Buffer::Bytes(u32::try_from(bytes.0).map_err(|_| too_much("bytes"))?),
        },
        variant,
        target: std_time(arguments.target.unwrap_or(super::TARGET)),
        delta: std_time(arguments.delta.unwrap_or(super::DELTA)),
        window: std_time(arguments.window),
        eta: arguments.eta.unwrap_or(variant.eta()),
        token_limit: arguments.token_limit.unwrap_or(QdiscSettings::default().token_limit),
        proxied: arguments.encoding == Some(Encoding::Proxied),
        sojourn: arguments.x == Some(DelayOf::Sojourn),
    };
    qdisc::set(&arguments.attachment.device, arguments.attachment.parent.unwrap_or(ROOT), &settings)
        .map_err(Failure::from)
}

fn show(arguments: &Show) -> Result<(), Failure> {
    let found = qdisc::list(arguments.device.as_deref())?;
    match arguments.format {
        DocumentFormat::Json => text::print_json(&json!({ "qdiscs": found })),
        DocumentFormat::Table => text::print(&found.iter().map(described).collect::<String>()),
    }
}

fn described(qdisc: &Qdisc) -> String {
    let (s, c) = (&qdisc.settings, &qdisc.counts);
    let mbps = |bps: u64| number(bps as f64 / 1e6);
    let ms = |time: std::time::Duration| number(time.as_secs_f64() * 1e3);
    let rate = match (s.rate_bps, s.shape) {
        (Some(rate), true) => format!("shapes to {} Mbit/s", mbps(rate)),
        (Some(rate), false) => format!("on a link of {} Mbit/s", mbps(rate)),
        (None, _) if c.capacity_bps == 0 => "on a link not measured yet".to_string(),
        (None, _) => format!("on a link measured at {} Mbit/s", mbps(c.capacity_bps)),
    };
    let buffer = match s.buffer {
        Buffer::Packets(packets) => format!("{packets} packets"),
        Buffer::Bytes(bytes) => format!("{bytes} bytes"),
    };
    let rule = match s.variant {
        Variant::Paper => format!("delta {} ms, target {} ms, ", ms(s.delta), ms(s.target)),
        Variant::Adaptive | Variant::L4s => String::new(),
    };
    let x = match (s.variant, s.sojourn) {
        (Variant::Paper, true) => ", x by sojourn",
        (Variant::Paper, false) => ", x by backlog",
        (Variant::Adaptive, _) => ", adaptive",
        (Variant::L4s, _) => ", l4s",
    };
    let tau = c.loop_delay_ms.map_or_else(String::new, |tau_ms| format!(", loop {} ms", number(tau_ms)));
    let (eta, bucket) = match s.variant {
        Variant::L4s => (String::new(), String::new()),
        Variant::Paper | Variant::Adaptive => (
            format!("eta {}, ", number(s.eta)),
            format!(
                ", tokens up to {}, encoding {}",
                number(s.token_limit),
                if s.proxied { "proxied" } else { "abc" }
            ),
        ),
    };
    let turned = if s.variant == Variant::L4s { "CE" } else { "brakes" };
    format!(
        "{} {} {rate}, buffer {buffer}, {eta}{rule}window {} ms{bucket}{x}\n  \
         left {} packets, {} bytes; waiting {}; dropped {}; in the queue {} ms, at most {} ms\n  \
         accelerates {}, turned into {turned} {}, brakes already {}, CE {}, others {}; f {:.3}, cr {} Mbit/s, {} tokens{tau}\n",
        qdisc.device,
        class_name(qdisc.parent),
        ms(s.window),
        c.packets,
        c.bytes,
        c.waiting_packets,
        c.drops,
        number(c.sojourn_ms),
        number(c.sojourn_max_ms),
        c.accelerates,
        c.turned,
        c.brakes,
        c.ce,
        c.others,
        c.f,
        mbps(c.measured_bps),
        number(c.tokens),
    )
}

const HEADING: &str = "Mbit/s      mu  cr Mbit/s     f  tokens  mean ms  accel  brake     CE  waiting  drops";

fn watch(arguments: &Watch) -> Result<(), Failure> {
    let interval = std_time(arguments.interval);
    let Attachment { device, parent } = &arguments.attachment;
    let look = || qdisc::find(device, parent.unwrap_or(ROOT)).map_err(Failure::from);
    let Qdisc { counts: mut before, settings, .. } = look()?;
    if arguments.format == DocumentFormat::Table {
        let tau = if settings.variant == Variant::Adaptive { "  loop ms" } else { "" };
        text::print(&format!("{HEADING}{tau}\n"))?;
    }
    let mut next = Instant::now() + interval;
    let mut lines = 0;
    while arguments.count.is_none_or(|count| lines < count) {
        thread::sleep(next.saturating_duration_since(Instant::now()));
        next += interval;
        let now = look()?.counts;
        match arguments.format {
            DocumentFormat::Json => text::print(&format!("{}\n", json!(now)))?,
            DocumentFormat::Table => {
                let mut activity = now.since(&before, interval);
                if settings.variant == Variant::L4s {
                    // What it turned left as CE.
                    activity.marks = [activity.marks[0], 0.0, activity.marks[1] + activity.marks[2]];
                }
                text::print(&line(&now, &activity))?;
            }
        }
        before = now;
        lines += 1;
    }
    Ok(())
}

fn line(now: &Counts, activity: &Activity) -> String {
    let [accelerate, brake, ce] = activity.marks.map(|share| 100.0 * share);
    let tau = now.loop_delay_ms.map_or_else(String::new, |tau_ms| format!("  {:>7}", number(tau_ms)));
    format!(
        "{:>6} {:>7} {:>10} {:>5.2} {:>7.2} {:>8} {accelerate:>4.0} % {brake:>4.0} % {ce:>4.1} % {:>8} {:>6}{tau}\n",
        number(activity.throughput_mbps),
        number(now.capacity_bps as f64 / 1e6),
        number(now.measured_bps as f64 / 1e6),
        now.f,
        now.tokens,
        number(activity.sojourn_ms),
        now.waiting_packets,
        activity.drops,
    )
}
