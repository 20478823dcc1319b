//! The `brakelight` command.
fn main() {}
