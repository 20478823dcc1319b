//! `explore`: the explorer, served to a browser on this machine.

use brakelight_explorer::Server;
use clap::Args;

use crate::failure::Failure;
use crate::text;

/// The arguments of `explore`.
#[derive(Clone, Copy, Debug, Args)]
pub struct Arguments {
    /// The port; 0 for any that is free
    #[arg(long, value_name = "N", default_value_t = 8600)]
    pub port: u16,
}

/// Runs the command, until it is interrupted.
pub fn execute(arguments: &Arguments) -> Result<(), Failure> {
    let server = Server::bind(arguments.port).map_err(Failure::input)?;
    text::print(&format!("The explorer is at {}; Ctrl-C ends it.\n", server.url()))?;
    server.run();
    Ok(())
}
