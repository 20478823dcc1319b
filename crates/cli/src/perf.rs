//! `perf-server` and `perf`: real QUIC endpoints, measured.

use std::sync::{Mutex, PoisonError};

use brakelight_core::units::Bytes;
use brakelight_files::process::release_free_memory;
use brakelight_lab::Progress;
use brakelight_lab::text::perf::in_words;
use brakelight_quic::adapter::{ControlSettings, PacketSender, Path, Unsupported};
use brakelight_quic::driver::net::Limits;
use brakelight_quic::perf::address::resolve;
use brakelight_quic::perf::client::{Measurement, Plan, Until, Work, measure};
use brakelight_quic::perf::identity::{Fingerprint, Identity, Trust, read_certificates};
use brakelight_quic::perf::qlog::Logs;
use brakelight_quic::perf::server::{self, Server};
use brakelight_quic::perf::silence::{LIMIT, Silence};
use brakelight_quic::perf::token::Token;
use brakelight_quic::perf::{Control, Error, outcome};
use brakelight_registry::{ControllerConfig, Registry};
use brakelight_scenario::documents::Runs;
use brakelight_scenario::scheme_string::{SchemeString, Words};

use crate::arguments::DocumentFormat;
use crate::failure::Failure;
use crate::origin;
use crate::progress::Bar;
use crate::text::{self, number};

pub mod arguments;
mod stock;

/// Runs `perf-server`: until it is interrupted.
pub fn serve(registry: &Registry, arguments: &arguments::Server) -> Result<(), Failure> {
    let listen = resolve(&arguments.listen).map_err(Failure::input)?.0;
    let control = control(registry, &arguments.controller, PacketSender::Driver, arguments.own_path)?;
    let identity = match (&arguments.cert, &arguments.key) {
        (Some(certificates), Some(key)) => Identity::read(certificates, key)?,
        _ => Identity::self_signed(),
    };
    let qlog = logs(arguments.qlog.as_deref(), arguments.qlog_limit);
    let connections = Limits {
        connections: arguments.max_connections as usize,
        per_address: arguments.max_per_address as usize,
        ..Limits::default()
    };
    let limits = server::Limits {
        connections,
        duration: std::time::Duration::from_nanos(arguments.max_duration.as_nanos()),
        bytes: arguments.max_bytes,
    };
    let token = arguments.token.as_deref().map(Token::read).transpose()?;
    let settings = server::ServerSettings { listen, control, identity, token, qlog, limits };
    let server = Server::bind(&settings, text::say)?.when_idle(release_free_memory);
    text::say(&format!("listening on {}; certificate {}", server.address(), server.fingerprint()));
    server.serve();
    Ok(())
}

/// Runs `perf`.
pub fn execute(registry: &Registry, arguments: &arguments::Client) -> Result<(), Failure> {
    let plan = plan(registry, arguments)?;
    if matches!(plan.trust, Trust::Anyone) {
        text::say("note: the server's certificate is not verified; --pin or --ca verifies it");
    }
    if arguments.compare_stock {
        return stock::execute(arguments, &plan);
    }
    let measured = measured(&plan, "measuring")?;
    outcome::notes(&plan, &arguments.controller, &measured)
        .iter()
        .for_each(|note| text::say(&format!("note: {note}")));
    let run = outcome::run(&plan, &arguments.controller, &arguments.server, &measured);
    match arguments.format {
        DocumentFormat::Json => {
            text::print_json(&Runs { origin: origin::origin(0), runs: vec![run], ..Runs::default() })
        }
        DocumentFormat::Table => text::print(&in_words(&run, &text::standard_output())),
    }
}

fn plan(registry: &Registry, arguments: &arguments::Client) -> Result<Plan, Failure> {
    let (server, server_name) = resolve(&arguments.server).map_err(Failure::input)?;
    if server.port() == 0 {
        return Err(Failure::input(format!(
            "`{}`: 0 is not a server's port: valid are 1 to 65535",
            arguments.server
        )));
    }
    // Beside quinn's own Cubic stands what an application of quinn would have.
    let packet_sender = if arguments.compare_stock { PacketSender::Stack } else { PacketSender::Driver };
    let control = control(registry, &arguments.controller, packet_sender, arguments.own_path)?;
    let trust = match (&arguments.pin, &arguments.ca) {
        (Some(pin), _) => Trust::Pinned(Fingerprint::parse(pin).ok_or_else(|| {
            Failure::input(format!(
                "--pin: `{pin}` is not a SHA-256: valid is 64 hexadecimal digits, as the server prints them"
            ))
        })?),
        (None, Some(file)) => Trust::Roots(read_certificates(file)?),
        (None, None) => Trust::Anyone,
    };
    let work = if arguments.download {
        Work::Download
    } else if arguments.request_response {
        Work::Exchange { request: arguments.request.0, response: arguments.response.0 }
    } else {
        Work::Upload
    };
    let until = match arguments.bytes {
        Some(bytes) if bytes.0 < u64::from(arguments.connections) => {
            return Err(Failure::input(format!(
                "--bytes: {bytes} for {} connections: valid is at least one byte for each",
                arguments.connections
            )));
        }
        Some(bytes) => Until::Bytes(bytes.0),
        None => Until::Time(std::time::Duration::from_nanos(arguments.duration.as_nanos())),
    };
    Ok(Plan {
        server,
        server_name,
        trust,
        token: arguments.token.as_deref().map(Token::read).transpose()?,
        control: Control::Ours(Box::new(control)),
        work,
        until,
        connections: arguments.connections,
        probe: arguments.probe.map(|every| std::time::Duration::from_nanos(every.as_nanos())),
        qlog: logs(arguments.qlog.as_deref(), arguments.qlog_limit),
    })
}

/// Logs in `folder`, if there is to be one, of no more than `limit` together.
fn logs(folder: Option<&std::path::Path>, limit: Bytes) -> Option<Logs> {
    folder.map(|folder| Logs { folder: folder.to_path_buf(), limit })
}

fn control(
    registry: &Registry,
    text: &str,
    packet_sender: PacketSender,
    own_path: bool,
) -> Result<ControlSettings, Failure> {
    let words = Words::parse(text).ok_or_else(|| {
        Failure::input(format!("--controller: `{text}` is not `name` or `name:option=value,option=value`"))
    })?;
    let config = SchemeString::<ControllerConfig>::from_words_with(registry, words)
        .map_err(|error| Failure::input(format!("--controller: {error}")))?;
    let path = if own_path { Path::Own } else { Path::Public };
    ControlSettings::new((*config).clone(), packet_sender, path).map_err(|error| {
        let hint = if matches!(error, Unsupported::Marks { .. }) { " (--own-path says so)" } else { "" };
        Failure::input(format!("--{error}{hint}"))
    })
}

/// Measures with a progress bar where somebody watches.
fn measured(plan: &Plan, what: &str) -> Result<Measurement, Failure> {
    const STEPS: usize = 100;
    let progress = Bar::new(what, STEPS);
    let shown = std::sync::atomic::AtomicUsize::new(0);
    let silence = Mutex::new(Silence::default());
    let measured = measure(plan, |elapsed, bytes| {
        if silence.lock().unwrap_or_else(PoisonError::into_inner).begins(elapsed, bytes) {
            let (server, seconds) = (plan.server, LIMIT.as_secs());
            progress.say(&format!(
                "note: {server} has not been heard from for {seconds} s; is it still running?"
            ));
        }
        let now = ((plan.until.share(elapsed, bytes) * STEPS as f64) as usize).min(STEPS);
        let before = shown.fetch_max(now, std::sync::atomic::Ordering::Relaxed);
        let rate = bytes as f64 * 8e-6 / elapsed.as_secs_f64().max(1e-3);
        (before..now).for_each(|_| progress.step(&format!("{} Mbit/s", number(rate))));
    });
    Ok(measured?)
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        match error {
            Error::File { .. } => Failure::input(error),
            error => Failure::run(error),
        }
    }
}
