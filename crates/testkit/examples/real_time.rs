//! Prints the tests that wait, one a line: package, test binary (`lib` for unit tests) and name.
//!
//! ```sh
//! cargo run -q -p brakelight-testkit --example real_time
//! ```

use std::io::Write as _;

fn main() -> std::io::Result<()> {
    let mut out = std::io::stdout().lock();
    for entry in brakelight_testkit::real_time::REAL_TIME {
        let (package, binary, prefix) = entry.place();
        for test in entry.tests {
            writeln!(out, "{package} {binary} {prefix}{test}")?;
        }
    }
    Ok(())
}
