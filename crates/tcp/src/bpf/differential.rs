//! The programs' fixed point against the core's floating point: both are told the same events, as a run of
//! the core's own sender over a link that varies, marks, loses, and times out gives them.

mod adaptive;
mod delay;
mod l4s;
mod path;
mod recovery;
mod router;
mod window;
