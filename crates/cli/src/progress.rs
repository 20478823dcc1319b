//! A progress bar on a terminal, and nothing where nobody watches.

use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::text;

/// How far the work is.
#[derive(Debug)]
pub struct Progress(ProgressBar);

impl Progress {
    /// `steps` of work, called `what`.
    pub fn new(what: &str, steps: usize) -> Self {
        // indicatif draws nothing where standard error is no terminal.
        let bar = ProgressBar::with_draw_target(Some(steps as u64), ProgressDrawTarget::stderr());
        let style =
            ProgressStyle::with_template("{prefix} {bar:32.blue} {pos}/{len}, {eta} left  {wide_msg:.dim}")
                .expect("the template is valid");
        bar.set_style(style.progress_chars("━╸ "));
        bar.set_prefix(text::line(what));
        bar.enable_steady_tick(Duration::from_millis(200));
        Progress(bar)
    }

    /// One step is done; `which` is shown until the next.
    pub fn step(&self, which: &str) {
        self.0.set_message(text::line(which));
        self.0.inc(1);
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}
