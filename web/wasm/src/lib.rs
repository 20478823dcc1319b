//! The simulator as the explorer's workers call it: requests in JSON, answers in JSON.
//!
//! | module | holds |
//! |---|---|
//! | [`workbench`] | what a worker keeps between requests, and every request |
//! | [`setup`] | a scenario: as text, or as the choices of the page |
//! | [`job`] | one run from beginning to end, in steps |
//! | [`watch`] | a run that is looked into: flows, links, packets |
//! | [`parting`] | where two schemes first do something different |
//! | [`experiments`] | the papers' claims and their scenarios |
//! | [`table`] | outcomes as files of tables: CSV, Arrow |
//! | [`traces`] | traces by name: embedded, from files, from recipes |
//!
//! # The boundary
//!
//! A worker calls three functions. Two buffers go in, one comes out:
//!
//! 1. `room(which, length)` returns the address to write a request (`which` = 0) or a file (1) to;
//! 2. `answer()` answers the request, and returns the length of the answer;
//! 3. `text()` returns the address of the answer, which is valid until the next `room` or `answer`.
//!
//! Addresses count from the beginning of the module's memory, which moves when it grows.

use std::sync::{Mutex, MutexGuard, PoisonError};

pub mod decision;
pub mod experiments;
pub mod job;
pub mod parting;
pub mod setup;
pub mod table;
pub mod traces;
pub mod watch;
pub mod workbench;

use workbench::Workbench;

/// What goes in and comes out, and what is kept.
struct Boundary {
    request: Vec<u8>,
    file: Vec<u8>,
    answer: String,
    workbench: Workbench,
}

static BOUNDARY: Mutex<Boundary> = Mutex::new(Boundary {
    request: Vec::new(),
    file: Vec::new(),
    answer: String::new(),
    workbench: Workbench::new(),
});

fn boundary() -> MutexGuard<'static, Boundary> {
    BOUNDARY.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Makes room for `length` bytes of a request (`which` = 0) or a file (any other). Returns the address to
/// write them to.
#[unsafe(no_mangle)]
pub extern "C" fn room(which: u32, length: usize) -> *mut u8 {
    let mut boundary = boundary();
    let buffer = if which == 0 { &mut boundary.request } else { &mut boundary.file };
    buffer.clear();
    buffer.resize(length, 0);
    buffer.as_mut_ptr()
}

/// Answers the request that was written. Returns the length of the answer in bytes.
#[unsafe(no_mangle)]
pub extern "C" fn answer() -> usize {
    let mut boundary = boundary();
    let Boundary { request, file, answer, workbench } = &mut *boundary;
    *answer = workbench.answer(&std::mem::take(request), &std::mem::take(file));
    answer.len()
}

/// Returns the address of what [`answer`] left.
#[unsafe(no_mangle)]
pub extern "C" fn text() -> *const u8 {
    boundary().answer.as_ptr()
}
