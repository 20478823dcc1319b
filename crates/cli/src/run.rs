//! `run`: one scenario file.

use brakelight_files::folder::Folder;
use brakelight_files::system::AsInvoker;
use brakelight_lab::output::Logs;
use brakelight_lab::series::SeriesFormat;
use brakelight_lab::{Runner, Simulator, Table, figures, input, jobs, run};
use brakelight_registry::Registry;
use brakelight_scenario::scenario::Scenario;
use brakelight_scenario::trace::names::Names;
use brakelight_sim::Traces;

use crate::arguments::{self, Arena, Format};
use crate::failure::Failure;
use crate::host;
use crate::origin;
use crate::output::{self, Figures};
use crate::progress::Bar;
use crate::qlog::Log;
use crate::text;

/// Runs the command.
pub fn execute(registry: &Registry, arguments: &arguments::Run) -> Result<(), Failure> {
    let user = AsInvoker::begin();
    let mut scenario = input::scenario(registry, &arguments.scenario)?;
    let mut runner: &dyn Runner = &Simulator;
    if let Some(host) = arguments.host {
        runner = host::set(&mut scenario, host)
            .map_err(|fault| Failure::input(format!("{}: {fault}", arguments.scenario.display())))?;
    }
    // The logs that were asked for on the command line or by the scenario.
    let asked = Logs::from(arguments.logs);
    let mut logs = Logs {
        series: asked.series.or(scenario.record.series.then_some(SeriesFormat::Csv)),
        link_logs: asked.link_logs || scenario.record.link_logs,
    };
    scenario.record.series = arguments.out.is_some() || arguments.figures.is_some();
    scenario.record.link_logs = logs.link_logs && arguments.out.is_some();
    if arguments.programs.command.is_some() && arguments.on == Arena::Simulator {
        return Err(Failure::input("--command: programs run in real time; add --on emulator"));
    }
    if arguments.qlog.folder.is_some() && arguments.on == Arena::Emulator {
        return Err(Failure::input(
            "--qlog: only the simulator writes it here; leave --on emulator out, or have the programs write it",
        ));
    }
    let names = Names::from_environment().map_err(Failure::input)?;
    let traces = input::traces(&scenario, &arguments.scenario, &names)?;
    drop(user);
    let figures = Figures::at(arguments.figures.as_deref(), arguments.force)?;
    let origin = origin::origin(scenario.seed);
    let log = Log::at(&arguments.qlog, arguments.force)?;
    let (folder, table) = match arguments.on {
        Arena::Simulator => {
            if !arguments.force {
                jobs::check_cost_of(&scenario.name, &scenario, &traces)?;
            }
            let folder =
                arguments.out.as_deref().map(|out| output::folder(out, arguments.force)).transpose()?;
            (folder, run::run(&scenario, &traces, arguments.runs, runner, &Bar::default())?)
        }
        Arena::Emulator => {
            // The links' logs are written while packets pass.
            logs.link_logs = false;
            on_emulator(arguments, &scenario, &traces, &origin.command)?
        }
    };
    log.write("", &scenario, &traces, arguments.host)?;
    log.say();
    if let Some(folder) = folder {
        output::write(folder, &table, &origin, logs)?;
    }
    figures.write(|| figures::table(&table))?;
    let warnings = table.caveats.iter().cloned().chain(table.warnings());
    warnings.for_each(|warning| text::say(&format!("warning: {warning}")));
    match arguments.format {
        Format::Json => text::print_json(&table.document(origin)),
        Format::Csv => text::print(&table.csv()),
        Format::Table => text::print(&table.scenarios(&text::standard_output())),
    }?;
    Failure::of_runs(&table.failed)
}

/// Runs the scenario in real time. Returns the folder that `--out` names, and the results.
#[cfg(target_os = "linux")]
fn on_emulator(
    arguments: &arguments::Run,
    scenario: &Scenario,
    traces: &Traces,
    command: &str,
) -> Result<(Option<Folder>, Table), Failure> {
    use crate::emulated;

    // Refused before anything is made.
    let hosts = match emulated::programs(&arguments.programs)? {
        Some(hosts) => hosts,
        None => emulated::hosts_of(scenario, arguments.host)?,
    };
    emulated::check(scenario, traces, hosts.clone()).map_err(|mut error| {
        error.file = Some(arguments.scenario.display().to_string());
        error
    })?;
    emulated::check_hosted(scenario)
        .map_err(|fault| Failure::input(format!("{}: {fault}", arguments.scenario.display())))?;
    emulated::check_hosts(&hosts)?;
    let folder = arguments.out.as_deref().map(|out| output::folder(out, arguments.force)).transpose()?;
    let result = emulated::scenario(scenario, traces, &hosts, arguments.runs, folder.as_ref(), command)?;
    let table = run::table(scenario, arguments.runs, vec![result]);
    Ok((folder, emulated::describe(table, &hosts)))
}

/// Fails: the emulator needs Linux.
#[cfg(not(target_os = "linux"))]
fn on_emulator(
    _: &arguments::Run,
    _: &Scenario,
    _: &Traces,
    _: &str,
) -> Result<(Option<Folder>, Table), Failure> {
    Err(crate::linux_only::refuse("run --on emulator"))
}
