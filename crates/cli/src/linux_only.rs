//! Stand-ins for the commands that need Linux, on other systems: each fails with one line that says so.

use std::ffi::OsString;

use clap::Args;

use crate::failure::Failure;

/// The arguments of a command that this system does not have. Any are accepted, so that the command gets to
/// say why it fails.
#[derive(Clone, Debug, Args)]
pub struct AnyArguments {
    /// Ignored
    #[arg(hide = true, trailing_var_arg = true, allow_hyphen_values = true)]
    ignored: Vec<OsString>,
}

/// Returns the failure of `command`, which needs Linux: exit code 2.
pub fn refuse(command: &str) -> Failure {
    Failure::input(format!(
        "{command}: this needs Linux, and this program was built for {}; simulation works here: see `brakelight --help`",
        std::env::consts::OS
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Debug, Parser)]
    enum Command {
        Emulate(AnyArguments),
    }

    #[test]
    fn a_command_that_needs_linux_accepts_any_arguments_and_fails_in_one_line() {
        let line = ["brakelight", "emulate", "--up", "12Mbps", "--", "sh", "-c", "true"];
        let Command::Emulate(arguments) = Command::try_parse_from(line).unwrap();
        assert_eq!(arguments.ignored.len(), 6);
        let failure = refuse("emulate");
        assert_eq!(failure.code, 2);
        assert!(failure.message.starts_with("emulate: this needs Linux"), "{failure}");
        assert!(!failure.message.contains('\n'));
    }
}
