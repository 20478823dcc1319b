//! The optimiser: CMA-ES, started again and again from the worst of some random places.
//!
//! The algorithm and its constants are those of N. Hansen, "The CMA Evolution Strategy: A Tutorial",
//! arXiv:1604.00772 (hansen16), with the weights of the better half alone:
//!
//! ```text
//! x_k   = m + sigma B D z_k, z_k ~ N(0, I), k = 1..lambda             hansen16 (38) to (40)
//! m     = m + sigma <y>_w, <y>_w = sum_i w_i y_i:lambda               (41), (42)
//! p_s   = (1 - c_s) p_s + sqrt(c_s (2 - c_s) mu_eff) C^(-1/2) <y>_w   (43)
//! sigma = sigma exp((c_s / d_s) (|p_s| / E|N(0, I)| - 1))             (44)
//! p_c   = (1 - c_c) p_c + h_s sqrt(c_c (2 - c_c) mu_eff) <y>_w        (45)
//! C     = (1 - c_1 - c_mu) C + c_1 p_c p_c^T + c_mu sum_i w_i y_i y_i^T  (47)
//! ```
//!
//! It is our own because what there is does not fit: the crate `cmaes` draws from a generator and computes by
//! functions that differ between machines, calls the objective itself so that a journal cannot stand between,
//! and brings `nalgebra` and `getrandom` into the build for browsers; `argmin` has no CMA-ES; `genevo` wants
//! whole numbers as fitness and its own threads.
//!
//! The cube is made of the whole space by mirrors, so that every step leads to a link. Nothing depends on
//! how many steps are allowed: a longer search begins with the shorter one.

use brakelight_core::random::Random;

use super::Evaluate;
use crate::error::Error;

/// Links of one generation, whatever the number of processors.
pub(super) const LAMBDA: usize = 16;

/// Random links before the first start; half as many before each further one.
pub(super) const RANDOM: usize = 4 * LAMBDA;

/// The first step's length, as a share of the cube.
const SIGMA: f64 = 0.2;

/// A run of the strategy ends after so many generations without a new worst link of its own, or when its
/// steps are as short as this.
const PATIENCE: u32 = 12;
const SHORTEST: f64 = 2e-3;

/// The worst place found, and what it does.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Worst {
    pub place: Vec<f64>,
    pub damage: f64,
}

/// The result of a search.
#[derive(Clone, Debug)]
pub(super) struct Searched {
    pub worst: Worst,
    /// Damage of the random links that it began with.
    pub random: Vec<f64>,
    pub starts: u32,
}

/// Searches the cube of so many dimensions for the place with the largest damage, by `most` evaluations.
/// `evaluate` says what each of some places does.
pub(super) fn search(
    dimension: usize,
    most: usize,
    mut random: Random,
    evaluate: &mut Evaluate<'_, Vec<f64>>,
) -> Result<Searched, Error> {
    let mut left = most;
    let mut worst = Worst { place: vec![0.5; dimension], damage: f64::NEG_INFINITY };
    // Places from which no run has started yet.
    let mut waiting: Vec<Worst> = Vec::new();
    let mut first = Vec::new();
    let mut starts = 0;
    let mut look = |places: Vec<Vec<f64>>, left: &mut usize, worst: &mut Worst| {
        let places = &places[..places.len().min(*left)];
        *left -= places.len();
        let damage = evaluate(places)?;
        let found: Vec<Worst> =
            places.iter().zip(damage).map(|(place, damage)| Worst { place: place.clone(), damage }).collect();
        for one in &found {
            if one.damage > worst.damage {
                *worst = one.clone();
            }
        }
        Ok::<_, Error>(found)
    };
    while left > 0 {
        let count = if starts == 0 { RANDOM } else { RANDOM / 2 };
        let places = (0..count).map(|_| (0..dimension).map(|_| random.uniform()).collect()).collect();
        let found = look(places, &mut left, &mut worst)?;
        if starts == 0 {
            first = found.iter().map(|one| one.damage).collect();
        }
        waiting.extend(found);
        let place =
            (0..waiting.len()).reduce(|a, b| if waiting[b].damage > waiting[a].damage { b } else { a });
        let start = waiting.swap_remove(place.unwrap_or_default());
        starts += 1;
        let mut strategy = Strategy::new(&start.place);
        let (mut best, mut idle) = (start.damage, 0);
        while left >= LAMBDA && idle < PATIENCE && strategy.step() > SHORTEST {
            let steps: Vec<Vec<f64>> = (0..LAMBDA).map(|_| strategy.draw(&mut random)).collect();
            let places = steps.iter().map(|y| strategy.place(y)).collect();
            let found = look(places, &mut left, &mut worst)?;
            let mut ranked: Vec<usize> = (0..found.len()).collect();
            ranked.sort_by(|a, b| found[*b].damage.total_cmp(&found[*a].damage).then(a.cmp(b)));
            idle += 1;
            if found[ranked[0]].damage > best {
                (best, idle) = (found[ranked[0]].damage, 0);
            }
            strategy.learn(&ranked.iter().map(|place| steps[*place].as_slice()).collect::<Vec<_>>());
        }
        if left < LAMBDA {
            break;
        }
    }
    Ok(Searched { worst, random: first, starts })
}

/// The state of CMA-ES.
struct Strategy {
    n: usize,
    weights: Vec<f64>,
    mu_eff: f64,
    c_s: f64,
    d_s: f64,
    c_c: f64,
    c_1: f64,
    c_mu: f64,
    /// E|N(0, I)|.
    chi: f64,
    mean: Vec<f64>,
    sigma: f64,
    p_s: Vec<f64>,
    p_c: Vec<f64>,
    /// C, row by row.
    covariance: Vec<f64>,
    /// The eigenvectors of C, as columns, and the roots of its eigenvalues.
    vectors: Vec<f64>,
    lengths: Vec<f64>,
    generation: i32,
}

impl Strategy {
    /// hansen16 table 1.
    fn new(mean: &[f64]) -> Self {
        let n = mean.len();
        let dimension = n as f64;
        let mu = LAMBDA / 2;
        let raw: Vec<f64> =
            (1..=mu).map(|i| libm::log(f64::midpoint(LAMBDA as f64, 1.0)) - libm::log(i as f64)).collect();
        let sum: f64 = raw.iter().sum();
        let weights: Vec<f64> = raw.iter().map(|weight| weight / sum).collect();
        let mu_eff = 1.0 / weights.iter().map(|weight| weight * weight).sum::<f64>();
        let c_s = (mu_eff + 2.0) / (dimension + mu_eff + 5.0);
        let c_1 = 2.0 / ((dimension + 1.3) * (dimension + 1.3) + mu_eff);
        let c_mu =
            2.0 * (0.25 + mu_eff + 1.0 / mu_eff - 2.0) / ((dimension + 2.0) * (dimension + 2.0) + mu_eff);
        let mut identity = vec![0.0; n * n];
        (0..n).for_each(|i| identity[i * n + i] = 1.0);
        Strategy {
            n,
            mu_eff,
            c_s,
            d_s: 1.0 + 2.0 * (libm::sqrt((mu_eff - 1.0) / (dimension + 1.0)) - 1.0).max(0.0) + c_s,
            c_c: (4.0 + mu_eff / dimension) / (dimension + 4.0 + 2.0 * mu_eff / dimension),
            c_1,
            c_mu: c_mu.min(1.0 - c_1),
            chi: libm::sqrt(dimension)
                * (1.0 - 1.0 / (4.0 * dimension) + 1.0 / (21.0 * dimension * dimension)),
            weights,
            mean: mean.to_vec(),
            sigma: SIGMA,
            p_s: vec![0.0; n],
            p_c: vec![0.0; n],
            covariance: identity.clone(),
            vectors: identity,
            lengths: vec![1.0; n],
            generation: 0,
        }
    }

    /// The length of its longest step.
    fn step(&self) -> f64 {
        self.sigma * self.lengths.iter().fold(0.0, |a: f64, b| a.max(*b))
    }

    /// y = B D z.
    fn draw(&self, random: &mut Random) -> Vec<f64> {
        let z: Vec<f64> = self.lengths.iter().map(|length| length * random.normal()).collect();
        (0..self.n).map(|row| (0..self.n).map(|i| self.vectors[row * self.n + i] * z[i]).sum()).collect()
    }

    /// The place in the cube of a step y.
    fn place(&self, y: &[f64]) -> Vec<f64> {
        self.mean.iter().zip(y).map(|(mean, y)| mirrored(mean + self.sigma * y)).collect()
    }

    /// Takes the steps of a generation, the worst link first.
    fn learn(&mut self, ranked: &[&[f64]]) {
        let n = self.n;
        self.generation += 1;
        let mean_step: Vec<f64> =
            (0..n).map(|i| self.weights.iter().zip(ranked).map(|(weight, y)| weight * y[i]).sum()).collect();
        for (mean, y) in self.mean.iter_mut().zip(&mean_step) {
            *mean = mirrored(*mean + self.sigma * y);
        }
        // C^(-1/2) y = B D^-1 B^T y
        let turned: Vec<f64> = (0..n)
            .map(|i| {
                (0..n).map(|row| self.vectors[row * n + i] * mean_step[row]).sum::<f64>() / self.lengths[i]
            })
            .collect();
        let gain = libm::sqrt(self.c_s * (2.0 - self.c_s) * self.mu_eff);
        for row in 0..n {
            let white: f64 = (0..n).map(|i| self.vectors[row * n + i] * turned[i]).sum();
            self.p_s[row] = (1.0 - self.c_s) * self.p_s[row] + gain * white;
        }
        let length = libm::sqrt(self.p_s.iter().map(|p| p * p).sum());
        // hansen16 after (45): no update along a path that is too long.
        let settled = libm::sqrt(1.0 - libm::pow(1.0 - self.c_s, 2.0 * f64::from(self.generation)));
        let h_s = f64::from(u8::from(length / settled < (1.4 + 2.0 / (n as f64 + 1.0)) * self.chi));
        let gain = h_s * libm::sqrt(self.c_c * (2.0 - self.c_c) * self.mu_eff);
        for (p, y) in self.p_c.iter_mut().zip(&mean_step) {
            *p = (1.0 - self.c_c) * *p + gain * y;
        }
        let missing = (1.0 - h_s) * self.c_c * (2.0 - self.c_c);
        for row in 0..n {
            for column in 0..n {
                let rank_mu: f64 =
                    self.weights.iter().zip(ranked).map(|(weight, y)| weight * y[row] * y[column]).sum();
                let own = &mut self.covariance[row * n + column];
                *own = (1.0 + self.c_1 * missing - self.c_1 - self.c_mu) * *own
                    + self.c_1 * self.p_c[row] * self.p_c[column]
                    + self.c_mu * rank_mu;
            }
        }
        self.sigma *= libm::exp((self.c_s / self.d_s) * (length / self.chi - 1.0));
        // Beyond the cube's width all places are alike.
        self.sigma = self.sigma.min(0.5);
        let (values, vectors) = eigen(&self.covariance, n);
        self.lengths = values.iter().map(|value| libm::sqrt(value.max(1e-12))).collect();
        self.vectors = vectors;
    }
}

/// `x` as a place between two mirrors at 0 and 1.
fn mirrored(x: f64) -> f64 {
    let turn = x - 2.0 * libm::floor(x / 2.0);
    if turn > 1.0 { 2.0 - turn } else { turn }
}

/// Eigenvalues of a symmetric matrix, and its eigenvectors as columns: the cyclic Jacobi method (Golub and
/// Van Loan, Matrix Computations, 8.5).
fn eigen(matrix: &[f64], n: usize) -> (Vec<f64>, Vec<f64>) {
    const SWEEPS: usize = 30;
    let mut a = matrix.to_vec();
    let mut v = vec![0.0; n * n];
    (0..n).for_each(|i| v[i * n + i] = 1.0);
    for _ in 0..SWEEPS {
        let off: f64 = (0..n)
            .flat_map(|p| (p + 1..n).map(move |q| (p, q)))
            .map(|(p, q)| a[p * n + q] * a[p * n + q])
            .sum();
        if off < 1e-22 {
            break;
        }
        for p in 0..n {
            for q in p + 1..n {
                let between = a[p * n + q];
                if between == 0.0 {
                    continue;
                }
                let theta = (a[q * n + q] - a[p * n + p]) / (2.0 * between);
                let t = f64::copysign(1.0, theta) / (theta.abs() + libm::sqrt(theta * theta + 1.0));
                let c = 1.0 / libm::sqrt(t * t + 1.0);
                let s = t * c;
                let turn = |m: &mut [f64], one: usize, two: usize| {
                    let (x, y) = (m[one], m[two]);
                    (m[one], m[two]) = (c * x - s * y, s * x + c * y);
                };
                for k in 0..n {
                    turn(&mut a, k * n + p, k * n + q);
                }
                for k in 0..n {
                    turn(&mut a, p * n + k, q * n + k);
                    turn(&mut v, k * n + p, k * n + q);
                }
            }
        }
    }
    ((0..n).map(|i| a[i * n + i]).collect(), v)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jacobi_finds_the_eigenvalues_of_a_known_matrix() {
        // Of [[2, 1, 0], [1, 2, 1], [0, 1, 2]]: 2 - sqrt 2, 2, 2 + sqrt 2.
        let matrix = [2.0, 1.0, 0.0, 1.0, 2.0, 1.0, 0.0, 1.0, 2.0];
        let (mut values, vectors) = eigen(&matrix, 3);
        for i in 0..3 {
            for row in 0..3 {
                let product: f64 = (0..3).map(|k| matrix[row * 3 + k] * vectors[k * 3 + i]).sum();
                assert!((product - values[i] * vectors[row * 3 + i]).abs() < 1e-10);
            }
        }
        values.sort_by(f64::total_cmp);
        let root = libm::sqrt(2.0);
        let close = values.iter().zip([2.0 - root, 2.0, 2.0 + root]).all(|(a, b)| (a - b).abs() < 1e-10);
        assert!(close, "{values:?}");
    }

    /// A narrow bent valley in eight dimensions: random places lie at -1 and below, its bottom at 0.
    #[test]
    fn it_finds_what_random_places_do_not() {
        let damage = |x: &Vec<f64>| {
            -x.windows(2)
                .map(|pair| {
                    let (a, b) = (pair[0] - 0.3, pair[1] - 0.3);
                    100.0 * (b - a * a) * (b - a * a) + a * a
                })
                .sum::<f64>()
        };
        let mut evaluate = |places: &[Vec<f64>]| Ok(places.iter().map(damage).collect());
        let found = search(8, 4000, Random::stream(1, "test"), &mut evaluate).unwrap();
        assert!(found.worst.damage > -1e-2, "{}", found.worst.damage);
        let random = found.random.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        assert!(random < -1.0, "{random}");
    }

    #[test]
    fn a_longer_search_begins_with_the_shorter_one() {
        let trail = |most: usize| {
            let mut seen = Vec::new();
            let mut evaluate = |places: &[Vec<f64>]| {
                seen.extend(places.to_vec());
                Ok(places.iter().map(|x| -(x[0] - 0.7).abs() - (x[1] - 0.1).abs()).collect())
            };
            search(2, most, Random::stream(3, "test"), &mut evaluate).unwrap();
            seen
        };
        let (short, long) = (trail(300), trail(1000));
        assert!(short.len() <= 300 && long.len() <= 1000 && long.len() > 900);
        let whole = short.len() / LAMBDA * LAMBDA;
        assert_eq!(short[..whole - RANDOM / 2], long[..whole - RANDOM / 2]);
    }

    #[test]
    fn mirrors_keep_places_in_the_cube() {
        assert_eq!([-0.25, 0.25, 1.25, 2.25, -1.5].map(mirrored), [0.25, 0.25, 0.75, 0.25, 0.5]);
    }
}
