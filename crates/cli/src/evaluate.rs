//! `evaluate`: schemes judged by the criteria of a kit.

use std::path::{Path, PathBuf};

use brakelight_lab::evaluate::{self, FailOn, KITS, Level, Plan, page};
use brakelight_lab::figures;
use brakelight_lab::text::{count, evaluation as words};
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
    /// A minute on two cores
    Quick,
    /// Also ranges of rates, delays, buffers and flows: a quarter of an hour
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
    /// The criteria
    #[arg(long, value_name = "NAME", default_value = "rfc9743", value_parser = KITS)]
    pub kit: String,
    /// How far to go
    #[arg(long, default_value = "quick", value_enum)]
    pub level: LevelName,
    /// An earlier evaluation (JSON) of the same schemes: whatever became worse than the noise is a failure
    #[arg(long, value_name = "FILE.json")]
    pub against: Option<PathBuf>,
    /// Which results give exit code 1; a regression always does
    #[arg(long, value_name = "LEVEL", default_value = "any", value_enum)]
    pub fail_on: FailOnName,
    /// Write evaluation.html, .svg, .json, .md and .xml into this folder, and the experiments that were run
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
    let plan = Plan::new(registry, &arguments.kit, arguments.level.into(), &schemes)?;
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
