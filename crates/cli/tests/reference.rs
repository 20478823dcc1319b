//! The pages of reference that are made from the code or held to it: every command with its options, every
//! column of a table of runs, and every key of a scenario. `BRAKELIGHT_BLESS=1` writes the page of commands
//! again.
//!
//! The page is that of a build with Parquet on Linux, as `make install` makes it.
#![cfg(all(target_os = "linux", feature = "parquet"))]

use std::collections::BTreeSet;
use std::fmt::Write;
use std::process;

use brakelight_cli::command_line::Cli;
use clap::{Arg, Command, CommandFactory};

/// Options of every command, which the page explains once.
const EVERYWHERE: &[&str] = &["quiet", "verbose", "help", "version"];

/// A text in a cell of a table.
fn cell(text: &str) -> String {
    // What stands in `<` and `>` outside code is no tag.
    let parts = text.split('`').enumerate();
    let parts =
        parts.map(|(place, part)| if place % 2 == 0 { part.replace('<', "&lt;") } else { part.into() });
    let text = parts.collect::<Vec<String>>().join("`");
    text.split_whitespace().collect::<Vec<_>>().join(" ").replace('|', "\\|")
}

/// What an argument does, the values that it may have, and its default.
fn does(argument: &Arg) -> String {
    let mut text = argument.get_help().map(ToString::to_string).unwrap_or_default();
    if argument.get_action().takes_values() {
        let values = argument.get_possible_values();
        if !values.is_empty() && !argument.is_hide_possible_values_set() {
            let names: Vec<String> = values.iter().map(|value| format!("`{}`", value.get_name())).collect();
            let _ = write!(text, ". One of {}", names.join(", "));
        }
        let defaults: Vec<_> =
            argument.get_default_values().iter().map(|value| value.to_string_lossy()).collect();
        if !defaults.is_empty() && !argument.is_hide_default_value_set() {
            let _ = write!(text, " [default: {}]", defaults.join(","));
        }
    }
    cell(&text)
}

/// A command without commands below it: its name, what it does, how it is called, and its options.
fn section(command: &mut Command, page: &mut String) {
    let usage = command.render_usage().to_string();
    let usage = usage.trim_start_matches("Usage:").trim().to_string();
    let name = command.get_bin_name().unwrap_or_default().to_string();
    let about = command.get_about().map(ToString::to_string).unwrap_or_default();
    let _ = write!(page, "### `{name}`\n\n{about}.\n\n```text\n{usage}\n```\n\n");
    let own = |argument: &&Arg| !EVERYWHERE.contains(&argument.get_id().as_str()) && !argument.is_hide_set();
    let rows: Vec<String> = command
        .get_arguments()
        .filter(own)
        .map(|argument| format!("| `{}` | {} |\n", argument.to_string().replace('|', "\\|"), does(argument)))
        .collect();
    if !rows.is_empty() {
        let _ = write!(page, "| option | what it does |\n|---|---|\n{}\n", rows.concat());
    }
}

fn sections(command: &mut Command, page: &mut String) {
    let shown = |below: &&mut Command| below.get_name() != "help" && !below.is_hide_set();
    let mut below: Vec<&mut Command> = command.get_subcommands_mut().filter(shown).collect();
    if below.is_empty() {
        section(command, page);
        return;
    }
    below.iter_mut().for_each(|below| sections(below, page));
}

#[test]
fn the_page_of_commands_has_every_command_and_option() {
    let mut command = Cli::command();
    command.build();
    let mut page = "\n".to_string();
    sections(&mut command, &mut page);
    assert!(page.matches("### ").count() > 25, "{page}");
    brakelight_testkit::part::check("../commands", "commands", &page);
}

/// What the command prints.
fn printed(arguments: &str) -> String {
    let mut command = process::Command::new(env!("CARGO_BIN_EXE_brakelight"));
    let output = command.args(arguments.split(' ')).output().expect("the command runs");
    String::from_utf8(output.stdout).expect("text")
}

/// The names of all properties in a JSON Schema.
fn keys(schema: &serde_json::Value, found: &mut BTreeSet<String>) {
    let below: Vec<&serde_json::Value> = match schema {
        serde_json::Value::Object(object) => {
            let properties = object.get("properties").and_then(serde_json::Value::as_object);
            found.extend(properties.into_iter().flat_map(|properties| properties.keys().cloned()));
            object.values().collect()
        }
        serde_json::Value::Array(array) => array.iter().collect(),
        _ => Vec::new(),
    };
    below.into_iter().for_each(|below| keys(below, found));
}

#[test]
fn every_key_of_a_scenario_is_explained() {
    let schema = serde_json::from_str(&printed("schema scenario")).expect("JSON");
    let mut known = BTreeSet::new();
    keys(&schema, &mut known);
    assert!(known.len() > 50, "{known:?}");
    let page = brakelight_testkit::sources::read(&["docs/scenarios.md"], &[]).remove(0).1;
    let words: BTreeSet<&str> = page.split(|c: char| !c.is_alphanumeric() && c != '_').collect();
    let missing: Vec<&String> = known.iter().filter(|key| !words.contains(key.as_str())).collect();
    assert!(missing.is_empty(), "docs/scenarios.md does not say what these keys are: {missing:?}");
}

#[test]
fn every_column_of_a_table_of_runs_is_explained() {
    let table = printed("compare --trace fixed --schemes abc --runs 1 --duration 1s --format csv");
    let columns: Vec<&str> = table.lines().next().expect("a line of names").split(',').collect();
    let page = brakelight_testkit::sources::read(&["docs/metrics.md"], &[]).remove(0).1;
    let part = page.split_once("<!-- columns -->").and_then(|(_, rest)| rest.split_once("<!-- end -->"));
    let rows = part.expect("a part with the columns").0;
    let explained: Vec<&str> = rows
        .lines()
        .filter_map(|row| row.strip_prefix("| ").and_then(|row| row.split('|').next()))
        .flat_map(|names| names.split('`').skip(1).step_by(2))
        .collect();
    assert_eq!(explained, columns, "the table of columns in docs/metrics.md, in the order of the file");
}
