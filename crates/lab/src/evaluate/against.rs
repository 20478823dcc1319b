//! An evaluation beside an earlier one of the same schemes, criteria and seeds: what became worse.
//!
//! ```text
//! worse = after - before, or before - after where more is better: seed by seed
//! a measurement regressed if worse > 0 with every seed, its mean is 7 standard errors or more,
//!                         and its median is 1 % or more of the larger of |before| and |bound|
//! ```
//!
//! Code that does the same has the same numbers, bit for bit. Where a change only draws other random numbers,
//! ten of ten seeds are worse by chance once in 1024 points: too often for a kit of a hundred points. So the
//! differences must agree, too: Student's t with 9 degrees of freedom exceeds 7 once in 30,000.

use brakelight_scenario::documents::{Evaluation, Point, Regression};
use brakelight_scenario::median::median;
use thiserror::Error;

/// The least median change that counts.
const LEAST: f64 = 0.01;

/// The least mean change that counts, in standard errors.
const STANDARD_ERRORS: f64 = 7.0;

/// Why two evaluations cannot be compared.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Mismatch {
    /// They judged by other criteria.
    #[error("it has {what} `{old}`, and this evaluation `{new}`: make it again with this version")]
    Other {
        /// What differs.
        what: &'static str,
        /// In the earlier one.
        old: String,
        /// In this one.
        new: String,
    },
    /// The earlier one lacks a scheme.
    #[error("it has no scheme `{0}`")]
    Scheme(String),
    /// The earlier one lacks a criterion, or a part of one.
    #[error("criterion `{criterion}` of `{scheme}` is not in it")]
    Criterion {
        /// The scheme.
        scheme: String,
        /// The criterion.
        criterion: String,
    },
}

/// Checks that an evaluation of `schemes` by `kit`, `level` and `criteria` can be compared with `before`:
/// before anything runs.
///
/// # Errors
/// If kit, level or criteria differ, or a scheme is missing.
pub(super) fn fits(
    before: &Evaluation,
    [kit, level, criteria]: [&str; 3],
    schemes: &[&str],
) -> Result<(), Mismatch> {
    let same = [
        ("the kit", &before.kit, kit),
        ("the level", &before.level, level),
        ("criteria of the version", &before.criteria, criteria),
    ];
    for (what, old, new) in same {
        if old != new {
            return Err(Mismatch::Other { what, old: old.clone(), new: new.to_string() });
        }
    }
    let has = |scheme: &&&str| before.schemes.iter().any(|old| old.scheme == **scheme);
    match schemes.iter().find(|scheme| !has(scheme)) {
        Some(scheme) => Err(Mismatch::Scheme(scheme.to_string())),
        None => Ok(()),
    }
}

/// Writes into `evaluation` what became worse since `before`.
///
/// # Errors
/// If they have other schemes, criteria or seeds.
pub fn against(evaluation: &mut Evaluation, before: &Evaluation) -> Result<(), Mismatch> {
    let names: Vec<&str> = evaluation.schemes.iter().map(|evaluated| evaluated.scheme.as_str()).collect();
    fits(before, [&evaluation.kit, &evaluation.level, &evaluation.criteria], &names)?;
    for evaluated in &mut evaluation.schemes {
        let old = before.schemes.iter().find(|old| old.scheme == evaluated.scheme);
        for criterion in &mut evaluated.criteria {
            let missing =
                || Mismatch::Criterion { scheme: evaluated.scheme.clone(), criterion: criterion.id.clone() };
            let old = old.and_then(|old| old.criteria.iter().find(|old| old.id == criterion.id));
            let old = old.ok_or_else(missing)?;
            // A run that failed has no points, and its verdict says so.
            if old.points.is_empty() || criterion.points.is_empty() {
                continue;
            }
            let mut worst: Option<(f64, Regression)> = None;
            for point in &criterion.points {
                let of = old.points.iter().find(|old| old.place == point.place);
                let of = of.filter(|old| old.by_seed.len() == point.by_seed.len()).ok_or_else(missing)?;
                let Some(share) = worse(of, point, criterion.at_most) else { continue };
                if worst.as_ref().is_none_or(|(other, _)| share > *other) {
                    let (before, after) = (of.measured, point.measured);
                    worst = Some((share, Regression { place: point.place.clone(), before, after }));
                }
            }
            criterion.regression = worst.map(|(_, regression)| regression);
        }
    }
    evaluation.against = Some(before.origin.clone());
    Ok(())
}

/// By how much `after` is worse than `before`, as a share, if it regressed.
fn worse(before: &Point, after: &Point, at_most: bool) -> Option<f64> {
    let pairs = before.by_seed.iter().zip(&after.by_seed);
    let mut changes: Vec<f64> =
        pairs.map(|(before, after)| if at_most { after - before } else { before - after }).collect();
    if changes.is_empty() || !changes.iter().all(|change| *change > 0.0) || !agree(&changes) {
        return None;
    }
    let share = median(&mut changes)? / before.measured.abs().max(before.bound.abs()).max(f64::MIN_POSITIVE);
    (share >= LEAST).then_some(share)
}

/// Whether the mean of `changes` is so many standard errors or more. One change alone is taken as it is.
fn agree(changes: &[f64]) -> bool {
    let count = changes.len() as f64;
    let mean = changes.iter().sum::<f64>() / count;
    let squares: f64 = changes.iter().map(|change| (change - mean).powi(2)).sum();
    let error = (squares / (count - 1.0).max(1.0) / count).sqrt();
    mean >= STANDARD_ERRORS * error
}
