//! How far the work is, and whether to go on.

/// Receives the progress of the work and decides whether it goes on. Worker threads call it.
pub trait Progress: Sync {
    /// `steps` steps of work begin, called `what`.
    fn begin(&self, what: &str, steps: usize) {
        let _ = (what, steps);
    }

    /// One of them is done: `label`.
    fn step(&self, label: &str) {
        let _ = label;
    }

    /// Returns `true` if the work should stop. Then no further run begins, and the call returns
    /// [`Error::Cancelled`](crate::Error::Cancelled).
    fn is_cancelled(&self) -> bool {
        false
    }
}

/// Nobody watches.
impl Progress for () {}
