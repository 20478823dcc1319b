//! `reproduce`: the papers' claims, run and judged.

use brakelight_lab::reproduce::{Errors, Judge, Quick, named, tallies, tally};
use brakelight_lab::text::claims;
use brakelight_lab::text::count;
use brakelight_lab::{Runner, Simulator, figures};
use brakelight_registry::Registry;
use brakelight_scenario::documents::{Claims, Verdict};
use brakelight_scenario::trace::names::Names;

use crate::arguments::{ClaimFormat, Reproduce};
use crate::failure::Failure;
use crate::host;
use crate::origin;
use crate::output::{self, Figures};
use crate::progress::Bar;
use crate::text;

/// Runs the command. A claim that fails makes the command fail, after everything has been printed.
pub fn execute(registry: &Registry, arguments: &Reproduce) -> Result<(), Failure> {
    let names = Names::from_environment().map_err(Failure::input)?;
    let mut experiments = named(registry, &arguments.ids)?;
    let mut note = None;
    if arguments.quick {
        let quick = Quick::of(experiments, &names)?;
        (note, experiments) = (Some(quick.note()), quick.experiments);
    }
    let mut runner: &dyn Runner = &Simulator;
    if let Some(host) = arguments.host {
        for experiment in &mut experiments {
            for job in &mut experiment.jobs {
                runner = host::set(&mut job.scenario, host)
                    .map_err(|fault| Failure::input(format!("{}: {fault}", experiment.id)))?;
            }
        }
    }
    let figures = Figures::at(arguments.figures.as_deref(), arguments.force)?;
    let folder = arguments.out.as_deref().map(|out| output::folder(out, arguments.force)).transpose()?;
    let judge = Judge { runner, names: &names, progress: &Bar::default(), any_cost: arguments.force };
    let judged = judge.judged(&experiments)?;
    if let Some(folder) = folder {
        for file in judged.files()? {
            folder.write(&file.name, file.contents)?;
        }
        text::say(&format!("rows: {}", folder.keep()?.join("runs.csv").display()));
    }
    figures.write(|| figures::judged(&experiments, &judged))?;
    let summary = (!judged.claims.is_empty()).then(|| tally(&experiments, &judged.claims));
    let document = Claims {
        origin: origin::origin(1),
        experiments: tallies(&experiments, &judged.claims),
        summary,
        claims: judged.claims,
    };
    match arguments.format {
        ClaimFormat::Json => text::print_json(&document)?,
        ClaimFormat::Markdown => text::print(&claims::markdown(&experiments, &document.claims))?,
        ClaimFormat::Table => {
            let errors = Errors::of(&experiments, &document.claims);
            let errors = errors.map(|errors| errors.in_words() + "\n").unwrap_or_default();
            text::print(&(claims::in_words(&document.claims, &text::standard_output()) + &errors))?;
        }
    }
    if let Some(note) = &note {
        text::say(note);
    }
    let failing = document.claims.iter().filter(|claim| claim.verdict == Verdict::Fails).count();
    match failing {
        0 => Ok(()),
        _ => {
            let (of, all) = (count(failing, "claim fails", "claims fail"), document.claims.len());
            Err(Failure::run(format!("{of}, of {all}")))
        }
    }
}
