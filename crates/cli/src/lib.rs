//! The `brakelight` command: it parses, calls, prints and writes; what it calls is the lab and its
//! neighbours.
//!
//! | module | holds |
//! |---|---|
//! | [`command_line`] | every command with its arguments |
//! | [`arguments`] | arguments and value parsers that commands share |
//! | [`compare`], [`run`], [`reproduce`], [`evaluate`], [`arena`] | one command each: runs |
//! | [`mod@sweep`], [`attack`], [`parity`] | the same |
//! | [`list`], [`schema`], [`trace`], [`stability`], [`mod@bench`] | one command each: tools |
//! | [`perf`], [`emulate`], [`tcp`], [`router`], [`shaper`] | one command each: real packets |
//! | [`distribution`] | what packages install beside the command: completions and manual pages |
//! | [`host`] | who the hosts are |
//! | [`emulated`], [`quinn_hosts`] | scenarios on the emulator; the process there that has the QUIC flows |
//! | [`mod@text`] | standard output and standard error |
//! | [`output`], [`qlog`] | what `--out` names: all of it, or nothing; what `--qlog` names |
//! | `linux_only` | on other systems than Linux: stand-ins for the commands that need it |
//! | [`origin`], [`progress`] | where results come from, how far the work is |
//! | [`program`] | how the command was called, and how it calls itself |
//! | [`interrupt`], [`failure`] | how a command ends |
#![forbid(unsafe_code)]

pub mod advise;
pub mod arena;
pub mod arguments;
pub mod attack;
pub mod bench;
pub mod command_line;
pub mod compare;
pub mod distribution;
#[cfg(target_os = "linux")]
pub mod emulate;
#[cfg(target_os = "linux")]
pub mod emulated;
pub mod evaluate;
pub mod failure;
pub mod host;
pub mod interrupt;
#[cfg(any(test, not(target_os = "linux")))]
pub mod linux_only;
pub mod list;
pub mod origin;
pub mod output;
#[cfg(target_os = "linux")]
pub mod parity;
#[cfg(target_os = "linux")]
pub mod perf;
pub mod program;
pub mod progress;
pub mod qlog;
#[cfg(target_os = "linux")]
pub mod quinn_hosts;
pub mod reproduce;
#[cfg(target_os = "linux")]
pub mod router;
pub mod run;
pub mod schema;
#[cfg(target_os = "linux")]
pub mod shaper;
pub mod stability;
pub mod sweep;
#[cfg(target_os = "linux")]
pub mod tcp;
pub mod text;
pub mod trace;

use std::ffi::OsString;
use std::process::ExitCode;

use brakelight_explorer::Server;
use brakelight_files::folder;
use brakelight_files::system::AsInvoker;
use brakelight_registry::Registry;
use command_line::{Cli, Command};
use failure::Failure;

/// Returns the algorithms of the command: those that Brakelight brings, with the feature `onnx` the
/// controller that a model drives, with the feature `wasm` the controller that a module in WebAssembly
/// drives, and with the feature `stacks` the hosts that others wrote.
pub fn registry() -> Registry {
    #[allow(unused_mut)]
    let mut registry = Registry::standard();
    #[cfg(feature = "onnx")]
    brakelight_learn::onnx::add_to(&mut registry).expect("no algorithm of Brakelight's has its name");
    #[cfg(feature = "wasm")]
    brakelight_sandbox::add_to(&mut registry).expect("no algorithm of Brakelight's has its name");
    #[cfg(feature = "stacks")]
    brakelight_stacks::add_to(&mut registry).expect("no algorithm of Brakelight's has their names");
    registry
}

/// Returns the whole command, with the algorithms of `registry`: a program that adds its own to the standard
/// ones has them in every command that takes a name.
///
/// ```no_run
/// use std::process::ExitCode;
///
/// use brakelight_registry::Registry;
///
/// fn main() -> ExitCode {
///     let registry = Registry::standard();
///     // registry.add_controller::<Mine>() ...
///     brakelight_cli::main_with(&registry)
/// }
/// ```
pub fn main_with(registry: &Registry) -> ExitCode {
    ExitCode::from(code(execute(registry)))
}

/// Returns the exit code of the whole command with these `arguments`, for a program that holds it: a process
/// runs it once. `words` start that program's command again: `python3 -m brakelight`.
pub fn main_within(registry: &Registry, words: Vec<OsString>, arguments: Vec<OsString>) -> u8 {
    program::set(words, arguments);
    code(execute(registry))
}

/// The exit code, once it is said what failed.
fn code(done: Result<(), Failure>) -> u8 {
    let Err(failure) = done else { return 0 };
    if !failure.message.is_empty() {
        text::complain(&format!("error: {failure}"));
    }
    failure.code
}

/// Does what the command line says, with the algorithms of `registry`.
pub fn execute(registry: &Registry) -> Result<(), Failure> {
    let Some(cli) = command_line::parse()? else { return Ok(()) };
    text::set_verbosity(cli.quiet, cli.verbose);
    let began = std::time::Instant::now();
    let done = dispatch(registry, &cli);
    text::detail(&format!("took {:.2} s", began.elapsed().as_secs_f64()));
    done
}

fn dispatch(registry: &Registry, cli: &Cli) -> Result<(), Failure> {
    let emulates = match &cli.command {
        Command::Emulate(_) => true,
        Command::Run(arguments) => arguments.on == arguments::Arena::Emulator,
        _ => false,
    };
    // Before there is a thread.
    if cli.command.writes_files() {
        folder::start_janitor();
    }
    // Its processes must be started before there is a thread, and interrupts are its command's to answer.
    if !emulates {
        interrupt::clean_up_on_interrupt();
    }
    // What users name is read with the rights of whoever called sudo. These commands need no others; the rest
    // ask for them where they read.
    let unprivileged = matches!(
        cli.command,
        Command::Compare(_)
            | Command::Advise(_)
            | Command::List(_)
            | Command::Reproduce(_)
            | Command::Evaluate(_)
            | Command::Arena(_)
            | Command::Sweep(_)
            | Command::Attack(_)
            | Command::Trace(_)
            | Command::Perf(_)
            | Command::PerfServer(_)
    );
    let _user = unprivileged.then(AsInvoker::begin);
    match &cli.command {
        Command::Compare(arguments) => compare::execute(registry, arguments),
        Command::Advise(arguments) => advise::execute(arguments),
        Command::Run(arguments) => run::execute(registry, arguments),
        Command::List(arguments) => list::execute(registry, arguments),
        Command::Schema(arguments) => schema::execute(registry, arguments),
        Command::Explore { port, open } => {
            let server = Server::bind(*port).map_err(Failure::input)?;
            text::print(&format!("The explorer is at {}; Ctrl-C stops it.\n", server.url()))?;
            if *open && let Err(error) = server.open_in_browser() {
                text::say(&format!("the browser cannot be started from here: {error}"));
            }
            server.run();
            Ok(())
        }
        Command::Reproduce(arguments) => reproduce::execute(registry, arguments),
        Command::Evaluate(arguments) => evaluate::execute(registry, arguments),
        Command::Arena(arguments) => arena::execute(registry, arguments),
        Command::Sweep(arguments) => sweep::execute(registry, arguments),
        Command::Attack(arguments) => attack::execute(registry, arguments),
        Command::Trace(arguments) => trace::execute(arguments),
        Command::Stability(arguments) => stability::execute(arguments),
        Command::Bench(arguments) => bench::execute(arguments),
        #[cfg(target_os = "linux")]
        Command::PerfServer(arguments) => perf::serve(registry, arguments),
        #[cfg(target_os = "linux")]
        Command::Perf(arguments) => perf::execute(registry, arguments),
        #[cfg(target_os = "linux")]
        Command::Parity(arguments) => parity::execute(registry, arguments),
        #[cfg(target_os = "linux")]
        Command::Emulate(arguments) => emulate::execute(registry, arguments),
        #[cfg(target_os = "linux")]
        Command::Tcp(arguments) => tcp::execute(arguments),
        #[cfg(target_os = "linux")]
        Command::Router(command) => router::execute(command),
        #[cfg(target_os = "linux")]
        Command::Shaper(arguments) => shaper::execute(arguments),
        #[cfg(target_os = "linux")]
        Command::QuinnHosts(arguments) => quinn_hosts::execute(registry, arguments),
        #[cfg(not(target_os = "linux"))]
        Command::PerfServer(_) => Err(linux_only::refuse("perf-server")),
        #[cfg(not(target_os = "linux"))]
        Command::Perf(_) => Err(linux_only::refuse("perf")),
        #[cfg(not(target_os = "linux"))]
        Command::Parity(_) => Err(linux_only::refuse("parity")),
        #[cfg(not(target_os = "linux"))]
        Command::Emulate(_) => Err(linux_only::refuse("emulate")),
        #[cfg(not(target_os = "linux"))]
        Command::Tcp(_) => Err(linux_only::refuse("tcp")),
        #[cfg(not(target_os = "linux"))]
        Command::Router(_) => Err(linux_only::refuse("router")),
        #[cfg(not(target_os = "linux"))]
        Command::Shaper(_) => Err(linux_only::refuse("shaper")),
        Command::Completions(arguments) => distribution::completions(arguments),
        Command::Man(arguments) => distribution::man(arguments),
    }
}
