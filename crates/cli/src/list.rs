//! `list`: the registry, with defaults and sources.

use brakelight_lab::listing;
use brakelight_registry::Registry;

use crate::arguments::{Format, Kind, List};
use crate::failure::Failure;
use crate::text;

/// Runs the command.
pub fn execute(registry: &Registry, arguments: &List) -> Result<(), Failure> {
    let listing = match arguments.kind {
        Kind::Schemes => listing::schemes(registry),
        Kind::Controllers => listing::controllers(registry),
        Kind::Queues => listing::queues(registry),
        Kind::Feedbacks => listing::feedbacks(registry),
        Kind::Elements => listing::elements(registry),
        Kind::Radios => listing::radios(registry),
        Kind::Setters => listing::setters(),
        Kind::Applications => listing::applications(registry),
        Kind::Hosts => listing::hosts(registry),
        Kind::Traces => listing::traces()?,
        Kind::Claims => listing::claims()?,
    };
    match arguments.format {
        Format::Json => text::print_json(&listing.document()),
        Format::Csv => text::print(&listing.csv()),
        Format::Table => text::print(&listing.in_words(&text::standard_output())),
    }
}
