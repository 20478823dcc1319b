//! Nelder and Mead's simplex search, with restarts.

/// Looks for the least value of `cost` near `start`, in about `evaluations` calls: the point and its value.
/// The search starts afresh around the best point whenever the simplex has shrunk to nothing.
pub fn minimize(
    cost: impl Fn(&[f64]) -> f64,
    start: &[f64],
    steps: &[f64],
    evaluations: usize,
) -> (Vec<f64>, f64) {
    let mut calls = 0;
    let mut evaluate = |point: Vec<f64>| {
        calls += 1;
        let value = cost(&point);
        (point, value, calls)
    };
    let (point, value, _) = evaluate(start.to_vec());
    let mut best = (point, value);
    let mut stretch = 1.0;
    loop {
        let mut simplex = vec![best.clone()];
        let mut used = 0;
        for axis in 0..start.len() {
            let mut point = best.0.clone();
            point[axis] += steps[axis] * stretch;
            let (point, value, calls) = evaluate(point);
            used = calls;
            simplex.push((point, value));
        }
        loop {
            simplex.sort_by(|a, b| a.1.total_cmp(&b.1));
            let last = simplex.len() - 1;
            let flat = simplex[last].1 - simplex[0].1 <= 1e-3 * simplex[0].1.abs();
            if used >= evaluations || flat {
                break;
            }
            let (worst, worst_value) = simplex[last].clone();
            let centre: Vec<f64> = (0..start.len())
                .map(|axis| simplex[..last].iter().map(|(point, _)| point[axis]).sum::<f64>() / last as f64)
                .collect();
            let along = |factor: f64| -> Vec<f64> {
                centre.iter().zip(&worst).map(|(c, w)| c + factor * (w - c)).collect()
            };
            let reflected = evaluate(along(-1.0));
            used = reflected.2;
            if reflected.1 < simplex[0].1 {
                let expanded = evaluate(along(-2.0));
                used = expanded.2;
                let better = if expanded.1 < reflected.1 { expanded } else { reflected };
                simplex[last] = (better.0, better.1);
            } else if reflected.1 < simplex[last - 1].1 {
                simplex[last] = (reflected.0, reflected.1);
            } else {
                let towards = if reflected.1 < worst_value { -0.5 } else { 0.5 };
                let contracted = evaluate(along(towards));
                used = contracted.2;
                if contracted.1 < worst_value.min(reflected.1) {
                    simplex[last] = (contracted.0, contracted.1);
                } else {
                    let anchor = simplex[0].0.clone();
                    for vertex in &mut simplex[1..] {
                        let point = vertex.0.iter().zip(&anchor).map(|(x, a)| a + 0.5 * (x - a)).collect();
                        let moved = evaluate(point);
                        used = moved.2;
                        *vertex = (moved.0, moved.1);
                    }
                }
            }
        }
        simplex.sort_by(|a, b| a.1.total_cmp(&b.1));
        best = simplex.swap_remove(0);
        if used >= evaluations {
            return best;
        }
        stretch *= -0.5;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_the_bottom_of_a_curved_valley() {
        // Rosenbrock's function: least, 0, at (1, 1).
        let valley = |p: &[f64]| {
            let (a, b) = (1.0 - p[0], p[1] - p[0] * p[0]);
            a * a + 100.0 * b * b
        };
        let (point, value) = minimize(valley, &[-1.2, 1.0], &[0.5, 0.5], 600);
        assert!(value < 1e-6, "{value}");
        assert!((point[0] - 1.0).abs() < 1e-2 && (point[1] - 1.0).abs() < 1e-2, "{point:?}");
    }

    #[test]
    fn leaves_out_points_without_a_finite_value() {
        let half = |p: &[f64]| if p[0] < 0.0 { f64::INFINITY } else { (p[0] - 0.25) * (p[0] - 0.25) };
        let (point, _) = minimize(half, &[2.0], &[-1.5], 100);
        assert!((point[0] - 0.25).abs() < 1e-3, "{point:?}");
    }
}
