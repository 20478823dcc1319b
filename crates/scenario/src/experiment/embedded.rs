//! The experiments that the project ships.

/// File name and text of every file of `experiments/`, by name.
pub const EMBEDDED: &[(&str, &str)] = &[
    ("abc-f1.toml", include_str!("../../../../experiments/abc-f1.toml")),
    ("abc-f11.toml", include_str!("../../../../experiments/abc-f11.toml")),
    ("abc-f12.toml", include_str!("../../../../experiments/abc-f12.toml")),
    ("abc-f14.toml", include_str!("../../../../experiments/abc-f14.toml")),
    ("abc-f15.toml", include_str!("../../../../experiments/abc-f15.toml")),
    ("abc-f17.toml", include_str!("../../../../experiments/abc-f17.toml")),
    ("abc-f19.toml", include_str!("../../../../experiments/abc-f19.toml")),
    ("abc-f2.toml", include_str!("../../../../experiments/abc-f2.toml")),
    ("abc-f20.toml", include_str!("../../../../experiments/abc-f20.toml")),
    ("abc-f21.toml", include_str!("../../../../experiments/abc-f21.toml")),
    ("abc-f3.toml", include_str!("../../../../experiments/abc-f3.toml")),
    ("abc-f7a.toml", include_str!("../../../../experiments/abc-f7a.toml")),
    ("abc-f7b.toml", include_str!("../../../../experiments/abc-f7b.toml")),
    ("abc-f8.toml", include_str!("../../../../experiments/abc-f8.toml")),
    ("abc-jain.toml", include_str!("../../../../experiments/abc-jain.toml")),
    ("abc-t0.toml", include_str!("../../../../experiments/abc-t0.toml")),
    ("abc-t1.toml", include_str!("../../../../experiments/abc-t1.toml")),
    ("abc-units.toml", include_str!("../../../../experiments/abc-units.toml")),
    ("hn-f1.toml", include_str!("../../../../experiments/hn-f1.toml")),
    ("hn-f2a.toml", include_str!("../../../../experiments/hn-f2a.toml")),
    ("hn-f2b.toml", include_str!("../../../../experiments/hn-f2b.toml")),
    ("hn-f2c.toml", include_str!("../../../../experiments/hn-f2c.toml")),
    ("hn-f4.toml", include_str!("../../../../experiments/hn-f4.toml")),
];
