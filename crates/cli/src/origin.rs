//! Where a result came from.

use brakelight_lab::origin;
use brakelight_scenario::documents::Origin;

use crate::program;

/// The commit the program was built from, where known.
pub const GIT: Option<&str> = option_env!("BRAKELIGHT_GIT");

/// The version, and the commit where known.
pub const VERSION: &str = env!("BRAKELIGHT_VERSION");

/// Returns this program, this command line, this machine.
pub fn origin(seed: u64) -> Origin {
    Origin {
        git: GIT.map(str::to_string),
        command: command(program::arguments().iter().map(|argument| argument.to_string_lossy().into_owned())),
        ..origin::origin(seed)
    }
}

/// The command line as a shell would take it, the program by its name alone.
fn command(arguments: impl Iterator<Item = String>) -> String {
    let arguments = arguments.map(|argument| quote(&argument));
    std::iter::once("brakelight".to_string()).chain(arguments).collect::<Vec<_>>().join(" ")
}

fn quote(argument: &str) -> String {
    let plain = |c: char| c.is_alphanumeric() || "-_./:,=+@%".contains(c);
    if !argument.is_empty() && argument.chars().all(plain) {
        argument.to_string()
    } else {
        format!("'{}'", argument.replace('\'', "'\\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_can_be_pasted_into_a_shell() {
        let arguments = ["compare", "--trace", "my trace's", "--schemes", "abc:delta=133ms,cubic+codel", ""];
        assert_eq!(
            command(arguments.into_iter().map(String::from)),
            "brakelight compare --trace 'my trace'\\''s' --schemes abc:delta=133ms,cubic+codel ''"
        );
    }
}
