//! A progress bar on a terminal, and nothing where nobody watches.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use brakelight_lab::Progress;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::text;

/// How far the work is. The bar goes when this is dropped.
#[derive(Debug, Default)]
pub struct Bar(Mutex<Option<ProgressBar>>);

impl Bar {
    /// Returns `steps` of work, called `what`.
    pub fn new(what: &str, steps: usize) -> Self {
        let bar = Bar::default();
        bar.begin(what, steps);
        bar
    }

    /// Says something to people, above the bar: one line.
    pub fn say(&self, line: &str) {
        match &*self.0.lock().unwrap_or_else(PoisonError::into_inner) {
            Some(bar) => bar.suspend(|| text::say(line)),
            None => text::say(line),
        }
    }

    fn replace(&self, next: Option<ProgressBar>) {
        let mut bar = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(bar) = std::mem::replace(&mut *bar, next) {
            bar.finish_and_clear();
        }
    }
}

impl Progress for Bar {
    fn begin(&self, what: &str, steps: usize) {
        text::detail(&format!("{what}: {steps}"));
        if text::is_quiet() {
            return;
        }
        // indicatif draws nothing where standard error is no terminal.
        let bar = ProgressBar::with_draw_target(Some(steps as u64), ProgressDrawTarget::stderr());
        let style =
            ProgressStyle::with_template("{prefix} {bar:32.blue} {pos}/{len}, {eta} left  {wide_msg:.dim}")
                .expect("the template is valid");
        bar.set_style(style.progress_chars("━╸ "));
        bar.set_prefix(text::line(what));
        bar.enable_steady_tick(Duration::from_millis(200));
        self.replace(Some(bar));
    }

    fn step(&self, label: &str) {
        if let Some(bar) = &*self.0.lock().unwrap_or_else(PoisonError::into_inner) {
            bar.set_message(text::line(label));
            bar.inc(1);
            bar.suspend(|| text::detail(&format!("done: {label}")));
        }
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        self.replace(None);
    }
}
