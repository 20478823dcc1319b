//! What a conversion made: the trace, and the recording that has all that the file said.

use brakelight_core::time::Duration;
use brakelight_core::units::Rate;
use brakelight_links::trace::Trace;
use brakelight_links::trains::Trains;

use super::delays::Delays;
use super::{
    ConvertError, ConvertOptions, Format, Selection, cellreplay, opportunities_in_millis, resolution,
};
use crate::OPPORTUNITY;
use crate::recording::{LinkDirection, RecordedCapacity, RecordedDirection, Recording};

/// A trace that was another file.
#[derive(Clone, Debug, PartialEq)]
pub struct Converted {
    /// The trace, in whole milliseconds.
    pub trace: Trace,
    /// The same with what a file of milliseconds cannot say: rates as rates, microseconds, delay, loss.
    pub recording: Recording,
    /// What it was made of.
    pub format: Format,
    /// The time that one value of the file stands for: the median length of its intervals; a millisecond
    /// where the file has the time of every packet.
    pub resolution: Duration,
    /// What the user should know about it, a sentence each.
    pub notes: Vec<String>,
    /// Why it may not be what the user wanted, a sentence each.
    pub warnings: Vec<String>,
}

impl Converted {
    /// Returns what rates become, each with the milliseconds for which it holds.
    pub(super) fn of_rates(
        stretches: &[(u64, Rate)],
        format: Format,
        options: &ConvertOptions,
        notes: Vec<String>,
        warnings: Vec<String>,
    ) -> Result<Self, ConvertError> {
        let trace = opportunities_in_millis(stretches, options.opportunity)?;
        let resolution = resolution(stretches);
        let mut end = 0;
        let rates = stretches.iter().filter(|(ms, _)| *ms > 0).map(|&(ms, rate)| {
            end += ms;
            (Duration::from_millis(end - ms), rate)
        });
        let capacity = RecordedCapacity::Rates(rates.collect());
        let mut recording = recording(capacity, Duration::from_millis(end), options);
        recording.about.bin_us = Some(resolution.as_micros());
        Ok(Converted { trace, recording, format, resolution, notes, warnings })
    }

    /// Returns what opportunities become: `fine` has them in microseconds.
    pub(super) fn of_opportunities(
        trace: Trace,
        fine: Trace,
        format: Format,
        options: &ConvertOptions,
        notes: Vec<String>,
    ) -> Self {
        let (length, tick) = (fine.period(), fine.tick());
        let mut recording = recording(RecordedCapacity::Opportunities(fine), length, options);
        recording.about.bin_us = (tick == Duration::from_millis(1)).then_some(tick.as_micros());
        let resolution = Duration::from_millis(1);
        Converted { trace, recording, format, resolution, notes, warnings: Vec::new() }
    }

    /// Returns what a file that is a recording already becomes.
    pub(super) fn of_recording(recording: Recording, options: &ConvertOptions) -> Result<Self, ConvertError> {
        let direction = match options.selection {
            Selection::Up => Some(LinkDirection::Up),
            Selection::Down => Some(LinkDirection::Down),
            Selection::OneDirection if recording.directions().len() > 1 => {
                let valid = "it holds both: give `down` or `up`";
                return Err(ConvertError::Direction { selection: options.selection, valid });
            }
            Selection::OneDirection | Selection::All => None,
            selection => {
                return Err(ConvertError::Direction { selection, valid: "valid are `down` and `up`" });
            }
        };
        let replayed = recording.trace(direction)?;
        let trace = Trace::from_millis(replayed.millis())?;
        let mut notes = Vec::new();
        if replayed.recorded().is_some_and(|it| it.forward.is_some() || it.reverse.is_some()) {
            notes.push("only `--to bltrace` keeps its delay and loss".to_string());
        }
        let resolution = replayed.resolution();
        Ok(Converted { trace, recording, format: Format::Bltrace, resolution, notes, warnings: Vec::new() })
    }

    /// Puts the delays and losses of another file beside the capacity. They are cut where the capacity ends;
    /// where they end before it, the last value holds on. Light trains are put beside the capacity as they
    /// are. A Mahimahi file is then taken for CellReplay's, whose opportunities carry less. Fails if that
    /// makes no opportunity.
    pub fn add_delays(&mut self, delays: &Delays) -> Result<(), ConvertError> {
        if let Some(trains) = &delays.trains {
            self.add_trains(trains, &delays.down.delays)?;
            self.check_lengths(delays);
            return Ok(());
        }
        let end = self.recording.length;
        let mut put = |direction: LinkDirection, values: &RecordedDirection| {
            let own = self.recording.direction_mut(direction);
            own.delays = values.delays.iter().copied().filter(|(from, _)| *from < end).collect();
            own.losses = values.losses.iter().copied().filter(|(from, _)| *from < end).collect();
        };
        put(LinkDirection::Down, &delays.down);
        put(LinkDirection::Up, &delays.up);
        self.check_lengths(delays);
        Ok(())
    }

    /// Says what the user should know about delays that were put beside the capacity.
    fn check_lengths(&mut self, delays: &Delays) {
        self.notes.extend(delays.notes.iter().cloned());
        let (own, theirs) = (self.recording.length.as_secs_f64(), delays.length.as_secs_f64());
        if (own - theirs).abs() > 0.01 * own {
            self.warnings.push(format!(
                "the capacity lasts {own:.3} s and the delays {theirs:.3} s: both were taken from their beginnings"
            ));
        }
    }

    /// Puts light trains beside the capacity, and their base delays on the way back.
    fn add_trains(&mut self, trains: &Trains, base: &[(Duration, Duration)]) -> Result<(), ConvertError> {
        let ahead = self.recording.directions().first().copied().unwrap_or(LinkDirection::Down);
        if self.format == Format::Mahimahi {
            self.trace = cellreplay::of_full_packets(&self.trace, OPPORTUNITY)?;
            let capacity = RecordedCapacity::Opportunities(self.trace.clone());
            self.recording.direction_mut(ahead).capacity = Some(capacity);
            self.format = Format::CellReplay;
            self.notes.push(cellreplay::said(OPPORTUNITY));
        }
        let end = self.recording.length;
        let own = self.recording.direction_mut(ahead);
        (own.trains, own.delays) = (Some(trains.clone()), Vec::new());
        let back = self.recording.direction_mut(ahead.opposite());
        (back.trains, back.delays) = (None, base.iter().copied().filter(|(from, _)| *from < end).collect());
        Ok(())
    }
}

/// A recording of one direction: `up` where that was chosen, else `down`.
fn recording(capacity: RecordedCapacity, length: Duration, options: &ConvertOptions) -> Recording {
    let direction = match options.selection {
        Selection::Up => LinkDirection::Up,
        _ => LinkDirection::Down,
    };
    let mut recording = Recording::new(length);
    recording.direction_mut(direction).capacity = Some(capacity);
    recording
}
