//! What lists say of embedded traces, so that a list need not make them: that takes a second for all. A test
//! compares each row with its trace.

/// What lists say of a trace.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Facts {
    /// Mean rate, Mbit/s.
    pub mean_mbps: f64,
    /// Coefficient of variation of the rate in bins of 100 ms.
    pub cv_100ms: f64,
    /// Length of the trace, s.
    pub duration_s: f64,
}

/// Those of every embedded trace with a recipe of its own, by name: mean rate, variation, length.
pub(super) const FACTS: &[(&str, f64, f64, f64)] = &[
    ("lte-driving", 4.9893, 0.6717686526735425, 120.00000000000001),
    ("lte-walking", 9.0229, 0.43133596539359803, 120.00000000000001),
    ("3g", 1.4842, 0.717575159243066, 120.00000000000001),
    ("step", 18.0, 0.33201070933195986, 60.00000000000001),
    ("fixed", 12.0, 0.0, 60.00000000000001),
    ("fit-att-driving-down", 4.5268, 1.014575360555031, 120.00000000000001),
    ("fit-att-driving-up", 1.9248999999999998, 1.1641332115082468, 120.00000000000001),
    ("fit-verizon-down", 5.0009999999999994, 0.7063226744902, 140.0),
    ("fit-verizon-up", 5.973428999999999, 0.5965918689283107, 140.0),
    ("5g-sa", 219.9922, 0.5275669466759608, 60.00000000000001),
    ("5g-nsa", 229.0292, 0.43868303306287026, 60.00000000000001),
    ("mmwave", 297.14878, 1.0856499553681815, 236.00000000000003),
    ("starlink", 48.788, 0.2100738597855681, 120.00000000000001),
    ("wifi", 27.29724, 0.2589231016629627, 300.0),
    ("5g-chosen", 200.0942, 0.36992461927044934, 60.00000000000001),
    ("satellite-chosen", 40.0973, 0.32565215028862615, 120.00000000000001),
];
