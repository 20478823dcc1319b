//! The experiments that the project ships.

/// File name and text of every file of `experiments/`, by name.
pub const EMBEDDED: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/experiments.rs"));

/// File name and text of every file of `evaluations/`, by name, with the folder of its kit before it:
/// `rfc9743/6.3-wired.toml`. In them [`TESTED`] stands for the scheme that is evaluated, and
/// [`TESTED_BESIDE_OTHERS`] for the same where flows of another kind share its queue.
pub const EVALUATIONS: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/evaluations.rs"));

/// What stands for the scheme that is evaluated.
pub const TESTED: &str = "{tested}";

/// What stands for the scheme that is evaluated where flows of another kind share its queue: ABC's router
/// then has two queues.
pub const TESTED_BESIDE_OTHERS: &str = "{tested_beside_others}";
