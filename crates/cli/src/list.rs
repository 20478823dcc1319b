//! `list`: the registry, with defaults and sources.

use brakelight_lab::listing;

use crate::arguments::{Format, Kind, List};
use crate::failure::Failure;
use crate::text;

/// Runs the command.
pub fn execute(arguments: &List) -> Result<(), Failure> {
    let listing = match arguments.kind {
        Kind::Schemes => listing::schemes(),
        Kind::Controllers => listing::controllers(),
        Kind::Queues => listing::queues(),
        Kind::Feedbacks => listing::feedbacks(),
        Kind::Elements => listing::elements(),
        Kind::Radios => listing::radios(),
        Kind::Traces => listing::traces()?,
    };
    match arguments.format {
        Format::Json => text::print_json(&listing.document()),
        Format::Csv => text::print(&listing.csv()),
        Format::Table => text::print(&listing.in_words(&text::standard_output())),
    }
}
