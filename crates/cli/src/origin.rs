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
        command: origin::command_line(&program::arguments()),
        ..origin::origin(seed)
    }
}
