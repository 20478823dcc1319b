//! The face that figures are set in, with the widths of Helvetica and Arial.

use std::sync::LazyLock;

use ttf_parser::Face;

/// The font, as a PDF embeds it.
pub(super) const FILE: &[u8] = include_bytes!("../../vendor/arimo/arimo-latin.ttf");

/// The characters 0x80 to 0x9f of Windows' code page 1252, which a PDF calls WinAnsiEncoding; a blank where
/// it has none. All others below 0x100 are those of Unicode.
const WINDOWS: [char; 32] = [
    '€', ' ', '‚', 'ƒ', '„', '…', '†', '‡', 'ˆ', '‰', 'Š', '‹', 'Œ', ' ', 'Ž', ' ', ' ', '‘', '’', '“', '”',
    '•', '–', '—', '˜', '™', 'š', '›', 'œ', ' ', 'ž', 'Ÿ',
];

/// Measures of the whole font, in thousandths of its size.
#[derive(Clone, Debug)]
pub(super) struct Metrics {
    pub ascent: f64,
    pub descent: f64,
    pub cap_height: f64,
    /// Left, bottom, right and top of the box that holds every letter.
    pub bounds: [f64; 4],
    /// Of the codes of WinAnsiEncoding.
    pub widths: [f64; 256],
}

pub(super) static METRICS: LazyLock<Metrics> = LazyLock::new(|| {
    let face = Face::parse(FILE, 0).expect("the font of this crate can be read");
    let thousandths = |units: i16| f64::from(units) * 1000.0 / f64::from(face.units_per_em());
    let bounds = face.global_bounding_box();
    let width = |code: usize| {
        let glyph = face.glyph_index(letter(code as u8)).unwrap_or_default();
        face.glyph_hor_advance(glyph).map_or(0.0, |width| thousandths(width.cast_signed()))
    };
    Metrics {
        ascent: thousandths(face.ascender()),
        descent: thousandths(face.descender()),
        cap_height: face.capital_height().map_or(716.0, thousandths),
        bounds: [bounds.x_min, bounds.y_min, bounds.x_max, bounds.y_max].map(thousandths),
        widths: std::array::from_fn(width),
    }
});

fn letter(code: u8) -> char {
    match code {
        0x80..=0x9f => WINDOWS[usize::from(code - 0x80)],
        _ => char::from(code),
    }
}

/// The code of a character; that of a question mark where there is none.
pub(super) fn code(letter: char) -> u8 {
    match u32::from(letter) {
        plain @ (0x20..=0x7e | 0xa0..=0xff) => plain as u8,
        _ => WINDOWS.iter().position(|other| *other == letter).map_or(b'?', |place| 0x80 + place as u8),
    }
}

/// How wide `words` are at this size.
pub(super) fn width(words: &str, size: f64) -> f64 {
    words.chars().map(|letter| METRICS.widths[usize::from(code(letter))]).sum::<f64>() * size / 1000.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn widths_are_those_of_helvetica() {
        for (letter, expected) in
            [(' ', 278.0), ('0', 556.0), ('A', 667.0), ('i', 222.0), ('m', 833.0), ('%', 889.0)]
        {
            let width = METRICS.widths[usize::from(code(letter))];
            assert!((width - expected).abs() < 1.0, "{letter}: {width}");
        }
        assert!((width("10", 8.0) - 2.0 * 0.556 * 8.0).abs() < 0.01);
        assert_eq!((code('–'), code('µ'), code('漢')), (0x96, 0xb5, b'?'));
    }
}
