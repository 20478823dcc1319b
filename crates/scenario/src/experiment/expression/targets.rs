//! The numbers that a check compares its measurements with.

use super::{Expression, Link, Node, Operator, TOLERANCE};

/// A number that a check states, and what it allows.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Target {
    /// Which of the measured values it is compared with, in the order in which a verdict shows them.
    pub subject: usize,
    /// The number; the center of a range.
    pub number: f64,
    /// The least value allowed.
    pub least: f64,
    /// The greatest value allowed.
    pub most: f64,
}

impl Target {
    /// Returns whether the check only bounds the value from one side.
    pub fn is_bound(&self) -> bool {
        self.least == f64::NEG_INFINITY || self.most == f64::INFINITY
    }
}

impl Expression {
    /// Returns the numbers that measurements must come close to, stay below or exceed: of every comparison
    /// that must hold, with one measured value on its left and one number or range on its right.
    pub fn targets(&self) -> Vec<Target> {
        let subjects = self.subjects();
        let parts = match &self.root {
            Node::And(parts) => parts.as_slice(),
            one => std::slice::from_ref(one),
        };
        let target = |part: &Node| {
            let Node::Comparison(_, first, links) = part else { return None };
            let [link] = links.as_slice() else { return None };
            let subject = subjects.iter().position(|subject| *subject == &**first)?;
            let (number, least, most) = allowed(link)?;
            Some(Target { subject, number, least, most })
        };
        parts.iter().filter_map(target).collect()
    }

    /// Returns how many values a verdict shows as measured.
    pub fn measured_values(&self) -> usize {
        self.subjects().len()
    }
}

/// The number of a comparison, and the range that it allows.
fn allowed(link: &Link) -> Option<(f64, f64, f64)> {
    let around = |number: f64, off: f64| (number, number - off, number + off);
    Some(match link {
        Link::Less(bound) | Link::AtMost(bound) => {
            let bound = constant(bound)?;
            (bound, f64::NEG_INFINITY, bound)
        }
        Link::More(bound) | Link::AtLeast(bound) => {
            let bound = constant(bound)?;
            (bound, bound, f64::INFINITY)
        }
        Link::About(number) => {
            let number = constant(number)?;
            around(number, TOLERANCE * number.abs())
        }
        Link::Between(low, high) => {
            let (low, high) = (constant(low)?, constant(high)?);
            (f64::midpoint(low, high), low, high)
        }
        Link::Around(number, tolerance, relative) => {
            let (number, tolerance) = (constant(number)?, constant(tolerance)?);
            around(number, if *relative { number.abs() * tolerance / 100.0 } else { tolerance })
        }
    })
}

/// The value of a node without measurements.
fn constant(node: &Node) -> Option<f64> {
    match node {
        Node::Number(number) => Some(*number),
        Node::Negative(inner) => Some(-constant(inner)?),
        Node::Arithmetic(left, operator, right) => {
            let (left, right) = (constant(left)?, constant(right)?);
            Some(match operator {
                Operator::Plus => left + right,
                Operator::Minus => left - right,
                Operator::Times => left * right,
                Operator::Over => left / right,
            })
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn targets(text: &str) -> Vec<(usize, f64, f64, f64)> {
        let targets = Expression::parse(text).unwrap().targets();
        targets.iter().map(|target| (target.subject, target.number, target.least, target.most)).collect()
    }

    #[test]
    fn a_target_is_what_a_measured_value_is_compared_with() {
        assert_eq!(targets("a.b ~ 2 * 50"), [(0, 100.0, 85.0, 115.0)]);
        assert_eq!(targets("a in 2 .. 4 and b in 10 +- 5%"), [(0, 3.0, 2.0, 4.0), (1, 10.0, 9.5, 10.5)]);
        assert_eq!(targets("a < b and b >= 90%"), [(1, 0.9, 0.9, f64::INFINITY)]);
        let [bound] = Expression::parse("a in 1 +- 1").unwrap().targets()[..] else { panic!("one target") };
        assert!(!bound.is_bound());
        assert!(Expression::parse("a <= 3").unwrap().targets()[0].is_bound());
    }

    #[test]
    fn orders_negations_and_alternatives_state_no_number() {
        for text in ["increasing(a, rtt)", "not a ~ 2", "a < 1 or a > 2", "1 < a <= 2", "a < b", "a ~ 2 * b"]
        {
            assert_eq!(targets(text), [], "{text}");
        }
        assert_eq!(Expression::parse("a < b and b >= 90%").unwrap().measured_values(), 2);
    }
}
