//! Long work: in a thread of its own, with the GIL released, watched from the thread that asked for it. So
//! Ctrl-C is seen within a twentieth of a second, and progress is told in the caller's thread.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration as Wait;

use brakelight::core::time::{Duration, Time};
use brakelight::lab::error::Cause;
use brakelight::lab::{Error, Progress, Runner};
use brakelight::scenario::outcome::Outcome;
use brakelight::scenario::scenario::Scenario;
use brakelight::sim::{Simulation, Traces};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use rayon::{ThreadPool, ThreadPoolBuilder};

use crate::error::{self, failed};
use crate::registry::Failures;

/// How often signals are looked for.
const LOOK: Wait = Wait::from_millis(50);

/// Simulated time between two looks at whether to stop.
const STEP: Duration = Duration::from_secs(1);

/// What the work says while it goes on.
enum News {
    Begin(String, usize),
    Step(String),
    Done,
}

/// Whether the work should stop, and whom to tell how far it is.
pub struct Watch {
    cancelled: AtomicBool,
    /// Of the algorithms in Python that the work runs.
    failures: Failures,
    news: Sender<News>,
}

impl Watch {
    fn tell(&self, news: News) {
        // Nobody listens any more once the work is given up.
        let _ = self.news.send(news);
    }
}

impl Progress for Watch {
    fn begin(&self, what: &str, steps: usize) {
        self.tell(News::Begin(what.to_string(), steps));
    }

    fn step(&self, label: &str) {
        self.tell(News::Step(label.to_string()));
    }

    fn is_cancelled(&self) -> bool {
        self.cancelled.load(Ordering::Relaxed) || self.failures.any()
    }
}

/// The simulator with its modelled hosts, which stops in the middle of a run when it should.
pub struct Interruptible<'a>(pub &'a Watch);

impl Runner for Interruptible<'_> {
    fn run(&self, scenario: &Scenario, traces: &Traces) -> Result<Outcome, Cause> {
        let mut simulation = Simulation::new(scenario, traces)?;
        let end = Time::ZERO + scenario.duration;
        // The outcome does not depend on the steps.
        while simulation.now() < end {
            if self.0.is_cancelled() {
                return Err("cancelled".into());
            }
            simulation.advance((simulation.now() + STEP).min(end));
        }
        Ok(simulation.finish()?)
    }
}

/// More threads than any machine has processors for work of this kind.
const MOST_THREADS: usize = 256;

/// The threads of a process.
struct Pool {
    process: u32,
    threads: Arc<ThreadPool>,
}

/// The threads that runs go on in. A process that was forked has the pool of its parent without the threads,
/// and whoever gave it work would wait for ever: there is another pool for every process. It is locked with
/// the GIL alone, without which nobody forks.
static POOL: Mutex<Option<Pool>> = Mutex::new(None);

/// Returns the threads of this process.
pub fn pool(_: Python<'_>) -> PyResult<Arc<ThreadPool>> {
    let process = std::process::id();
    let mut pool = POOL.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(Pool { threads, .. }) = pool.as_ref().filter(|pool| pool.process == process) {
        return Ok(threads.clone());
    }
    let asked = std::env::var("RAYON_NUM_THREADS").ok().and_then(|text| text.parse::<usize>().ok());
    // None stand for as many as there are processors.
    let builder = ThreadPoolBuilder::new().num_threads(asked.unwrap_or(0).min(MOST_THREADS));
    let builder = builder.spawn_handler(|worker| {
        // Python has a state for each thread that calls it. Without this outer call it would make and unmake one
        // with each call of an algorithm, which took five times as long as the call.
        let body = move || Python::attach(|py| py.detach(|| worker.run()));
        thread::Builder::new().spawn(body).map(drop)
    });
    let threads = Arc::new(builder.build().map_err(failed)?);
    // Whoever lets go of a pool waits for its threads.
    std::mem::forget(pool.replace(Pool { process, threads: threads.clone() }));
    Ok(threads)
}

/// Does `work` without the GIL, and tells `progress` how far it is: an object with `begin(what, steps)` and
/// `step(label)`, or nothing. Raises what a signal handler or an algorithm in Python raises, once the work
/// has stopped.
pub fn watched<T: Send>(
    py: Python<'_>,
    progress: Option<&Bound<'_, PyAny>>,
    failures: &Failures,
    work: impl FnOnce(&Watch) -> Result<T, Error> + Send,
) -> PyResult<T> {
    let (news, heard) = channel();
    let heard = Mutex::new(heard);
    let watch = Watch { cancelled: AtomicBool::new(false), failures: failures.clone(), news };
    let pool = pool(py)?;
    thread::scope(|scope| {
        let working = scope.spawn(|| {
            // Also if it panics.
            let _done = Done(&watch);
            pool.install(|| work(&watch))
        });
        let interrupted = listen(py, progress, &heard, &watch);
        let done = py.detach(|| working.join());
        interrupted?;
        if let Some(failure) = failures.take() {
            return Err(failure);
        }
        match done {
            Ok(result) => result.map_err(error::of_lab),
            Err(panic) => Err(PyRuntimeError::new_err(words(&panic))),
        }
    })
}

/// Listens until the work is done, and returns the first exception of a signal handler or of `progress`.
fn listen(
    py: Python<'_>,
    progress: Option<&Bound<'_, PyAny>>,
    heard: &Mutex<Receiver<News>>,
    watch: &Watch,
) -> PyResult<()> {
    let mut first = Ok(());
    loop {
        let news = py.detach(|| heard.lock().unwrap_or_else(PoisonError::into_inner).recv_timeout(LOOK));
        let told = match (news, progress) {
            (Ok(News::Done) | Err(RecvTimeoutError::Disconnected), _) => return first,
            (Ok(News::Begin(what, steps)), Some(to)) => to.call_method1("begin", (what, steps)).map(drop),
            (Ok(News::Step(label)), Some(to)) => to.call_method1("step", (label,)).map(drop),
            _ => Ok(()),
        };
        let told = told.and_then(|()| py.check_signals());
        if first.is_ok() && told.is_err() {
            watch.cancelled.store(true, Ordering::Relaxed);
            first = told;
        }
    }
}

struct Done<'a>(&'a Watch);

impl Drop for Done<'_> {
    fn drop(&mut self) {
        self.0.tell(News::Done);
    }
}

/// What a panic said.
fn words(panic: &Box<dyn std::any::Any + Send>) -> String {
    let said = panic.downcast_ref::<String>().cloned();
    said.or_else(|| panic.downcast_ref::<&str>().map(ToString::to_string)).unwrap_or_else(|| "a panic".into())
}
