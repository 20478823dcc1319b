//! The words of `--help`, which are those of the manual pages: plain, spelled one way, and in sentences that
//! can be read at once.

use brakelight_cli::command_line::Cli;
use brakelight_testkit::prose::wrong_with;
use clap::{Arg, Command, CommandFactory};

/// The texts of an argument: its own, and those of the values that it may have.
fn of_argument(argument: &Arg) -> Vec<String> {
    let own = [argument.get_help(), argument.get_long_help()].into_iter().flatten().map(ToString::to_string);
    let values = argument.get_possible_values();
    let values = values.iter().filter_map(|value| value.get_help()).map(ToString::to_string);
    own.chain(values).collect()
}

/// The texts of a command and of all below it, each with the command's name.
fn texts(command: &Command, above: &str, found: &mut Vec<(String, String)>) {
    let name = format!("{above} {}", command.get_name()).trim().to_string();
    let own = [
        command.get_about(),
        command.get_long_about(),
        command.get_before_help(),
        command.get_before_long_help(),
        command.get_after_help(),
        command.get_after_long_help(),
    ];
    found.extend(own.into_iter().flatten().map(|text| (name.clone(), text.to_string())));
    for argument in command.get_arguments() {
        let name = format!("{name} {}", argument.get_id());
        found.extend(of_argument(argument).into_iter().map(|text| (name.clone(), text)));
    }
    for below in command.get_subcommands() {
        texts(below, &name, found);
    }
}

/// The sentences of a help text: defaults in brackets are sentences of their own.
fn wrong(text: &str) -> Vec<String> {
    text.replace(" [default: ", ". Default: ").lines().flat_map(wrong_with).collect()
}

#[test]
fn every_help_text_is_plain_and_short() {
    let mut found = Vec::new();
    texts(&Cli::command(), "", &mut found);
    assert!(found.len() > 300, "{} texts", found.len());
    let wrong: Vec<String> = found
        .iter()
        .flat_map(|(name, text)| wrong(text).into_iter().map(move |wrong| format!("{name}: {wrong}")))
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn long_and_british_help_is_found() {
    let argument = Arg::new("a").help("The colour of the line");
    let mut found = Vec::new();
    texts(&Command::new("x").about("word ".repeat(40)).arg(argument), "", &mut found);
    let wrong: Vec<usize> = found.iter().map(|(_, text)| wrong(text).len()).collect();
    assert_eq!((found.len(), wrong), (2, vec![1, 1]));
}
