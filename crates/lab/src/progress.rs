//! How far the work is, and whether to go on.

/// Is told how far the work is, and asked whether to go on. Calls come from the threads that do the work.
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
