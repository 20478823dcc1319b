//! `--meter`: how both directions are doing, while they are at it. One line that is drawn again and again
//! where standard error is a terminal, one line a second where it is not.

use std::io::{self, IsTerminal, Write};
use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use brakelight_emulator::meter::{Counts, Live, Sample};

use crate::text::{number, number_or_dash};

/// A display, which ends when it is dropped.
#[derive(Debug)]
pub struct Display {
    end: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Display {
    /// Shows the way up and the way down, in a thread of its own.
    pub fn start(live: [Arc<Live>; 2]) -> io::Result<Self> {
        let (end, ended) = channel::<()>();
        let terminal = io::stderr().is_terminal();
        let every = Duration::from_millis(if terminal { 200 } else { 1000 });
        let body = move || {
            let mut before = live.each_ref().map(|live| live.counts());
            while ended.recv_timeout(every) == Err(RecvTimeoutError::Timeout) {
                let now = live.each_ref().map(|live| live.counts());
                let late = live.each_ref().map(|live| live.take_latest()).into_iter().max();
                let line = line(&now, &before, late.unwrap_or_default().as_millis_f64());
                before = now;
                draw(&line, terminal);
            }
            if terminal {
                draw("", true);
            }
        };
        let thread = std::thread::Builder::new().name("meter".to_string()).spawn(body)?;
        Ok(Display { end: Some(end), thread: Some(thread) })
    }
}

impl Drop for Display {
    fn drop(&mut self) {
        self.end = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn draw(line: &str, terminal: bool) {
    // The line is cleared, written, and the cursor left at its beginning, where the command's next line
    // replaces it.
    let text = if terminal { format!("\r\x1b[2K{line}\r") } else { format!("{line}\n") };
    let mut error = io::stderr().lock();
    let _ = error.write_all(text.as_bytes()).and_then(|()| error.flush());
}

fn line(now: &[Counts; 2], before: &[Counts; 2], late_ms: f64) -> String {
    let sample = |index: usize| now[index].since(&before[index]);
    format!("up {}  down {}  late {} ms", words(&sample(0)), words(&sample(1)), number(late_ms))
}

fn words(sample: &Sample) -> String {
    let accelerate = match sample.accelerate_fraction {
        Some(fraction) => format!(", {:.0} % accelerate", fraction * 100.0),
        None => String::new(),
    };
    let dropped = if sample.dropped > 0 { format!(", {} dropped", sample.dropped) } else { String::new() };
    format!(
        "{} of {} Mbit/s, {} ms queued{accelerate}{dropped}",
        number(sample.throughput_mbps),
        number(sample.capacity_mbps),
        number_or_dash(sample.queueing_delay_ms),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_says_what_happened_since_the_last() {
        let before = Counts::default();
        let up = Counts {
            time_nanos: 1_000_000_000,
            capacity: 1_500_000,
            bytes: 750_000,
            packets: 500,
            queued_nanos: 5_000_000_000,
            accelerate: 300,
            brake: 100,
            dropped: 3,
        };
        assert_eq!(
            line(&[up, before], &[before, before], 0.071),
            "up 6.00 of 12.0 Mbit/s, 10.0 ms queued, 75 % accelerate, 3 dropped  down 0.00 of 0.00 Mbit/s, – ms queued  late 0.07 ms"
        );
    }
}
