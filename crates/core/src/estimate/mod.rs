//! Filters and estimators: one per file.

pub mod adpm;
pub mod delivery_rate;
pub mod load_factor;
pub mod one_way_queueing;
pub mod poisson_brownian;
pub mod sliding_min;
pub mod sliding_rate;
pub mod space_saving;
pub mod windowed_max;
pub mod windowed_min;
