//! `completions` and `man`: what a package installs beside the command. Both are made from the declaration of
//! the command line, so they always agree with `--help`.

use std::path::PathBuf;

use clap::{Args, CommandFactory};
use clap_complete::Shell;

use crate::command_line::Cli;
use crate::failure::Failure;
use crate::output;
use crate::text;

/// Arguments of `completions`.
#[derive(Clone, Debug, Args)]
pub struct Completions {
    /// The shell that reads them
    #[arg(value_name = "SHELL", value_enum)]
    pub shell: Shell,
}

/// Arguments of `man`.
#[derive(Clone, Debug, Args)]
pub struct Man {
    /// Folder for one page per command, such as `brakelight-compare.1`; pages that are there are replaced
    #[arg(value_name = "DIR")]
    pub folder: PathBuf,
}

/// Prints the completion script of a shell.
pub fn completions(arguments: &Completions) -> Result<(), Failure> {
    text::print(&script(arguments.shell))
}

/// Writes a manual page for the command and one for each of its commands.
pub fn man(arguments: &Man) -> Result<(), Failure> {
    let folder = output::folder(&arguments.folder, true)?;
    for page in pages()? {
        folder.write(&page.file, page.contents)?;
    }
    folder.keep()?;
    Ok(())
}

/// The completion script of a shell.
fn script(shell: Shell) -> String {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "brakelight", &mut script);
    // Lossless: the script is made of the command line's own words, which are UTF-8.
    String::from_utf8_lossy(&script).into_owned()
}

/// A manual page.
struct Page {
    /// Its file's name, with the section: `brakelight-trace-show.1`.
    file: String,
    /// In roff.
    contents: Vec<u8>,
}

/// The page of the command, then those of its commands and theirs, hidden ones aside.
fn pages() -> Result<Vec<Page>, Failure> {
    let mut command = Cli::command();
    // Gives every command the name that it has on the command line.
    command.build();
    let mut pages = Vec::new();
    let mut waiting = vec![command];
    while let Some(command) = waiting.pop() {
        // `help` is shown by every page.
        let shown = |command: &&clap::Command| !command.is_hide_set() && command.get_name() != "help";
        waiting.extend(command.get_subcommands().filter(shown).cloned());
        let page = clap_mangen::Man::new(command);
        let mut contents = Vec::new();
        page.render(&mut contents).map_err(Failure::run)?;
        pages.push(Page { file: page.get_filename(), contents });
    }
    Ok(pages)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    use clap::ValueEnum;

    /// Every command that is shown, with its full name: `trace show`.
    fn commands() -> Vec<String> {
        fn below(command: &clap::Command, name: &str, found: &mut Vec<String>) {
            for command in command.get_subcommands().filter(|command| !command.is_hide_set()) {
                let name = format!("{name} {}", command.get_name());
                found.push(name.trim().to_string());
                below(command, &name, found);
            }
        }
        let mut found = Vec::new();
        below(&Cli::command(), "", &mut found);
        found
    }

    #[test]
    fn every_shell_has_a_script_that_knows_every_command() {
        let commands = commands();
        assert!(commands.contains(&"trace show".to_string()), "{commands:?}");
        for shell in Shell::value_variants() {
            let script = script(*shell);
            for command in &commands {
                let last = command.rsplit(' ').next().unwrap();
                assert!(script.contains(last), "{shell}: no `{command}`");
            }
            // What is printed is what was generated: it holds nothing that printing would replace.
            assert_eq!(brakelight_lab::text::visible::visible(&script), script, "{shell}");
        }
    }

    #[test]
    fn every_command_that_is_shown_has_a_page_and_no_other() {
        let pages = pages().ok().unwrap();
        let files: BTreeSet<String> = pages.iter().map(|page| page.file.clone()).collect();
        let expected: BTreeSet<String> = commands()
            .iter()
            .map(|command| format!("brakelight-{}.1", command.replace(' ', "-")))
            .chain(["brakelight.1".to_string()])
            .collect();
        assert_eq!(files, expected);
        assert_eq!(pages.len(), files.len(), "no page is written twice");
    }

    #[test]
    fn a_page_has_the_options_of_its_command() {
        let pages = pages().ok().unwrap();
        let page = pages.iter().find(|page| page.file == "brakelight-compare.1").unwrap();
        let page = String::from_utf8_lossy(&page.contents);
        // Hyphens are escaped in roff.
        for option in [r"\-\-schemes", r"\-\-buffer", r"\-\-out"] {
            assert!(page.contains(option), "no {option} in {page}");
        }
    }
}
