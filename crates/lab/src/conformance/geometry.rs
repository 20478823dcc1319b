//! Convex polygons in the plane: hull, area, membership and intersection.
//!
//! Own code: a performance envelope needs these four functions of convex polygons alone. The crate `geo` has
//! them too, and brings about thirty others for boolean operations, projections and spatial indices.

/// A point: two coordinates without unit.
pub type Point = [f64; 2];

/// How far outside an edge a point of unit scale still counts as on it.
const TOLERANCE: f64 = 1e-12;

/// Twice the signed area of the triangle `a`, `b`, `c`; positive if they turn left.
fn turn(a: Point, b: Point, c: Point) -> f64 {
    (b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0])
}

/// The square of the distance of two points.
pub fn distance_squared(a: Point, b: Point) -> f64 {
    (a[0] - b[0]).powi(2) + (a[1] - b[1]).powi(2)
}

/// The vertices of the convex hull of `points`, counterclockwise, from the leftmost on. Points on an edge are
/// left out. One or two points, or points on a line, give their ends. The points must be finite.
///
/// Andrew's monotone chain (Information Processing Letters 9(5), 1979): O(n log n).
pub fn hull(points: &[Point]) -> Vec<Point> {
    let mut sorted = points.to_vec();
    sorted.sort_by(|a, b| a[0].total_cmp(&b[0]).then(a[1].total_cmp(&b[1])));
    sorted.dedup();
    if sorted.len() < 3 {
        return sorted;
    }
    let mut hull = chain(sorted.iter().copied());
    hull.pop();
    let mut upper = chain(sorted.iter().rev().copied());
    upper.pop();
    hull.extend(upper);
    hull
}

/// One side of the hull of points in order.
fn chain(points: impl Iterator<Item = Point>) -> Vec<Point> {
    let mut side: Vec<Point> = Vec::new();
    for point in points {
        while let [.., before, last] = side[..]
            && turn(before, last, point) <= 0.0
        {
            side.pop();
        }
        side.push(point);
    }
    side
}

/// The area of a polygon whose vertices are counterclockwise; 0 for fewer than three.
///
/// The shoelace formula: A = 1/2 sum (x_i y_{i+1} - x_{i+1} y_i), taken from the first vertex.
pub fn area(polygon: &[Point]) -> f64 {
    let Some((first, rest)) = polygon.split_first() else { return 0.0 };
    rest.windows(2).map(|pair| turn(*first, pair[0], pair[1])).sum::<f64>() / 2.0
}

/// The edges of a polygon.
fn edges(polygon: &[Point]) -> impl Iterator<Item = (Point, Point)> + '_ {
    polygon.iter().copied().zip(polygon.iter().copied().cycle().skip(1))
}

/// Whether `point` lies within a convex polygon that [`hull`] made, or on its edge.
pub fn contains(polygon: &[Point], point: Point) -> bool {
    match *polygon {
        [] => false,
        [only] => distance_squared(only, point) <= TOLERANCE.powi(2),
        [a, b] => {
            let along = (point[0] - a[0]) * (b[0] - a[0]) + (point[1] - a[1]) * (b[1] - a[1]);
            let length_squared = distance_squared(a, b);
            turn(a, b, point).abs() <= TOLERANCE && (-TOLERANCE..=length_squared + TOLERANCE).contains(&along)
        }
        // Asked for every point of a cloud: without optimization `edges` takes nine times as long.
        [.., last] => {
            let mut from = last;
            for &to in polygon {
                if turn(from, to, point) < -TOLERANCE {
                    return false;
                }
                from = to;
            }
            true
        }
    }
}

/// The intersection of two convex polygons that [`hull`] made; empty where they have no area in common.
///
/// Sutherland and Hodgman (Communications of the ACM 17(1), 1974): cut `subject` along each edge of `window`.
pub fn intersection(subject: &[Point], window: &[Point]) -> Vec<Point> {
    if subject.len() < 3 || window.len() < 3 {
        return Vec::new();
    }
    let mut kept = subject.to_vec();
    for (a, b) in edges(window) {
        let mut next = Vec::with_capacity(kept.len() + 1);
        for (from, to) in edges(&kept) {
            let (start, end) = (turn(a, b, from), turn(a, b, to));
            if start >= 0.0 {
                next.push(from);
            }
            if (start >= 0.0) != (end >= 0.0) {
                let share = start / (start - end);
                next.push([from[0] + share * (to[0] - from[0]), from[1] + share * (to[1] - from[1])]);
            }
        }
        kept = next;
    }
    hull(&kept)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const SQUARE: [Point; 4] = [[0.0, 0.0], [1.0, 0.0], [1.0, 1.0], [0.0, 1.0]];

    fn moved(points: &[Point], by: Point) -> Vec<Point> {
        points.iter().map(|point| [point[0] + by[0], point[1] + by[1]]).collect()
    }

    #[test]
    fn a_square_has_four_corners_and_area_one() {
        let mut points = SQUARE.to_vec();
        points.extend([[0.5, 0.5], [0.5, 0.0], [1.0, 0.25], [0.0, 0.0]]);
        assert_eq!(hull(&points), SQUARE);
        assert!((area(&SQUARE) - 1.0).abs() < 1e-15);
        assert!(contains(&SQUARE, [1.0, 0.5]) && contains(&SQUARE, [0.5, 0.5]));
        assert!(!contains(&SQUARE, [1.01, 0.5]));
    }

    #[test]
    fn half_of_a_moved_square_is_common() {
        // Moved by 1/2 to the right and 1/4 up: 1/2 times 3/4.
        let common = intersection(&SQUARE, &moved(&SQUARE, [0.5, 0.25]));
        assert!((area(&common) - 0.375).abs() < 1e-15);
        assert_eq!(intersection(&SQUARE, &moved(&SQUARE, [2.0, 0.0])), Vec::<Point>::new());
    }

    #[test]
    fn points_on_a_line_have_ends_and_no_area() {
        let line = [[0.0, 0.0], [0.5, 0.5], [1.0, 1.0]];
        assert_eq!(hull(&line), [[0.0, 0.0], [1.0, 1.0]]);
        assert!(area(&hull(&line)).abs() < 1e-15);
        assert!(contains(&hull(&line), [0.25, 0.25]));
        assert!(!contains(&hull(&line), [0.25, 0.26]) && !contains(&hull(&line), [1.1, 1.1]));
        assert!(contains(&hull(&[[0.3, 0.3]]), [0.3, 0.3]) && !contains(&[], [0.0, 0.0]));
    }

    fn cloud() -> impl Strategy<Value = Vec<Point>> {
        proptest::collection::vec([0.0..1.0, 0.0..1.0], 3..60)
    }

    proptest! {
        #[test]
        fn every_point_is_within_the_hull_of_all(points in cloud()) {
            let hull = hull(&points);
            for point in points {
                prop_assert!(contains(&hull, point), "{point:?} {hull:?}");
            }
        }

        #[test]
        fn a_hull_is_its_own_hull_and_turns_left(points in cloud()) {
            let once = hull(&points);
            prop_assert_eq!(&hull(&once), &once);
            for corner in 0..once.len() {
                let at = |step: usize| once[(corner + step) % once.len()];
                prop_assert!(once.len() < 3 || turn(at(0), at(1), at(2)) > 0.0);
            }
        }

        #[test]
        fn an_intersection_is_within_both_and_the_same_either_way(one in cloud(), other in cloud()) {
            let (one, other) = (hull(&one), hull(&other));
            let common = intersection(&one, &other);
            let size = area(&common);
            prop_assert!(size <= area(&one).min(area(&other)) + 1e-12);
            prop_assert!((size - area(&intersection(&other, &one))).abs() < 1e-9);
            let middle = |index: usize| common.iter().map(|point| point[index]).sum::<f64>() / common.len() as f64;
            if size > 1e-9 {
                prop_assert!(contains(&one, [middle(0), middle(1)]) && contains(&other, [middle(0), middle(1)]));
            }
        }

        #[test]
        fn an_intersection_is_as_large_as_a_count_of_random_points_says(one in cloud(), other in cloud()) {
            let (one, other) = (hull(&one), hull(&other));
            // A lattice of 100 by 100: the error of an area is at most its outline times the step.
            let step = |index: u32| (f64::from(index) + 0.5) / 100.0;
            let lattice = (0..100).flat_map(|x| (0..100).map(move |y| [step(x), step(y)]));
            let inside = lattice.filter(|point| contains(&one, *point) && contains(&other, *point)).count();
            let size = area(&intersection(&one, &other));
            prop_assert!((size - inside as f64 / 1e4).abs() < 0.04, "{size} {inside}");
        }

        #[test]
        fn moving_both_keeps_the_area(one in cloud(), other in cloud(), by in [-3.0..3.0, -3.0..3.0]) {
            let common = |by: Point| {
                area(&intersection(&hull(&moved(&one, by)), &hull(&moved(&other, by))))
            };
            prop_assert!((common([0.0, 0.0]) - common(by)).abs() < 1e-9);
        }
    }
}
