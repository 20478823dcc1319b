//! Performance envelopes: where a flow's points of throughput and delay lie, and how far two agree.
//!
//! ```text
//! clusters      k-means; the fewest k of 1 to 3, unless more have a simplified silhouette of 0.8 or more
//! kept          of each cluster the 95 % of points nearest to its mean                       quicbench
//! envelope      the convex hulls of the clusters' kept points                              mishra23
//! conformance   C = (kept points of A in B's envelope + those of B in A's) / all kept points quicbench
//! tuned         C_T = max over translations t of C(A + t, B); A lies -t away from B  mishra23
//! overlap       area of both envelopes / area of either
//! ```
//!
//! | symbol | constant | value | source |
//! |---|---|---|---|
//! | share of points kept | `KEPT` | 0.95 | quicbench `visualize/plot_perf_env.py`, `THRESH` |
//! | most clusters | `MOST_CLUSTERS` | 3 | ours |
//! | least silhouette | `SEPARATE` | 0.8 | ours: points spread evenly along a line have 0.71 |
//!
//! Deviations:
//! 1. Coordinates are shares of the link and of the full buffer's delay. quicbench takes distances in Mbit/s
//!    and ms, so which points are outliers depends on the units.
//! 2. Clusters begin from the points farthest apart, not from random ones, so the same points give the same
//!    envelope.
//! 3. The number of clusters is chosen by the silhouette, in the form of Vendramin et al. (Statistical
//!    Analysis and Data Mining 3(4), 2010) that compares distances to the means.

use super::geometry::{Point, area, contains, distance_squared, hull, intersection};

/// The share of a cluster's points that are kept.
const KEPT: f64 = 0.95;
/// The most clusters that an envelope has.
const MOST_CLUSTERS: usize = 3;
/// The least simplified silhouette with which a cloud counts as several.
const SEPARATE: f64 = 0.8;
/// Most rounds of k-means.
const MOST_ROUNDS: usize = 100;

/// Where a cloud of points lies.
#[derive(Clone, Debug, PartialEq)]
pub struct Envelope {
    /// The points without outliers.
    pub kept: Vec<Point>,
    /// The convex hull of each cluster: disjoint, each counterclockwise.
    pub hulls: Vec<Vec<Point>>,
    /// The mean of all points.
    pub mean: Point,
}

impl Envelope {
    /// The envelope of `points`, which are finite; none of fewer than three points.
    pub fn of(points: &[Point]) -> Option<Self> {
        if points.len() < 3 {
            return None;
        }
        let mut envelope = Envelope { kept: Vec::new(), hulls: Vec::new(), mean: mean(points) };
        for mut cluster in clusters(points) {
            let centre = mean(&cluster);
            cluster.sort_by(|a, b| {
                distance_squared(*a, centre)
                    .total_cmp(&distance_squared(*b, centre))
                    .then(a[0].total_cmp(&b[0]))
                    .then(a[1].total_cmp(&b[1]))
            });
            cluster.truncate(((cluster.len() as f64 * KEPT).ceil() as usize).max(1));
            envelope.hulls.push(hull(&cluster));
            envelope.kept.extend(cluster);
        }
        Some(envelope)
    }

    fn has(&self, point: Point) -> bool {
        self.hulls.iter().any(|hull| contains(hull, point))
    }

    /// The conformance of two envelopes, 0 to 1.
    pub fn conformance(&self, other: &Envelope) -> f64 {
        self.moved_conformance([0.0, 0.0], other)
    }

    /// The same if this envelope were moved by `by`.
    fn moved_conformance(&self, by: Point, other: &Envelope) -> f64 {
        let own = self.kept.iter().filter(|point| other.has([point[0] + by[0], point[1] + by[1]]));
        let theirs = other.kept.iter().filter(|point| self.has([point[0] - by[0], point[1] - by[1]]));
        (own.count() + theirs.count()) as f64 / (self.kept.len() + other.kept.len()) as f64
    }

    /// The area within both envelopes over the area within either, 0 to 1; 0 if neither has one.
    pub fn overlap(&self, other: &Envelope) -> f64 {
        let size = |envelope: &Envelope| envelope.hulls.iter().map(|hull| area(hull)).sum::<f64>();
        let pairs = self.hulls.iter().flat_map(|own| other.hulls.iter().map(move |their| (own, their)));
        let both: f64 = pairs.map(|(own, their)| area(&intersection(own, their))).sum();
        let either = size(self) + size(other) - both;
        if either > 0.0 { (both / either).clamp(0.0, 1.0) } else { 0.0 }
    }

    /// The highest conformance that a translation of this envelope reaches, and where this envelope lies as
    /// seen from `other`: that translation backwards. Of equally good ones the shortest is taken.
    pub fn tuned(&self, other: &Envelope) -> (f64, Point) {
        let start = [other.mean[0] - self.mean[0], other.mean[1] - self.mean[1]];
        let mut best = (self.conformance(other), [0.0, 0.0]);
        let consider = |by: Point, best: &mut (f64, Point)| {
            let conformance = self.moved_conformance(by, other);
            let shorter = distance_squared(by, [0.0, 0.0]) < distance_squared(best.1, [0.0, 0.0]);
            if conformance > best.0 || (conformance == best.0 && shorter) {
                *best = (conformance, by);
            }
        };
        consider(start, &mut best);
        // From steps of an eighth of what both clouds span down to a thousandth of it.
        let mut steps = span(&self.kept, &other.kept).map(|width| width / 8.0);
        for _ in 0..8 {
            let around = best.1;
            for x in -4..=4 {
                for y in -4..=4 {
                    let by = [around[0] + f64::from(x) * steps[0], around[1] + f64::from(y) * steps[1]];
                    consider(by, &mut best);
                }
            }
            steps = steps.map(|step| step / 2.0);
        }
        (best.0, best.1.map(|by| if by == 0.0 { 0.0 } else { -by }))
    }
}

fn mean(points: &[Point]) -> Point {
    [0, 1].map(|index| points.iter().map(|point| point[index]).sum::<f64>() / points.len() as f64)
}

/// Width and height of what holds both.
fn span(one: &[Point], other: &[Point]) -> Point {
    [0, 1].map(|index| {
        let values = || one.iter().chain(other).map(|point| point[index]);
        values().fold(f64::NEG_INFINITY, f64::max) - values().fold(f64::INFINITY, f64::min)
    })
}

/// The clusters of `points`: none is empty.
fn clusters(points: &[Point]) -> Vec<Vec<Point>> {
    let mut best = (SEPARATE, vec![points.to_vec()]);
    for count in 2..=MOST_CLUSTERS.min(points.len()) {
        let split = k_means(points, count);
        let silhouette = silhouette(&split);
        if split.len() == count && silhouette >= best.0 {
            best = (silhouette, split);
        }
    }
    best.1
}

/// `count` clusters at most, by Lloyd's algorithm from the points that are farthest from those before.
fn k_means(points: &[Point], count: usize) -> Vec<Vec<Point>> {
    let farthest = |centres: &[Point]| {
        let distance = |point: &Point| nearest(*point, centres).1;
        points.iter().copied().max_by(|a, b| distance(a).total_cmp(&distance(b)))
    };
    let mut centres: Vec<Point> = farthest(&[mean(points)]).into_iter().collect();
    while centres.len() < count
        && let Some(next) = farthest(&centres)
    {
        centres.push(next);
    }
    let mut split = assign(points, &centres);
    for _ in 0..MOST_ROUNDS {
        let next: Vec<Point> = split.iter().map(|cluster| mean(cluster)).collect();
        if next == centres {
            break;
        }
        centres = next;
        split = assign(points, &centres);
    }
    split
}

/// The place of the nearest of `centres`, and its squared distance.
fn nearest(point: Point, centres: &[Point]) -> (usize, f64) {
    let distances = centres.iter().map(|centre| distance_squared(point, *centre)).enumerate();
    distances.min_by(|(_, a), (_, b)| a.total_cmp(b)).unwrap_or((0, 0.0))
}

fn assign(points: &[Point], centres: &[Point]) -> Vec<Vec<Point>> {
    let mut split = vec![Vec::new(); centres.len()];
    for point in points {
        split[nearest(*point, centres).0].push(*point);
    }
    split.retain(|cluster| !cluster.is_empty());
    split
}

/// The mean over all points of (b - a) / b: a is the distance to the own mean, b to the nearest other.
fn silhouette(split: &[Vec<Point>]) -> f64 {
    let centres: Vec<Point> = split.iter().map(|cluster| mean(cluster)).collect();
    if centres.len() < 2 {
        return 0.0;
    }
    let (mut sum, mut count) = (0.0, 0_usize);
    for (own, cluster) in split.iter().enumerate() {
        let others: Vec<Point> = centres
            .iter()
            .enumerate()
            .filter(|(place, _)| *place != own)
            .map(|(_, centre)| *centre)
            .collect();
        for point in cluster {
            let (a, b) = (distance_squared(*point, centres[own]).sqrt(), nearest(*point, &others).1.sqrt());
            sum += (b - a) / a.max(b).max(f64::MIN_POSITIVE);
            count += 1;
        }
    }
    sum / count as f64
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// So many points spread over a square around `centre`, by a lattice that never repeats.
    fn blob(centre: Point, width: f64, count: u32) -> Vec<Point> {
        // The plastic constant's lattice: Roberts, "The unreasonable effectiveness of quasirandom sequences".
        let at = |index: u32, step: f64| (f64::from(index) * step).fract() - 0.5;
        (1..=count)
            .map(|index| {
                let [x, y] = [0.754_877_666_2, 0.569_840_291].map(|step| at(index, step));
                [centre[0] + width * x, centre[1] + width * y]
            })
            .collect()
    }

    fn envelope(points: &[Point]) -> Envelope {
        Envelope::of(points).unwrap()
    }

    #[test]
    fn a_cloud_conforms_to_itself() {
        let own = envelope(&blob([0.5, 0.5], 0.2, 200));
        assert!((own.conformance(&own) - 1.0).abs() < 1e-12);
        assert!((own.overlap(&own) - 1.0).abs() < 1e-9);
        assert_eq!(own.tuned(&own), (1.0, [0.0, 0.0]));
    }

    #[test]
    fn one_in_twenty_is_an_outlier() {
        let own = envelope(&blob([0.5, 0.5], 0.2, 200));
        assert_eq!((own.kept.len(), own.hulls.len()), (190, 1));
        let mut points = blob([0.5, 0.5], 0.1, 95);
        points.push([9.0, 9.0]);
        let hulls = envelope(&points).hulls;
        // It is in no hull of the others, whether it counts as an outlier or as a cluster of its own.
        assert!(!contains(&hulls[0], [2.0, 2.0]), "{hulls:?}");
    }

    #[test]
    fn clouds_apart_conform_only_once_moved_and_the_direction_says_who_takes_more() {
        let reference = envelope(&blob([0.5, 0.5], 0.2, 300));
        let greedy = envelope(&blob([0.8, 0.6], 0.2, 300));
        assert!(greedy.conformance(&reference).abs() < 1e-12 && greedy.overlap(&reference).abs() < 1e-12);
        let (tuned, offset) = greedy.tuned(&reference);
        assert!(tuned > 0.99, "{tuned}");
        assert!((offset[0] - 0.3).abs() < 0.01 && (offset[1] - 0.1).abs() < 0.01, "{offset:?}");
    }

    #[test]
    fn two_blobs_are_two_clusters_and_an_even_cloud_or_line_is_one() {
        let mut two = blob([0.2, 0.2], 0.1, 100);
        two.extend(blob([0.8, 0.7], 0.1, 100));
        assert_eq!(envelope(&two).hulls.len(), 2);
        // What lies between them is in neither.
        assert!(!envelope(&two).has([0.5, 0.45]));
        assert_eq!(envelope(&blob([0.5, 0.5], 0.3, 200)).hulls.len(), 1);
        let line: Vec<Point> = (0..200).map(|index| [0.5, f64::from(index) / 200.0]).collect();
        assert_eq!(envelope(&line).hulls.len(), 1);
    }

    #[test]
    fn a_cloud_that_lacks_one_of_two_clusters_has_two_thirds() {
        let one = blob([0.2, 0.2], 0.1, 200);
        let mut both = one.clone();
        both.extend(blob([0.8, 0.8], 0.1, 200));
        // The one's 190 are in a hull of both, and 190 of both's 380 are in the one's: 380 of 570.
        let index = envelope(&one).conformance(&envelope(&both));
        assert!((index - 2.0 / 3.0).abs() < 1e-9, "{index}");
    }

    #[test]
    fn fewer_than_three_points_have_no_envelope() {
        assert_eq!(Envelope::of(&[[0.0, 0.0], [1.0, 1.0]]), None);
        assert!(Envelope::of(&[[0.5, 0.5]; 3]).is_some());
    }

    proptest! {
        #[test]
        fn the_index_is_symmetric_and_tuning_never_lowers_it(
            one in proptest::collection::vec([0.0..1.0, 0.0..1.0], 3..80),
            other in proptest::collection::vec([0.0..1.0, 0.0..1.0], 3..80),
        ) {
            let (one, other) = (envelope(&one), envelope(&other));
            let index = one.conformance(&other);
            prop_assert!((0.0..=1.0).contains(&index));
            prop_assert_eq!(index, other.conformance(&one));
            prop_assert!((0.0..=1.0).contains(&one.overlap(&other)));
            let (tuned, offset) = one.tuned(&other);
            prop_assert!(tuned >= index && tuned <= 1.0);
            prop_assert!(offset.iter().all(|by| by.is_finite()));
            // Moved back by the offset it has that index.
            prop_assert!((one.moved_conformance(offset.map(|by| -by), &other) - tuned).abs() < 1e-12);
        }

        #[test]
        fn hulls_of_clusters_hold_the_kept_points_and_do_not_meet(
            points in proptest::collection::vec([0.0..1.0, 0.0..1.0], 3..80),
        ) {
            let own = envelope(&points);
            prop_assert!(own.kept.iter().all(|point| own.has(*point)));
            for (place, one) in own.hulls.iter().enumerate() {
                for other in &own.hulls[place + 1..] {
                    prop_assert!(area(&intersection(one, other)) < 1e-12);
                }
            }
        }
    }
}
