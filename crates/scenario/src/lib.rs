//! What to run, as data.
