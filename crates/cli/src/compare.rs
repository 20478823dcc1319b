//! `compare`: every scheme on every trace.

use brakelight_lab::compare::{Compare, Plan, Preset};
use brakelight_lab::series::file_name;
use brakelight_lab::{Error, Simulator, figures, schemes};
use brakelight_registry::Registry;
use brakelight_scenario::file::read_traffic;
use brakelight_scenario::scheme::Scheme;
use brakelight_scenario::trace::names::Names;

use crate::arguments::{self, Format};
use crate::failure::Failure;
use crate::origin;
use crate::output::{self, Figures};
use crate::progress::Bar;
use crate::qlog::Log;
use crate::text;

/// Runs the command.
pub fn execute(registry: &Registry, arguments: &arguments::Compare) -> Result<(), Failure> {
    let plan = plan(registry, arguments)?;
    if !arguments.force {
        plan.check_cost()?;
    }
    let log = Log::at(&arguments.qlog, arguments.force)?;
    let figures = Figures::at(arguments.figures.as_deref(), arguments.force)?;
    let folder = arguments.out.as_deref().map(|out| output::folder(out, arguments.force)).transpose()?;
    let table = plan.run(&Simulator, &Bar::default())?;
    for job in plan.jobs().iter().filter(|_| arguments.qlog.folder.is_some()) {
        log.write(&file_name(&job.label), &job.first_scenario(), plan.traces(), None)?;
    }
    log.say();
    let origin = origin::origin(arguments.seed);
    if let Some(folder) = folder {
        output::write(folder, &table, &origin, arguments.logs.into())?;
    }
    figures.write(|| figures::table(&table))?;
    // A table says its caveats itself.
    let caveats = table.caveats.iter().filter(|_| arguments.format != Format::Table).cloned();
    caveats.chain(table.warnings()).for_each(|warning| text::say(&format!("warning: {warning}")));
    match arguments.format {
        Format::Json => text::print_json(&table.document(origin)),
        Format::Csv => text::print(&table.csv()),
        Format::Table => text::print(&table.comparison(&text::standard_output())),
    }?;
    Failure::of_runs(&table.failed)
}

/// Reads and checks everything before anything runs.
fn plan(registry: &Registry, arguments: &arguments::Compare) -> Result<Plan, Failure> {
    let option = |name: &'static str| move |error| Failure::input(format!("--{name}: {error}"));
    let mut schemes = match arguments.schemes.as_deref() {
        Some(list) => schemes::parse_list(registry, list).map_err(option("schemes"))?,
        None => schemes::defaults(registry),
    };
    if let Some(can) = arguments.can {
        schemes = schemes::within(schemes, can.into());
        if schemes.is_empty() {
            return Err(Failure::input("--can: none of the schemes can be deployed by changing that alone"));
        }
    }
    let against = arguments.against.as_deref().map(|text| Scheme::parse_with(registry, text));
    let against = against.transpose().map_err(option("against"))?;
    let traffic = arguments.traffic.as_deref().map(|text| read_traffic(registry, text)).transpose();
    let traffic = traffic.map_err(|error| Failure::input(format!("--traffic: {error}")))?.unwrap_or_default();
    let request = Compare {
        traces: arguments.traces.clone(),
        schemes,
        against,
        traffic,
        rtt: arguments.rtt,
        buffer: arguments.buffer,
        reverse: arguments.reverse.clone(),
        spread: arguments.spread,
        preset: if arguments.setup.is_some() { Preset::Mahimahi } else { Preset::Suited },
        duration: arguments.duration,
        runs: arguments.runs,
        seed: arguments.seed,
        trace_offset: arguments.trace_offset,
        series: arguments.out.is_some() || arguments.figures.is_some(),
        link_logs: arguments.logs.link_logs,
    };
    let names = Names::from_environment().map_err(Failure::input)?;
    let expanded: Result<Vec<_>, _> = arguments.traces.iter().map(|given| names.expand(given)).collect();
    let traces = expanded.map_err(|error| Failure::input(format!("--trace: {error}")))?.concat();
    let request = Compare { traces, ..request };
    Plan::new(&request, &names).map_err(|error| match error {
        Error::Trace(_) | Error::SameTrace(_) => Failure::input(format!("--trace: {error}")),
        Error::ReturnTrace(error) => {
            Failure::input(format!("--reverse: {error}; a rate is written as in `12Mbps`"))
        }
        error => error.into(),
    })
}
