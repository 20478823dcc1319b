//! The points of all lines of a report, small: two bytes a point, equal lines once, deflated.

use std::collections::BTreeMap;
use std::io::Write;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use flate2::Compression;
use flate2::write::ZlibEncoder;
use serde::Serialize;

/// What stands for a bin without a value.
const NONE: u16 = u16::MAX;

/// The largest value of a line is this many steps: finer than a screen's pixels by thirty.
const STEPS: f64 = (u16::MAX - 1) as f64;

/// Where a line's points are: its value is `low + step * word`, for `count` words from `start`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(super) struct Span {
    pub start: usize,
    pub count: usize,
    pub low: f64,
    pub step: f64,
}

/// The points of all lines.
#[derive(Debug)]
pub(super) struct Points {
    most: usize,
    words: Vec<u16>,
    /// Lines that are there, so that the capacity of a link that every scheme ran on is kept once.
    lines: BTreeMap<Vec<u64>, Span>,
}

impl Points {
    /// Returns none yet, of lines of at most `most` points.
    pub fn new(most: usize) -> Points {
        Points { most: most.max(1), words: Vec::new(), lines: BTreeMap::new() }
    }

    /// Returns how many of a line's bins become one.
    pub fn merged(&self, bins: usize) -> usize {
        bins.div_ceil(self.most).max(1)
    }

    /// Adds a line.
    pub fn add(&mut self, values: &[f64], fold: fn(&[f64]) -> f64) -> Span {
        let merged = values.chunks(self.merged(values.len())).map(fold).collect();
        self.pack(merged)
    }

    /// Adds a line with gaps.
    pub fn add_some(&mut self, values: &[Option<f64>], fold: fn(&[f64]) -> f64) -> Span {
        let fold_some = |bins: &[Option<f64>]| {
            let there: Vec<f64> = bins.iter().flatten().copied().collect();
            if there.is_empty() { f64::NAN } else { fold(&there) }
        };
        let merged = values.chunks(self.merged(values.len())).map(fold_some).collect();
        self.pack(merged)
    }

    fn pack(&mut self, values: Vec<f64>) -> Span {
        let key: Vec<u64> = values.iter().map(|value| value.to_bits()).collect();
        if let Some(span) = self.lines.get(&key) {
            return *span;
        }
        let there = || values.iter().copied().filter(|value| value.is_finite());
        let low = there().fold(f64::INFINITY, f64::min).min(0.0);
        let high = there().fold(0.0, f64::max);
        let step = (high - low) / STEPS;
        let word = |value: f64| match value.is_finite() {
            true if step > 0.0 => ((value - low) / step).round() as u16,
            true => 0,
            false => NONE,
        };
        let span = Span { start: self.words.len(), count: values.len(), low, step };
        self.words.extend(values.iter().map(|value| word(*value)));
        self.lines.insert(key, span);
        span
    }

    /// Returns all words, little-endian, as a zlib stream in base64.
    pub fn text(&self) -> String {
        let bytes: Vec<u8> = self.words.iter().flat_map(|word| word.to_le_bytes()).collect();
        let mut encoder = ZlibEncoder::new(Vec::new(), Compression::default());
        let packed = encoder.write_all(&bytes).and_then(|()| encoder.finish());
        STANDARD.encode(packed.expect("memory takes every byte"))
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use super::*;

    /// Reads a line as the page's script does.
    fn read(points: &Points, span: Span) -> Vec<Option<f64>> {
        let packed = STANDARD.decode(points.text()).unwrap();
        let mut bytes = Vec::new();
        flate2::read::ZlibDecoder::new(packed.as_slice()).read_to_end(&mut bytes).unwrap();
        let words = bytes.chunks(2).map(|pair| u16::from_le_bytes([pair[0], pair[1]]));
        let value = |word: u16| (word != NONE).then(|| span.low + span.step * f64::from(word));
        words.skip(span.start).take(span.count).map(value).collect()
    }

    #[test]
    fn a_line_comes_back_to_within_a_step() {
        let mut points = Points::new(1200);
        points.add(&[1.0; 7], |bins| bins[0]);
        let values: Vec<f64> = (0..1000).map(|i| f64::from(i).sin() * 40.0 + 12.0).collect();
        let span = points.add(&values, |bins| bins[0]);
        let back = read(&points, span);
        assert_eq!(back.len(), values.len());
        for (back, value) in back.iter().zip(&values) {
            assert!((back.unwrap() - value).abs() <= 0.51 * span.step, "{back:?} for {value}");
        }
        assert!(span.step < 0.0015, "{span:?}");
    }

    #[test]
    fn gaps_zeros_and_what_is_not_finite_come_back() {
        let mut points = Points::new(1200);
        let span = points.add_some(&[None, Some(0.0), Some(f64::INFINITY), Some(3.0)], |bins| bins[0]);
        assert_eq!(read(&points, span), [None, Some(0.0), None, Some(3.0)]);
        let zeros = points.add(&[0.0; 4], |bins| bins[0]);
        assert_eq!(read(&points, zeros), [Some(0.0); 4]);
        let nothing = points.add(&[], |bins| bins[0]);
        assert_eq!(read(&points, nothing), []);
    }

    #[test]
    fn an_equal_line_is_kept_once() {
        let mut points = Points::new(1200);
        let first = points.add(&[1.0, 2.0], |bins| bins[0]);
        let words = points.words.len();
        assert_eq!(points.add(&[1.0, 2.0], |bins| bins[0]), first);
        assert_eq!(points.words.len(), words);
    }

    #[test]
    fn merging_keeps_means_peaks_and_gaps() {
        let values: Vec<Option<f64>> =
            (0..2400).map(|i| if i < 2 { None } else { Some(f64::from(i)) }).collect();
        let mut points = Points::new(1200);
        let span = points.add_some(&values, super::super::most);
        let back = read(&points, span);
        assert_eq!((back.len(), back[0]), (1200, None));
        assert!((back[1].unwrap() - 3.0).abs() < span.step);
        let mut one = Points::new(1);
        let span = one.add(&[1.0, 2.0], super::super::mean);
        assert_eq!(read(&one, span), [Some(1.5)]);
    }
}
