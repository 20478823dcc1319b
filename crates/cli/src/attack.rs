//! `attack`: the link on which a scheme does worst.

use std::path::PathBuf;
use std::time::Instant;

use brakelight_lab::attack::{self, Attack, Bounds, Objective, Space, Written, attack, attack_into};
use brakelight_lab::{Simulator, text::attack as words};
use brakelight_registry::Registry;
use brakelight_scenario::documents::Attacked;
use brakelight_scenario::scheme::Scheme;
use clap::Args;

use crate::arguments::{DocumentFormat, human, seed};
use crate::failure::Failure;
use crate::progress::Bar;
use crate::{origin, output, text};

/// `attack`.
#[derive(Clone, Debug, Args)]
pub struct Arguments {
    /// The scheme to attack
    #[arg(value_name = "SCHEME")]
    pub scheme: String,
    /// What to compare it with: the best of a list of schemes or, where two flows share the link, the other
    /// flow [default: PK-ABC, which knows the future; for two flows, the same scheme]
    #[arg(long, value_name = "SCHEME")]
    pub against: Option<String>,
    /// What to make as bad as possible: delay, longest, waste, unfair, loss or starve
    #[arg(long, value_name = "NAME", default_value = "delay", value_parser = human::<Objective>)]
    pub objective: Objective,
    /// What the search may change: cellular, steps, delay, cross or mixed
    #[arg(long, value_name = "NAME", default_value = "cellular", value_parser = human::<Space>)]
    pub space: Space,
    /// The bounds of the search, such as `rate=1Mbps..24Mbps,rtt=40ms` [default: as printed]
    #[arg(long, value_name = "LIST", value_parser = human::<Bounds>)]
    pub bounds: Option<Bounds>,
    /// How many links to try
    #[arg(long, value_name = "N", default_value_t = Attack::BUDGET, value_parser = attack::budget, allow_hyphen_values = true)]
    pub budget: u32,
    /// The seed that decides which links are tried
    #[arg(long, value_name = "N", default_value = "1", value_parser = seed, allow_hyphen_values = true)]
    pub seed: u64,
    /// Write worst.toml, a figure and the journal into this folder; the same command continues there
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// How to print the result
    #[arg(long, default_value = "table", value_enum)]
    pub format: DocumentFormat,
}

/// Runs the command.
pub fn execute(registry: &Registry, arguments: &Arguments) -> Result<(), Failure> {
    let against =
        arguments.against.as_ref().map(|list| Scheme::parse_list_with(registry, list)).transpose()?;
    let request = Attack {
        against: against.unwrap_or_default(),
        objective: arguments.objective,
        space: arguments.space,
        bounds: arguments.bounds.clone().unwrap_or_default(),
        budget: arguments.budget,
        seed: arguments.seed,
        ..Attack::new(Scheme::parse_with(registry, &arguments.scheme)?)
    };
    let (bar, began) = (Bar::default(), Instant::now());
    let Written { found, files, removed } = match &arguments.out {
        Some(folder) => attack_into(folder, &request, &Simulator, &bar)?,
        None => Written { found: attack(&request, &bar)?, files: Vec::new(), removed: Vec::new() },
    };
    drop(bar);
    removed.iter().for_each(|path| output::say_removed(path));
    words::speed(&found, &request, began.elapsed()).iter().for_each(|speed| text::say(speed));
    files.iter().for_each(|file| text::say(&file.display().to_string()));
    match arguments.format {
        DocumentFormat::Json => {
            text::print_json(&Attacked { origin: origin::origin(request.seed), found: found.document })
        }
        DocumentFormat::Table => text::print(&words::in_words(&found.document, &text::standard_output())),
    }
}
