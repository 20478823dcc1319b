//! `--meter`: how both directions are doing, while they are at it. One line that is drawn again and again
//! where standard error is a terminal, one line a second where it is not.

use std::io::{self, IsTerminal, Write};
use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use brakelight_emulator::meter::{Counts, Live};

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
    let direction = |index: usize| words(&now[index], &before[index]);
    format!("up {}  down {}  late {} ms", direction(0), direction(1), number(late_ms))
}

fn words(now: &Counts, before: &Counts) -> String {
    // A direction without a link counts nothing.
    if now.time_nanos == 0 {
        return "without a limit".to_string();
    }
    let sample = now.since(before);
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
            "up 6.00 of 12.0 Mbit/s, 10.0 ms queued, 75 % accelerate, 3 dropped  down without a limit  late 0.07 ms"
        );
    }

    /// What a second brings in the picture of the book: capacity and delivered bytes, packets, their mean
    /// queueing delay in ms, accelerates and drops.
    fn second(before: Counts, capacity: u64, bytes: u64, packets: u64, ms: u64, marks: (u64, u64)) -> Counts {
        Counts {
            time_nanos: before.time_nanos + 1_000_000_000,
            capacity: before.capacity + capacity,
            bytes: before.bytes + bytes,
            packets: before.packets + packets,
            queued_nanos: before.queued_nanos + packets * ms * 1_000_000,
            accelerate: before.accelerate + marks.0,
            brake: before.brake + packets - marks.0,
            dropped: before.dropped + marks.1,
        }
    }

    /// The parts of a line that the picture explains: what is printed, and what it means.
    const EXPLAINED: &[(&str, &str)] = &[
        ("11.3", "delivered in the last second, Mbit/s"),
        ("of 12.0", "what the link could have carried"),
        ("31.0 ms", "mean wait in the queue"),
        ("54 %", "share of ABC's packets that stay accelerates"),
        ("late", "how late the emulator was at worst: below 1 ms is good"),
    ];

    /// A link for ABC that falls from 12 to 3 Mbit/s, as the meter shows it.
    #[test]
    fn the_meter_of_the_book_is_what_the_code_prints() {
        const LEFT: usize = 14;
        let start = Counts::default();
        let mut ups = vec![start];
        for (capacity, bytes, packets, ms, marks) in [
            (1_500_000, 1_412_000, 941, 31, (508, 0)),
            (375_000, 372_000, 248, 173, (12, 0)),
            (375_000, 366_000, 244, 58, (131, 0)),
        ] {
            ups.push(second(ups[ups.len() - 1], capacity, bytes, packets, ms, marks));
        }
        let down = |second: u64| Counts {
            time_nanos: second * 1_000_000_000,
            capacity: second * 1_500_000,
            bytes: second * 24_000,
            packets: second * 480,
            ..start
        };
        let lines: Vec<String> = (1..ups.len())
            .map(|at| {
                let (now, before) = (at as u64, at as u64 - 1);
                line(&[ups[at], down(now)], &[ups[at - 1], down(before)], [0.071, 0.064, 0.083][at - 1])
            })
            .collect();
        let letters = lines.iter().map(|line| line.chars().count()).max().unwrap();
        let (width, height) = (2 * LEFT + letters * 8, 250);
        let mut drawn = String::new();
        for (row, line) in lines.iter().enumerate() {
            let y = 36 + 22 * row;
            drawn += &format!(
                "<text x=\"{LEFT}\" y=\"{y}\" font-family=\"monospace\" font-size=\"13\" textLength=\"{}\" fill=\"#eee\" \
                 xml:space=\"preserve\">{line}</text>\n",
                line.chars().count() * 8
            );
        }
        for (number, (printed, means)) in EXPLAINED.iter().enumerate() {
            let at = lines[0].find(printed).unwrap_or_else(|| panic!("no `{printed}` in {}", lines[0]));
            let before = lines[0][..at].chars().count();
            let (from, to) = (LEFT + before * 8, LEFT + (before + printed.chars().count()) * 8);
            let (x, y) = (20 + number % 2 * width / 2, 140 + number / 2 * 32);
            let middle = usize::midpoint(from, to);
            drawn += &format!(
                "<path d=\"M{from} 41H{to}\" stroke=\"#f0e442\" stroke-width=\"2\"/>\n\
                 <text x=\"{middle}\" y=\"20\" text-anchor=\"middle\" font-size=\"13\" fill=\"#f0e442\">{0}</text>\n\
                 <text x=\"{x}\" y=\"{y}\" font-size=\"17\" fill=\"#111\"><tspan font-weight=\"bold\">{0}</tspan>  {means}</text>\n",
                number + 1
            );
        }
        let picture = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" role=\"img\" \
             font-family=\"Helvetica, Arial, sans-serif\">\n<title>Three lines of the emulator's meter</title>\n\
             <rect width=\"{width}\" height=\"{height}\" fill=\"#fff\"/>\n\
             <rect width=\"{width}\" height=\"104\" rx=\"6\" fill=\"#222\"/>\n{drawn}</svg>\n"
        );
        brakelight_testkit::sources::hold_picture("meter.svg", &picture);
    }
}
