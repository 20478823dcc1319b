//! `emulate`: a command behind an emulated link.

mod display;

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use brakelight_core::time::Duration;
use brakelight_core::units::Limit;
use brakelight_emulator::classify::Classifier;
use brakelight_emulator::command::{self, Setting};
use brakelight_emulator::device::TunSettings;
use brakelight_emulator::doctor::{self, State};
use brakelight_emulator::emulation::{self, Setup};
use brakelight_emulator::forward::ForwardSettings;
use brakelight_emulator::measure;
use brakelight_emulator::meter::Live;
use brakelight_emulator::outcome::Directions;
use brakelight_emulator::spec::{Bottleneck, DirectionSpec, SpecError, parse_element_with};
use brakelight_files::folder::Folder;
use brakelight_files::system::AsInvoker;
use brakelight_lab::jobs::JobOutcome;
use brakelight_lab::output::Logs;
use brakelight_lab::run;
use brakelight_lab::series::{SeriesFormat, file_name};
use brakelight_lab::table::{Drawn, Table};
use brakelight_registry::{DEFAULT_QUEUE, Registry};
use brakelight_scenario::outcome::Outcome;
use brakelight_scenario::trace::names::Names;
use clap::Args;
use display::Display;

use crate::arguments::{delay, positive_buffer, probability, seed};
use crate::failure::Failure;
use crate::{emulated, origin, output, text};

/// Width of a bin of the time series.
const BIN: Duration = Duration::from_millis(100);

/// `emulate`.
#[derive(Clone, Debug, Args)]
#[command(
    after_help = "A SPEC is a rate (`12Mbps`), steps (`500ms:12Mbps,500ms:24Mbps`), a Mahimahi trace file, or the name of a trace from `list traces`.\n\
    The command finds the outer side at $BRAKELIGHT_HOST and $BRAKELIGHT_HOST6; its exit code is passed on.\n\
    Try: brakelight emulate --up 12Mbps --delay 20ms -- sh -c 'ping -c3 $BRAKELIGHT_HOST'"
)]
pub struct Arguments {
    /// The link from the command to the outer side [default: no limit]
    #[arg(long, value_name = "SPEC")]
    pub up: Option<String>,
    /// The link from the outer side to the command [default: no limit]
    #[arg(long, value_name = "SPEC")]
    pub down: Option<String>,
    /// Propagation delay in each direction
    #[arg(long, value_name = "TIME", default_value = "0ms", value_parser = delay, allow_hyphen_values = true)]
    pub delay: Duration,
    /// Probability that a packet is lost, in each direction
    #[arg(long, value_name = "P", default_value = "0", value_parser = probability, allow_hyphen_values = true)]
    pub loss: f64,
    /// What packets pass behind the link, in each direction: `jitter:mean=5ms`, `reorder:rate=0.01`; may be
    /// repeated, and `list elements` shows all
    #[arg(long = "element", value_name = "ELEMENT")]
    pub elements: Vec<String>,
    /// The queue of both links: `codel`, `pie:target=20ms` [default: droptail]
    #[arg(long, value_name = "QUEUE")]
    pub queue: Option<String>,
    /// The queue of the uplink [default: that of --queue]
    #[arg(long, value_name = "QUEUE", requires = "up")]
    pub up_queue: Option<String>,
    /// The queue of the downlink [default: that of --queue]
    #[arg(long, value_name = "QUEUE", requires = "down")]
    pub down_queue: Option<String>,
    /// How `abc_dual` recognizes ABC packets: `accelerates` (their flow has sent ECT(1)),
    /// `address=ADDR[/BITS]`, `flow-label=N` or `ipid=N`
    #[arg(long, value_name = "FIELD", default_value_t)]
    pub abc_by: Classifier,
    /// The buffer of each link, in packets or bytes
    #[arg(long, value_name = "SIZE", default_value = "250pkt", value_parser = positive_buffer, allow_hyphen_values = true)]
    pub buffer: Limit,
    /// The seed of all random draws, such as which packets are lost
    #[arg(long, value_name = "N", default_value = "1", value_parser = seed, allow_hyphen_values = true)]
    pub seed: u64,
    /// Write report.html, runs.json and runs.csv into this folder, with time series and every link's log in
    /// Mahimahi's format
    #[arg(long, value_name = "DIR")]
    pub log: Option<PathBuf>,
    /// Show live capacity, throughput, queueing delay, accelerates and lateness in both directions
    #[arg(long)]
    pub meter: bool,
    /// A shell command to run on the outer side: it must listen before CMD starts, and is stopped afterward;
    /// may be repeated
    #[arg(long = "server", value_name = "CMD")]
    pub servers: Vec<OsString>,
    /// Make the outer side the real network; needs root, and the command runs as the user who called sudo
    #[arg(long)]
    pub nat: bool,
    /// Keep the machine's limits of TCP socket buffers. Otherwise the emulation raises them where they would
    /// limit a fast flow more than the links do
    #[arg(long)]
    pub keep_sysctls: bool,
    /// Check whether this machine and this user can emulate, and say what to do about what is missing
    #[arg(long)]
    pub doctor: bool,
    /// The command and its arguments
    #[arg(last = true, value_name = "CMD", required_unless_present = "doctor")]
    pub command: Vec<OsString>,
}

/// Runs the command. Must be called before there are other threads.
pub fn execute(registry: &Registry, arguments: &Arguments) -> Result<(), Failure> {
    if arguments.doctor {
        return examine();
    }
    let setup = setup(registry, arguments)?;
    let folder = arguments.log.as_deref().map(|log| output::folder(log, true)).transpose();
    let folder = folder.map_err(|failure| Failure::input(failure.message.replacen("--out", "--log", 1)))?;
    let live = [Arc::new(Live::default()), Arc::new(Live::default())];
    let name = name(&arguments.command[0]);
    let settings = |direction: &DirectionSpec, live: &Arc<Live>| {
        let path = |folder: &Folder| folder.path(&format!("links/{name}.{}.log", direction.name));
        let path = folder.as_ref().map(path).transpose()?;
        Ok::<_, Failure>(measure::MeasureSettings {
            measure_from: Duration::ZERO,
            bin: folder.is_some().then_some(BIN),
            log: path.map(|path| (path, origin::origin(arguments.seed).command)),
            live: arguments.meter.then(|| live.clone()),
        })
    };
    let settings = [settings(&setup.up, &live[0])?, settings(&setup.down, &live[1])?];
    let (meters, threads) = measure::meters([&setup.up, &setup.down], &settings).map_err(Failure::run)?;
    let [up, down] = [&setup.up, &setup.down].map(DirectionSpec::words);
    let mut display = None;
    let ended = emulation::run(setup, meters, |_| {
        for thread in threads {
            thread.start()?;
        }
        display = arguments.meter.then(|| Display::start(live)).transpose()?;
        Ok(())
    });
    drop(display);
    let ended = ended.map_err(emulated::failure)?;
    for note in &ended.notes {
        text::say(&format!("note: {note}"));
    }
    let code = ended.code;
    let directions = Directions::of(ended, Duration::ZERO).map_err(Failure::run)?;
    let outcome = directions.outcome(&name, arguments.seed);
    emulated::say(&directions, &outcome.run);
    if let Some(folder) = folder {
        write(folder, arguments, &directions, outcome, [up, down])?;
    }
    match u8::try_from(code) {
        Ok(0) => Ok(()),
        // It is for the command to say what went wrong.
        Ok(code) => Err(Failure { code, message: String::new() }),
        Err(_) => Err(Failure::run(format!("the command ended with code {code}"))),
    }
}

/// `--doctor`.
fn examine() -> Result<(), Failure> {
    let findings = doctor::examine();
    text::print(&findings.iter().map(|finding| format!("{finding}\n")).collect::<String>())?;
    let missing: Vec<&str> = findings
        .iter()
        .filter(|finding| finding.state == State::Missing)
        .map(|finding| finding.what)
        .collect();
    if missing.is_empty() {
        Ok(())
    } else {
        Err(Failure::run(format!("cannot emulate here without: {}", missing.join(", "))))
    }
}

/// The name of a program without its folder, fit for a file's name.
fn name(program: &OsStr) -> String {
    let name = Path::new(program).file_name().unwrap_or(program).to_string_lossy();
    file_name(&name)
}

/// Writes the report and all that belongs to it beside the logs.
fn write(
    folder: Folder,
    arguments: &Arguments,
    directions: &Directions,
    outcome: Outcome,
    words: [String; 2],
) -> Result<(), Failure> {
    // The links of the series are those of both directions; the flows, those of the one that carried more.
    let main = if directions.main().name == "down" && directions.up.link.is_some() { 1 } else { 0 };
    let path = if directions.main().link.is_some() { vec![main] } else { Vec::new() };
    let (links, flows) = outcome.series.as_ref().map_or((0, 0), |it| (it.links.len(), it.flows.len()));
    let drawn = Drawn { links, paths: vec![path; flows] };
    let notes = run::notes(&outcome.run);
    let table = Table::of(JobOutcome::of(vec![outcome]).into_iter().collect(), &drawn);
    let [up, down] = words;
    let elements = match arguments.elements.as_slice() {
        [] => "none".to_string(),
        elements => elements.join(", "),
    };
    let command: Vec<_> = arguments.command.iter().map(|word| word.to_string_lossy()).collect();
    let table = Table {
        title: command.join(" "),
        setting: vec![
            ("up".to_string(), up),
            ("down".to_string(), down),
            ("path elements of each direction".to_string(), elements),
            ("delay of each direction".to_string(), arguments.delay.to_string()),
            ("loss in each direction".to_string(), arguments.loss.to_string()),
            ("seed".to_string(), arguments.seed.to_string()),
        ],
        notes,
        ..table
    };
    let logs = Logs { series: Some(SeriesFormat::Csv), link_logs: false };
    output::write(folder, &table, &origin::origin(arguments.seed), logs)
}

fn setup(registry: &Registry, arguments: &Arguments) -> Result<Setup, Failure> {
    if arguments.queue.is_some() && arguments.up.is_none() && arguments.down.is_none() {
        return Err(Failure::input("--queue: there is no link for it; give --up, --down or both"));
    }
    let user = AsInvoker::begin();
    let names = Names::from_environment().map_err(Failure::input)?;
    let mut setup = Setup {
        up: direction(
            registry,
            arguments,
            "up",
            arguments.up.as_deref(),
            arguments.up_queue.as_deref(),
            &names,
        )?,
        down: direction(
            registry,
            arguments,
            "down",
            arguments.down.as_deref(),
            arguments.down_queue.as_deref(),
            &names,
        )?,
        setting: Setting {
            nat: arguments.nat,
            mtu: TunSettings::default().mtu,
            keep_sysctls: arguments.keep_sysctls,
        },
        forward: ForwardSettings::default(),
        servers: arguments.servers.clone(),
        command: arguments.command.clone(),
        ports: Vec::new(),
        bounded: None,
    };
    drop(user);
    let has_two_queues = [&setup.up, &setup.down].iter().any(|direction| direction.tells_flows_apart());
    if arguments.abc_by != Classifier::default() && !has_two_queues {
        return Err(Failure::input(
            "--abc-by: no link has two queues to sort packets into; give --queue abc_dual",
        ));
    }
    (setup.up.opposite, setup.down.opposite) = (setup.down.link.clone(), setup.up.link.clone());
    let program = &arguments.command[0];
    if !command::exists(program) {
        return Err(Failure::input(format!(
            "`{}`: there is no such program; give a path to one, or a name in PATH",
            program.to_string_lossy()
        )));
    }
    Ok(setup)
}

fn direction(
    registry: &Registry,
    arguments: &Arguments,
    name: &str,
    service: Option<&str>,
    queue: Option<&str>,
    names: &Names,
) -> Result<DirectionSpec, Failure> {
    let elements = arguments.elements.iter().map(|text| parse_element_with(registry, text));
    let elements = elements
        .collect::<Result<_, _>>()
        .map_err(|error: SpecError| Failure::input(format!("--element: {error}")))?;
    let mut direction = DirectionSpec::open(name, arguments.seed);
    let queue = queue.or(arguments.queue.as_deref()).unwrap_or(DEFAULT_QUEUE);
    direction.link = service
        .map(|service| Bottleneck::parse_with(registry, name, service, queue, arguments.buffer, names))
        .transpose()
        .map_err(|error| Failure::input(format!("--{name}: {error}")))?;
    direction.elements = elements;
    direction.loss = arguments.loss;
    direction.delay = arguments.delay;
    direction.classifier = arguments.abc_by;
    Ok(direction)
}
