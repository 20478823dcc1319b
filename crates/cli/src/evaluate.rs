//! `evaluate`: schemes judged by the criteria of a kit, or measured against a reference.

use std::path::{Path, PathBuf};

use brakelight_lab::conformance::{self, page as clouds};
use brakelight_lab::evaluate::{self, FailOn, KITS, Level, Plan, page};
use brakelight_lab::figures;
use brakelight_lab::text::{conformance as agreement, count, evaluation as words};
use brakelight_lab::{Simulator, input};
use brakelight_registry::Registry;
use brakelight_scenario::documents::Evaluation;
use brakelight_scenario::scheme::Scheme;
use brakelight_scenario::trace::names::Names;
use clap::{Args, ValueEnum};

use crate::failure::Failure;
use crate::progress::Bar;
use crate::{origin, output, text};

/// How far it goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum LevelName {
    /// A few scenarios
    Quick,
    /// All of them
    Full,
}

/// What makes the command fail, besides a regression.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum FailOnName {
    /// A failed criterion that the RFC asks for with MUST
    Must,
    /// Any failed criterion
    Any,
    /// Any failed or unsure criterion
    Unsure,
    /// Only a regression
    Regression,
}

/// How the verdicts are printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// For people
    Text,
    /// One JSON document, which `--against` reads
    Json,
    /// JUnit XML for a CI server
    Junit,
    /// A table for a pull request
    Markdown,
}

/// `evaluate`.
#[derive(Clone, Debug, Args)]
pub struct Arguments {
    /// The schemes to judge, such as `cubic` or `bbr3`
    #[arg(value_name = "SCHEME", required = true)]
    pub schemes: Vec<String>,
    /// Show how far each scheme is from this one, instead of judging it: the conformance of their clouds of
    /// throughput and delay
    #[arg(long, value_name = "SCHEME", conflicts_with_all = ["kit", "against", "fail_on"])]
    pub like: Option<String>,
    /// The criteria
    #[arg(long, value_name = "NAME", default_value = "rfc9743", value_parser = KITS)]
    pub kit: String,
    /// How far to go: a minute on two cores for each scheme, or a quarter of an hour, with ranges of rates,
    /// delays, buffers and flows
    #[arg(long, default_value = "quick", value_enum)]
    pub level: LevelName,
    /// Judge by these criteria alone: their names, or how the names begin, with commas between: `5.1.3-loss`,
    /// `7.`
    #[arg(long, value_name = "NAME", value_delimiter = ',', conflicts_with_all = ["like", "against"])]
    pub only: Vec<String>,
    /// An earlier evaluation (JSON) of the same schemes: whatever became worse than the noise is a failure
    #[arg(long, value_name = "FILE.json")]
    pub against: Option<PathBuf>,
    /// Which results give exit code 1; a regression always does
    #[arg(long, value_name = "LEVEL", default_value = "any", value_enum)]
    pub fail_on: FailOnName,
    /// Write evaluation.html, .svg, .json, .md and .xml into this folder, and the experiments that were run;
    /// with --like conformance.html, .json and .md, and the scenarios
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Write even into a folder that holds other files
    #[arg(long)]
    pub force: bool,
    /// How to print the verdicts
    #[arg(long, default_value = "text", value_enum)]
    pub format: Format,
}

impl From<LevelName> for Level {
    fn from(level: LevelName) -> Self {
        match level {
            LevelName::Quick => Level::Quick,
            LevelName::Full => Level::Full,
        }
    }
}

impl From<FailOnName> for FailOn {
    fn from(level: FailOnName) -> Self {
        match level {
            FailOnName::Must => FailOn::Must,
            FailOnName::Any => FailOn::Any,
            FailOnName::Unsure => FailOn::Unsure,
            FailOnName::Regression => FailOn::Regression,
        }
    }
}

/// Runs the command. What fails makes the command fail, after everything has been printed.
pub fn execute(registry: &Registry, arguments: &Arguments) -> Result<(), Failure> {
    let names = Names::from_environment().map_err(Failure::input)?;
    let read = |text: &String| Scheme::parse_with(registry, text);
    let schemes = arguments.schemes.iter().map(read).collect::<Result<Vec<_>, _>>()?;
    if let Some(reference) = &arguments.like {
        return compare(registry, arguments, &schemes, &read(reference)?);
    }
    let mut plan = Plan::new(registry, &arguments.kit, arguments.level.into(), &schemes)?;
    plan.only(&arguments.only).map_err(|error| Failure::input(format!("--only: {error}")))?;
    let before = arguments.against.as_deref().map(|path| baseline(path, &plan)).transpose()?;
    let folder = arguments.out.as_deref().map(|out| output::folder(out, arguments.force)).transpose()?;
    let mut evaluation = plan.run(&Simulator, &names, &Bar::default())?;
    evaluation.origin = origin::origin(1);
    if let Some((path, before)) = &before {
        evaluate::against(&mut evaluation, before).map_err(|mismatch| refuse(path, mismatch))?;
    }
    let fail_on = FailOn::from(arguments.fail_on);
    if let Some(folder) = folder {
        folder.write("evaluation.json", text::json(&evaluation)?)?;
        folder.write("evaluation.xml", words::junit(&evaluation, fail_on))?;
        folder.write("evaluation.md", words::markdown(&evaluation))?;
        folder.write("evaluation.html", page::html(&evaluation))?;
        folder.write("evaluation.svg", figures::board(&evaluation).svg())?;
        for file in plan.files() {
            folder.write(&file.name, file.contents)?;
        }
        text::say(&format!("report: {}", folder.keep()?.join("evaluation.html").display()));
    }
    match arguments.format {
        Format::Text => text::print(&words::in_words(&evaluation, &text::standard_output()))?,
        Format::Json => text::print_json(&evaluation)?,
        Format::Junit => text::print(&words::junit(&evaluation, fail_on))?,
        Format::Markdown => text::print(&words::markdown(&evaluation))?,
    }
    let criteria = || evaluation.schemes.iter().flat_map(|evaluated| &evaluated.criteria);
    match criteria().filter(|criterion| fail_on.includes(criterion)).count() {
        0 => Ok(()),
        failing => {
            let of = count(failing, "criterion fails", "criteria fail");
            Err(Failure::run(format!("{of}, of {}", criteria().count())))
        }
    }
}

/// Measures how far each scheme is from the reference.
fn compare(
    registry: &Registry,
    arguments: &Arguments,
    schemes: &[Scheme],
    reference: &Scheme,
) -> Result<(), Failure> {
    if arguments.format == Format::Junit {
        return Err(Failure::input(
            "--format junit has verdicts, and --like gives none: valid are text, json, markdown",
        ));
    }
    let plan = conformance::Plan::new(registry, reference, arguments.level.into(), schemes)?;
    let folder = arguments.out.as_deref().map(|out| output::folder(out, arguments.force)).transpose()?;
    let mut measured = plan.run(&Simulator, &Bar::default())?;
    measured.origin = origin::origin(1);
    if let Some(folder) = folder {
        folder.write("conformance.json", text::json(&measured)?)?;
        folder.write("conformance.md", agreement::markdown(&measured))?;
        folder.write("conformance.html", clouds::html(&measured))?;
        for file in plan.files() {
            folder.write(&file.name, file.contents)?;
        }
        text::say(&format!("report: {}", folder.keep()?.join("conformance.html").display()));
    }
    match arguments.format {
        Format::Json => text::print_json(&measured)?,
        Format::Markdown => text::print(&agreement::markdown(&measured))?,
        Format::Text | Format::Junit => {
            text::print(&agreement::in_words(&measured, &text::standard_output()))?;
        }
    }
    let failed: Vec<&str> = measured
        .schemes
        .iter()
        .filter(|scheme| scheme.cells.iter().any(|cell| cell.conformance.is_none()))
        .map(|scheme| scheme.scheme.as_str())
        .collect();
    match failed.as_slice() {
        [] => Ok(()),
        failed => {
            Err(Failure::run(format!("on some links there is no conformance of {}", failed.join(", "))))
        }
    }
}

/// Reads the evaluation to compare with, before anything runs.
fn baseline<'p>(path: &'p Path, plan: &Plan) -> Result<(&'p Path, Evaluation), Failure> {
    let text = input::text(path, "an evaluation")?;
    let before: Evaluation = serde_json::from_str(&text).map_err(|error| refuse(path, error))?;
    plan.fits(&before).map_err(|mismatch| refuse(path, mismatch))?;
    Ok((path, before))
}

fn refuse(path: &Path, reason: impl std::fmt::Display) -> Failure {
    Failure::input(format!("--against `{}`: {reason}", path.display()))
}
