//! Arguments and value parsers that commands share. The names are an interface: add, never rename. This
//! module knows no command.

use std::path::PathBuf;

use brakelight_core::suggest::DidYouMean;
use brakelight_core::time::Duration;
use brakelight_lab::bench::rows::Row;
use brakelight_lab::compare::{Buffer, Reverse};
use brakelight_lab::traces::Form;
pub use brakelight_lab::values::{
    compared_buffer, count, delay, eta, human, kernel_name, offset, positive_buffer, positive_rate,
    positive_seconds, positive_size, positive_time, probability, propagation, reverse, seed, threshold,
    token_limit, whole,
};
use brakelight_lab::{output, series};
use brakelight_scenario::deployment::Change;
use brakelight_scenario::scenario::TraceOffset;
use brakelight_scenario::trace::convert::{self, RateUnit, Selection};
use brakelight_scenario::trace::fit::link::LinkKind;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, Subcommand, ValueEnum};

/// How results are printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// For people
    Table,
    /// One JSON document
    Json,
    /// Rows for other programs
    Csv,
}

/// How judgments are printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ClaimFormat {
    /// For people
    Table,
    /// One JSON document
    Json,
    /// A table for a document
    Markdown,
}

/// How results are printed that are no rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum DocumentFormat {
    /// For people
    Table,
    /// One JSON document
    Json,
}

/// The file format of time series.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum SeriesFormat {
    /// Text
    Csv,
    /// Columns, compressed
    #[cfg(feature = "parquet")]
    Parquet,
}

/// Logs on request.
#[derive(Clone, Copy, Debug, Default, Args)]
pub struct Logs {
    /// Write the time series of every run into DIR/series
    #[arg(long, value_name = "FORMAT", requires = "out", value_enum)]
    pub series: Option<SeriesFormat>,
    /// Write every link's log of opportunities, arrivals, departures and drops into DIR/links, as Mahimahi
    /// would
    #[arg(long, requires = "out")]
    pub link_logs: bool,
}

impl From<Logs> for output::Logs {
    fn from(logs: Logs) -> Self {
        let series = logs.series.map(|format| match format {
            SeriesFormat::Csv => series::SeriesFormat::Csv,
            #[cfg(feature = "parquet")]
            SeriesFormat::Parquet => series::SeriesFormat::Parquet,
        });
        output::Logs { series, link_logs: logs.link_logs }
    }
}

/// `compare`.
#[derive(Clone, Debug, Args)]
pub struct Compare {
    /// A Mahimahi trace file, a recording (.bltrace), a folder of them, or the name of a trace that `list
    /// traces` shows; may be repeated, or several with commas between [default: the embedded traces]
    #[arg(long = "trace", value_name = "FILE-or-NAME")]
    pub traces: Vec<String>,
    /// Schemes, with commas between: `abc,cubic+codel,cubic:hystart=off`; `all` is every one that `list
    /// schemes` shows, but for those of other hosts [default: those that it marks as default]
    #[arg(long, value_name = "LIST")]
    pub schemes: Option<String>,
    /// Compare only schemes that can be deployed by changing this alone, and today's
    #[arg(long, value_enum)]
    pub can: Option<Can>,
    /// The scheme of one competing flow at the same queue
    #[arg(long, value_name = "SCHEME")]
    pub against: Option<String>,
    /// Propagation delay of the round trip
    #[arg(long, value_name = "TIME", default_value = "100ms", value_parser = positive_time, allow_hyphen_values = true)]
    pub rtt: Duration,
    /// The bottleneck's buffer, in packets, bytes or bandwidth-delay products of the trace's mean rate
    /// [default: one product of the trace's fastest second, at least 250pkt]
    #[arg(long, value_name = "SIZE|2BDP", value_parser = compared_buffer, allow_hyphen_values = true)]
    pub buffer: Option<Buffer>,
    /// What limits the way back: a rate, a trace, or `none` [default: none]
    #[arg(long, value_name = "TRACE|RATE", value_parser = reverse)]
    pub reverse: Option<Reverse>,
    /// Spread the opportunities of each millisecond of a trace evenly over it. Without this they come at
    /// once, in bursts that the link may not have had
    #[arg(long)]
    pub spread: bool,
    /// Defaults of the other options: `mahimahi` is the setup of the papers (250pkt, 12Mbps back, 60 s from
    /// the trace's beginning, one run) [default: what suits each trace]
    #[arg(long, value_name = "NAME", value_parser = ["mahimahi"])]
    pub setup: Option<String>,
    /// Length of a run [default: a recording's own, and of a generated trace 6 to 30 s]
    #[arg(long, value_name = "TIME", value_parser = positive_time, allow_hyphen_values = true)]
    pub duration: Option<Duration>,
    /// Runs of each scheme on each trace, every one with a seed of its own; rows are medians, with confidence
    /// intervals [default: 8]
    #[arg(long, value_name = "N", value_parser = count, allow_hyphen_values = true)]
    pub runs: Option<u32>,
    /// The first seed
    #[arg(long, value_name = "N", default_value = "1", value_parser = seed, allow_hyphen_values = true)]
    pub seed: u64,
    /// Where in its period a trace starts: a time, or `random` to draw it from the seed [default: evenly
    /// spaced places, one for each run]
    #[arg(long, value_name = "TIME|random", value_parser = offset, allow_hyphen_values = true)]
    pub trace_offset: Option<TraceOffset>,
    /// Run it even if it may take hours or fill the memory; write into a folder that holds other files
    #[arg(long)]
    pub force: bool,
    /// Write report.html, runs.json and runs.csv into this folder
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Write every figure into this folder, as SVG and as PDF, fit for a paper
    #[arg(long, value_name = "DIR")]
    pub figures: Option<PathBuf>,
    /// Logs on request
    #[command(flatten)]
    pub logs: Logs,
    /// How to print the results
    #[arg(long, default_value = "table", value_enum)]
    pub format: Format,
}

/// What somebody can change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Can {
    /// The hosts: senders, and receivers where a scheme needs it
    Senders,
    /// The queue of the router
    Queue,
    /// Hosts and router
    Both,
}

impl From<Can> for Change {
    fn from(can: Can) -> Self {
        match can {
            Can::Senders => Change::Senders,
            Can::Queue => Change::Queue,
            Can::Both => Change::Both,
        }
    }
}

/// Where a scenario runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Arena {
    /// In simulated time
    Simulator,
    /// In real time: kernel TCP, or QUIC with --host quinn, over an emulated path
    Emulator,
}

/// The profile of a flow's hosts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum HostName {
    /// SACK, RACK-TLP, PRR, RTO with F-RTO, delayed ACKs of 40 ms
    Tcp,
    /// RFC 9002, delayed ACKs of 25 ms
    Quic,
    /// The real QUIC stack: under the simulator's clock, or in real time on the emulator
    Quinn,
}

/// `run`.
#[derive(Clone, Debug, Args)]
pub struct Run {
    /// The scenario file
    #[arg(value_name = "SCENARIO.toml")]
    pub scenario: PathBuf,
    /// Where to run it
    #[arg(long, default_value = "simulator", value_enum)]
    pub on: Arena,
    /// The host profile of every flow [default: the file's]
    #[arg(long, value_enum)]
    pub host: Option<HostName>,
    /// Seeds to run, from the file's own upwards; rows are medians, with their spread
    #[arg(long, value_name = "N", default_value = "1", value_parser = count, allow_hyphen_values = true)]
    pub runs: u32,
    /// Run it even if it may take hours or fill the memory; write into a folder that holds other files
    #[arg(long)]
    pub force: bool,
    /// Write report.html, runs.json and runs.csv into this folder, and the logs that the scenario asks for
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Write every figure into this folder, as SVG and as PDF, fit for a paper
    #[arg(long, value_name = "DIR")]
    pub figures: Option<PathBuf>,
    /// Logs on request
    #[command(flatten)]
    pub logs: Logs,
    /// How to print the results
    #[arg(long, default_value = "table", value_enum)]
    pub format: Format,
}

/// `reproduce`.
#[derive(Clone, Debug, Args)]
pub struct Reproduce {
    /// Claims by their ids, such as `ABC-F1`; a beginning stands for all that begin so, and a name that ends
    /// in `.toml` for a file of your own [default: all]
    #[arg(value_name = "ID")]
    pub ids: Vec<String>,
    /// A first look in two minutes of two cores: one seed, without the longest experiments, which are named
    #[arg(long)]
    pub quick: bool,
    /// The host of every flow [default: the claims' own]
    #[arg(long, value_enum)]
    pub host: Option<HostName>,
    /// Run it even if it may take hours or fill the memory; write into a folder that holds other files
    #[arg(long)]
    pub force: bool,
    /// Write every run that claims were judged by into this folder, as rows: CSV, and Parquet if built with
    /// that feature
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Write every figure into this folder, as SVG and as PDF, fit for a paper
    #[arg(long, value_name = "DIR")]
    pub figures: Option<PathBuf>,
    /// How to print the judgments
    #[arg(long, default_value = "table", value_enum)]
    pub format: ClaimFormat,
}

/// What `list` shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Kind {
    /// Schemes: those that `compare` runs when none is named, the others, then those of other hosts
    Schemes,
    /// Senders
    Controllers,
    /// Routers' queues
    Queues,
    /// What receivers send back: a flow's `feedback` in a scenario file
    Feedbacks,
    /// What else may stand on a path beside links: a flow's `path` and `reverse` in a scenario file
    Elements,
    /// Wireless links: a link's `radio` in a scenario file
    Radios,
    /// What flows carry: a flow's `traffic` in a scenario file
    Applications,
    /// Transports that others wrote, with controllers of their own: `HOST/CONTROLLER`
    Hosts,
    /// Traces by name
    Traces,
    /// The papers' claims, for `reproduce`
    Claims,
}

/// `list`.
#[derive(Clone, Debug, Args)]
pub struct List {
    /// What to show
    #[arg(value_enum)]
    pub kind: Kind,
    /// How to print it
    #[arg(long, default_value = "table", value_enum)]
    pub format: Format,
}

/// `trace`.
#[derive(Clone, Debug, Subcommand)]
pub enum Trace {
    /// Show what a trace is like: its rate over time, variation, outages
    Show(Show),
    /// Make a trace from a recipe, the same one for the same seed
    Synth(Synth),
    /// Fit a recipe to a recording, so that `synth` makes more traces of such a link
    Fit(FitArguments),
    /// Convert a file into a trace (a CSV of rates, a packet capture, iperf3's JSON), or a trace into a CSV
    Convert(Convert),
    /// Download a public recording, verify and keep it, so that its name is a trace; without a name list them
    Fetch(Fetch),
}

/// `trace fetch`.
#[derive(Clone, Debug, Args)]
pub struct Fetch {
    /// The recording's name in the catalogue
    #[arg(value_name = "NAME")]
    pub name: Option<String>,
    /// A catalogue of your own, as TOML [default: the program's]
    #[arg(long, value_name = "FILE")]
    pub catalogue: Option<PathBuf>,
    /// Download it even if it was fetched before
    #[arg(long)]
    pub again: bool,
}

/// `trace show`.
#[derive(Clone, Debug, Args)]
pub struct Show {
    /// A Mahimahi trace file, a recording (.bltrace), `-` for standard input, or the name of a trace
    #[arg(value_name = "FILE-or-NAME")]
    pub trace: String,
    /// How to print it: statistics in words or as JSON, or the rate over time as CSV
    #[arg(long, default_value = "table", value_enum)]
    pub format: Format,
}

fn form() -> impl TypedValueParser<Value = Form> {
    PossibleValuesParser::new(Form::NAMES).try_map(|name| name.parse::<Form>())
}

/// A file of another program, and what is taken of it.
#[derive(Clone, Debug, Args)]
pub struct Recorded {
    /// The file, which gzip may have packed; `-` is standard input
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// What it is: mahimahi, csv, columns (times and rates), packets (times and sizes), pcap, iperf3 (what
    /// `iperf3 --json` prints), iperf3-text, nuttcp, genet, cake-autorate, flent, link-log, cellreplay, qlog
    /// or bltrace [default: what it seems to be]
    #[arg(long, value_name = "FORMAT", value_parser = human::<convert::Format>)]
    pub from: Option<convert::Format>,
    /// Which direction to take of a file that holds both: `from:ADDRESS` or `to:ADDRESS` of a capture, `up`
    /// or `down` of an iperf3 test, a table, a log or flent's data, or `all`
    #[arg(long, value_name = "DIRECTION")]
    pub direction: Option<Selection>,
    /// Which flow to take of a capture: ADDRESS:PORT-ADDRESS:PORT, from and to
    #[arg(long, value_name = "FLOW", value_parser = Selection::flow, conflicts_with = "direction")]
    pub flow: Option<Selection>,
    /// The unit of the rates of a table that does not name it, such as Mbit/s, kbit/s or MB/s
    #[arg(long, value_name = "UNIT")]
    pub unit: Option<RateUnit>,
    /// The column of the rates of a table that has several, or the series of flent's data, by its name
    #[arg(long, value_name = "NAME")]
    pub column: Option<String>,
    /// The column of the times of a table, by its name
    #[arg(long, value_name = "NAME")]
    pub time_column: Option<String>,
    /// Leave out the rows of a table in which the application was idle: those whose `State` says so, or
    /// those of rate 0 where no column does
    #[arg(long)]
    pub without_idle: bool,
    /// A file of one-way delays to put beside the capacity: LeoReplayer's (a number of milliseconds for every
    /// 10 ms), IRTT's JSON or CellReplay's light packet trains; kept in a .bltrace and by `trace fit`
    #[arg(long, value_name = "FILE")]
    pub delay: Option<PathBuf>,
}

/// `trace convert`.
#[derive(Clone, Debug, Args)]
pub struct Convert {
    /// The file
    #[command(flatten)]
    pub recorded: Recorded,
    /// What is known about the recording, kept in a .bltrace: name, operator, technology, place, method,
    /// `licence`, citation or source; may be repeated
    #[arg(long, value_name = "KEY=VALUE")]
    pub about: Vec<String>,
    /// What to make of it: mahimahi (milliseconds, one delivery opportunity a line), csv (one bin a line:
    /// `start_s,mbps,end_s`) or bltrace (a recording: microseconds, rates, delay, loss, what is known of it)
    /// [default: bltrace into a file that ends so, csv into one that ends in .csv; else mahimahi]
    #[arg(long, value_name = "FORMAT", value_parser = form())]
    pub to: Option<Form>,
    /// Width of a bin of `--to csv`
    #[arg(long, value_name = "TIME", default_value = "100ms", value_parser = positive_time, allow_hyphen_values = true)]
    pub bin: Duration,
    /// Write to this file [default: standard output]
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
}

/// `trace fit`.
#[derive(Clone, Debug, Args)]
pub struct FitArguments {
    /// The file
    #[command(flatten)]
    pub recorded: Recorded,
    /// What is known about the link: binned (a rate in each bin), bursts (the time of every packet too) or
    /// starlink (and another path every 15 s)
    #[arg(long, value_name = "KIND", default_value = "binned", value_parser = human::<LinkKind>)]
    pub kind: LinkKind,
    /// How long a rate of the recipe holds [default: what one value of the recording stands for, and 100ms
    /// (starlink: 50ms) of single packets]
    #[arg(long, value_name = "TIME", value_parser = positive_time, allow_hyphen_values = true)]
    pub bin: Option<Duration>,
    /// Write the recipe to this file [default: standard output]
    #[arg(long, value_name = "FILE.toml")]
    pub out: Option<PathBuf>,
}

/// `trace synth`.
#[derive(Clone, Debug, Args)]
pub struct Synth {
    /// A recipe file, or the name of an embedded trace, whose recipe is taken
    #[arg(value_name = "RECIPE.toml-or-NAME")]
    pub recipe: String,
    /// The seed [default: the recipe's]
    #[arg(long, value_name = "N", value_parser = seed, allow_hyphen_values = true)]
    pub seed: Option<u64>,
    /// Length of the trace [default: the recipe's]
    #[arg(long, value_name = "TIME", value_parser = positive_time, allow_hyphen_values = true)]
    pub duration: Option<Duration>,
    /// What to write [default: bltrace, with delay and loss, into a file that ends so, csv into one that ends
    /// in .csv; else mahimahi]
    #[arg(long, value_name = "FORMAT", value_parser = form())]
    pub to: Option<Form>,
    /// Write the trace to this file [default: standard output]
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
}

/// `bench`.
#[derive(Clone, Debug, Args)]
pub struct Bench {
    /// Run S1, S2 and S3 in ns-3 too, where Debian's ns-3 is installed, and print the ratio
    #[arg(long)]
    pub with_ns3: bool,
    /// Count the instructions of a packet in these rows, shortened, and print which parts of the simulator
    /// take them; nothing is timed. Needs valgrind [default: S1 S2 S3]
    #[arg(long, value_name = "ROW", value_parser = row, num_args = 0.., conflicts_with = "with_ns3")]
    #[arg(default_missing_values = ["S1", "S2", "S3"])]
    pub profile: Option<Vec<&'static Row>>,
    /// How to print the measurements
    #[arg(long, default_value = "table", value_enum)]
    pub format: DocumentFormat,
    /// One row in this process: what `bench` runs as a process of its own
    #[arg(long, hide = true, value_parser = row)]
    pub row: Option<&'static Row>,
    /// One row in this process, once: what `--profile` has valgrind run
    #[arg(long, hide = true, value_parser = row)]
    pub counted: Option<&'static Row>,
}

fn row(text: &str) -> Result<&'static Row, String> {
    let names = Row::names();
    let unknown = || format!("unknown row `{text}`{}: valid are {names}", DidYouMean::of_list(text, &names));
    Row::named(text).ok_or_else(unknown)
}
