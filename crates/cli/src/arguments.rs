//! Arguments and value parsers that commands share. The names are an interface: add, never rename. This
//! module knows no command.

use std::ffi::OsString;
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
    /// Write every link's log of opportunities, arrivals, departures and drops into DIR/links, in Mahimahi's
    /// format
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
    /// A Mahimahi trace file, a recording (.bltrace), a folder of them, or the name of a trace from `list
    /// traces`; may be repeated or comma-separated [default: the embedded traces]
    #[arg(long = "trace", value_name = "FILE-or-NAME")]
    pub traces: Vec<String>,
    /// Comma-separated schemes: `abc,cubic+codel,cubic:hystart=off`; `all` is every scheme in `list schemes`
    /// except those of other hosts [default: those marked as default there]
    #[arg(long, value_name = "LIST")]
    pub schemes: Option<String>,
    /// Compare only schemes that need changes to this part alone, along with today's scheme
    #[arg(long, value_enum)]
    pub can: Option<Can>,
    /// The scheme of one competing flow in the same queue
    #[arg(long, value_name = "SCHEME")]
    pub against: Option<String>,
    /// What the schemes' application does, as `traffic` in a scenario file: `call`, `video`,
    /// `{ kind = "call", fps = 60 }` [default: backlogged]
    #[arg(long, value_name = "TRAFFIC")]
    pub traffic: Option<String>,
    /// Round-trip propagation delay
    #[arg(long, value_name = "TIME", default_value = "100ms", value_parser = positive_time, allow_hyphen_values = true)]
    pub rtt: Duration,
    /// The bottleneck's buffer, in packets, bytes or bandwidth-delay products of the trace's mean rate
    /// [default: one BDP of the trace's fastest second, at least 250pkt]
    #[arg(long, value_name = "SIZE|2BDP", value_parser = compared_buffer, allow_hyphen_values = true)]
    pub buffer: Option<Buffer>,
    /// What limits the return path: a rate, a trace, or `none` [default: none]
    #[arg(long, value_name = "TRACE|RATE", value_parser = reverse)]
    pub reverse: Option<Reverse>,
    /// Whether to spread each millisecond's opportunities evenly instead of serving all at its end;
    /// `--spread` alone is `--spread=true` [default: spread where the milliseconds of a file are only its
    /// grid]
    #[arg(long, value_name = "true|false", num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    pub spread: Option<bool>,
    /// Defaults of the other options: `mahimahi` is the setup of the papers (250pkt, 12Mbps on the return
    /// path, one run of 60 s from the start of the trace) [default: what suits each trace]
    #[arg(long, value_name = "NAME", value_parser = ["mahimahi"])]
    pub setup: Option<String>,
    /// Length of a run [default: the recording's own; 6 to 30 s for a generated trace]
    #[arg(long, value_name = "TIME", value_parser = positive_time, allow_hyphen_values = true)]
    pub duration: Option<Duration>,
    /// Runs of each scheme on each trace, each with its own seed; rows are medians, with confidence intervals
    /// [default: 8]
    #[arg(long, value_name = "N", value_parser = count, allow_hyphen_values = true)]
    pub runs: Option<u32>,
    /// The first seed
    #[arg(long, value_name = "N", default_value = "1", value_parser = seed, allow_hyphen_values = true)]
    pub seed: u64,
    /// Where in its period a trace starts: a time, or `random` to draw it from the seed [default: evenly
    /// spaced, one place per run]
    #[arg(long, value_name = "TIME|random", value_parser = offset, allow_hyphen_values = true)]
    pub trace_offset: Option<TraceOffset>,
    /// Run even if it may take hours or exhaust memory; write even into a folder that holds other files
    #[arg(long)]
    pub force: bool,
    /// Write report.html, runs.json and runs.csv into this folder
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Write every figure into this folder, as SVG and PDF, ready for a paper
    #[arg(long, value_name = "DIR")]
    pub figures: Option<PathBuf>,
    /// Logs on request
    #[command(flatten)]
    pub logs: Logs,
    /// Logs of every flow on request
    #[command(flatten)]
    pub qlog: Qlog,
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
    /// In real time over an emulated path: kernel TCP, QUIC with --host quinn, any program with --command
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

/// Programs in place of a flow.
#[derive(Clone, Debug, Default, Args)]
pub struct Programs {
    /// With `--on emulator`: a shell command in place of the scenario's only flow. It finds the other side at
    /// $BRAKELIGHT_HOST and $BRAKELIGHT_HOST6, and the length of the run in $BRAKELIGHT_SECONDS
    #[arg(long, value_name = "CMD", conflicts_with = "host")]
    pub command: Option<OsString>,
    /// A shell command on the other side: it must listen before the command starts, and is stopped afterward;
    /// may be repeated
    #[arg(long = "server", value_name = "CMD", requires = "command")]
    pub servers: Vec<OsString>,
    /// Send data from the servers to the command: the scenario's `path` leads to the command
    #[arg(long, requires = "command")]
    pub download: bool,
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
    /// Programs in place of a flow
    #[command(flatten)]
    pub programs: Programs,
    /// Number of seeds to run, starting with the file's own; rows are medians, with their spread
    #[arg(long, value_name = "N", default_value = "1", value_parser = count, allow_hyphen_values = true)]
    pub runs: u32,
    /// Run even if it may take hours or exhaust memory; write even into a folder that holds other files
    #[arg(long)]
    pub force: bool,
    /// Write report.html, runs.json and runs.csv into this folder, and the logs that the scenario asks for
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Write every figure into this folder, as SVG and PDF, ready for a paper
    #[arg(long, value_name = "DIR")]
    pub figures: Option<PathBuf>,
    /// Logs on request
    #[command(flatten)]
    pub logs: Logs,
    /// Logs of every flow on request
    #[command(flatten)]
    pub qlog: Qlog,
    /// How to print the results
    #[arg(long, default_value = "table", value_enum)]
    pub format: Format,
}

/// Logs of every flow.
#[derive(Clone, Debug, Args)]
pub struct Qlog {
    /// Write what both ends of every flow did into this folder, as qlog of the first seed: FLOW.sqlog and
    /// FLOW.receiver.sqlog, of a comparison in a folder for each trace and scheme
    #[arg(long = "qlog", value_name = "DIR")]
    pub folder: Option<PathBuf>,
    /// Its version: draft 14, the current one, or 0.3, which qvis opens
    #[arg(
        long = "qlog-version",
        value_name = "VERSION",
        default_value = "14",
        value_enum,
        requires = "folder"
    )]
    pub version: QlogVersion,
}

/// By which draft `--qlog` writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum QlogVersion {
    /// The current drafts
    #[value(name = "14")]
    Draft14,
    /// What qvis and other tools read that know no later draft
    #[value(name = "0.3")]
    V03,
}

impl From<QlogVersion> for brakelight_lab::qlog::Version {
    fn from(version: QlogVersion) -> Self {
        match version {
            QlogVersion::Draft14 => Self::Draft14,
            QlogVersion::V03 => Self::V03,
        }
    }
}

/// `reproduce`.
#[derive(Clone, Debug, Args)]
pub struct Reproduce {
    /// IDs of claims, such as `ABC-F1`; a prefix stands for all claims that start with it, and a name ending
    /// in `.toml` for a file of your own [default: all]
    #[arg(value_name = "ID")]
    pub ids: Vec<String>,
    /// A first look, two minutes on two cores: one seed, and without the longest experiments, which are named
    #[arg(long)]
    pub quick: bool,
    /// The host of every flow [default: the claims' own]
    #[arg(long, value_enum)]
    pub host: Option<HostName>,
    /// Run even if it may take hours or exhaust memory; write even into a folder that holds other files
    #[arg(long)]
    pub force: bool,
    /// Write every run used to judge claims into this folder, as CSV rows, and as Parquet if built with that
    /// feature
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Write every figure into this folder, as SVG and PDF, ready for a paper
    #[arg(long, value_name = "DIR")]
    pub figures: Option<PathBuf>,
    /// How to print the verdicts
    #[arg(long, default_value = "table", value_enum)]
    pub format: ClaimFormat,
}

/// What `list` shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Kind {
    /// Schemes: those that `compare` runs by default, then the others, then those of other hosts
    Schemes,
    /// Senders
    Controllers,
    /// Router queues
    Queues,
    /// What receivers send back: a flow's `feedback` in a scenario file
    Feedbacks,
    /// What a path may have besides links: a flow's `path` and `reverse` in a scenario file
    Elements,
    /// Wireless links: a link's `radio` in a scenario file
    Radios,
    /// What chooses the rate of a shaper: `shaper:setter=NAME/OPTION=VALUE` in a path
    Setters,
    /// What flows carry: a flow's `traffic` in a scenario file
    Applications,
    /// Third-party transports with their own controllers: `HOST/CONTROLLER`
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
    /// Show a trace: its rate over time, variation and outages
    Show(Show),
    /// Generate a trace from a recipe; the same seed gives the same trace
    Synth(Synth),
    /// Fit a recipe to a recording, so that `synth` can generate more traces like it
    Fit(FitArguments),
    /// Convert a file (CSV of rates, packet capture, iperf3 JSON) into a trace, or a trace into CSV
    Convert(Convert),
    /// Download and verify a public recording, which you can then use by name; without a name, list them
    Fetch(Fetch),
}

/// `trace fetch`.
#[derive(Clone, Debug, Args)]
pub struct Fetch {
    /// The recording's name in the catalogue
    #[arg(value_name = "NAME")]
    pub name: Option<String>,
    /// A catalogue of your own, as TOML [default: the built-in one]
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
    /// The file, which may be gzipped; `-` is standard input
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// Its format: mahimahi, csv, columns (times and rates), packets (times and sizes), pcap, iperf3 (what
    /// `iperf3 --json` prints), iperf3-text, nuttcp, genet, cake-autorate, flent, link-log, cellreplay, qlog
    /// or bltrace [default: detected]
    #[arg(long, value_name = "FORMAT", value_parser = human::<convert::Format>)]
    pub from: Option<convert::Format>,
    /// Which direction to use from a file with both: `from:ADDRESS` or `to:ADDRESS` for a capture; `up` or
    /// `down` for an iperf3 test, a table, a log or flent data; or `all`
    #[arg(long, value_name = "DIRECTION")]
    pub direction: Option<Selection>,
    /// Which flow to use from a capture: ADDRESS:PORT-ADDRESS:PORT, source and destination
    #[arg(long, value_name = "FLOW", value_parser = Selection::flow, conflicts_with = "direction")]
    pub flow: Option<Selection>,
    /// The unit of the rates if the table does not name it, such as Mbit/s, kbit/s or MB/s
    #[arg(long, value_name = "UNIT")]
    pub unit: Option<RateUnit>,
    /// The name of the rate column if the table has several, or of the series in flent data
    #[arg(long, value_name = "NAME")]
    pub column: Option<String>,
    /// The name of the table's time column
    #[arg(long, value_name = "NAME")]
    pub time_column: Option<String>,
    /// Leave out the rows of a table in which the application was idle: those whose `State` says so or,
    /// without such a column, those with rate 0
    #[arg(long)]
    pub without_idle: bool,
    /// A file of one-way delays to add to the capacity: LeoReplayer's (one number of milliseconds per 10 ms),
    /// IRTT's JSON or CellReplay's light packet trains; kept in a .bltrace and by `trace fit`
    #[arg(long, value_name = "FILE")]
    pub delay: Option<PathBuf>,
}

/// `trace convert`.
#[derive(Clone, Debug, Args)]
pub struct Convert {
    /// The file
    #[command(flatten)]
    pub recorded: Recorded,
    /// A fact about the recording, kept in a .bltrace: name, operator, technology, place, method, `licence`,
    /// citation or source; may be repeated
    #[arg(long, value_name = "KEY=VALUE")]
    pub about: Vec<String>,
    /// What to write: mahimahi (milliseconds, one delivery opportunity per line), csv (one bin per line:
    /// `start_s,mbps,end_s`) or bltrace (a recording: microseconds, rates, delay, loss, facts about it)
    /// [default: by the ending of --out, bltrace or csv; otherwise mahimahi]
    #[arg(long, value_name = "FORMAT", value_parser = form())]
    pub to: Option<Form>,
    /// Bin width for `--to csv`
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
    /// What is known about the link: binned (a rate in each bin), bursts (also the time of every packet) or
    /// starlink (also a path change every 15 s)
    #[arg(long, value_name = "KIND", default_value = "binned", value_parser = human::<LinkKind>)]
    pub kind: LinkKind,
    /// How long each rate in the recipe lasts [default: what one value of the recording stands for; for
    /// single packets 100ms, or 50ms with starlink]
    #[arg(long, value_name = "TIME", value_parser = positive_time, allow_hyphen_values = true)]
    pub bin: Option<Duration>,
    /// Write the recipe to this file [default: standard output]
    #[arg(long, value_name = "FILE.toml")]
    pub out: Option<PathBuf>,
}

/// `trace synth`.
#[derive(Clone, Debug, Args)]
pub struct Synth {
    /// A recipe file, or the name of an embedded trace, whose recipe is used
    #[arg(value_name = "RECIPE.toml-or-NAME")]
    pub recipe: String,
    /// The seed [default: the recipe's]
    #[arg(long, value_name = "N", value_parser = seed, allow_hyphen_values = true)]
    pub seed: Option<u64>,
    /// Length of the trace [default: the recipe's]
    #[arg(long, value_name = "TIME", value_parser = positive_time, allow_hyphen_values = true)]
    pub duration: Option<Duration>,
    /// What to write [default: by the ending of --out, bltrace (with delay and loss) or csv; otherwise
    /// mahimahi]
    #[arg(long, value_name = "FORMAT", value_parser = form())]
    pub to: Option<Form>,
    /// Write the trace to this file [default: standard output]
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
}

/// `bench`.
#[derive(Clone, Debug, Args)]
pub struct Bench {
    /// Also run S1, S2 and S3 in ns-3, if Debian's ns-3 is installed, and print the ratio
    #[arg(long)]
    pub with_ns3: bool,
    /// Count the instructions per packet in these rows, shortened, and print which parts of the simulator use
    /// them; nothing is timed. Needs valgrind [default: S1 S2 S3]
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
