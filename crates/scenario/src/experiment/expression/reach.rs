//! Which points of a matrix a check looks at.

use super::{Expression, Function, Link, Node, Selector};
use crate::experiment::Dimension;

impl Expression {
    /// Returns whether a measured value of the check is of `point`, whose parts are places in the labels of
    /// `dimensions`. So measurements of these points alone can judge it.
    pub fn looks_at(&self, dimensions: &[Dimension], point: &[usize]) -> bool {
        let mut all = Vec::new();
        selections(&self.root, &mut all);
        let takes = |selector: &Selector| {
            let place = dimensions.iter().position(|dimension| dimension.name == selector.dimension);
            // Links and flows are in the row of every point.
            place.is_none_or(|place| {
                (dimensions[place].labels[point[place]] == selector.label) != selector.except
            })
        };
        all.iter().any(|selectors| selectors.iter().all(takes))
    }
}

/// Collects the conditions of every metric.
fn selections<'n>(node: &'n Node, into: &mut Vec<&'n [Selector]>) {
    match node {
        Node::Number(_) | Node::Text(..) => {}
        Node::Metric(_, _, selectors) => into.push(selectors),
        Node::Call(_, Function::Value, _) => {}
        Node::Call(_, Function::Pareto, _) => into.push(&[]),
        // What follows are the dimensions to reduce over.
        Node::Call(_, _, arguments) => arguments.iter().take(1).for_each(|first| selections(first, into)),
        Node::And(parts) | Node::Or(parts) => parts.iter().for_each(|part| selections(part, into)),
        Node::Negative(inner) | Node::Not(inner) => selections(inner, into),
        Node::Arithmetic(left, _, right) => {
            selections(left, into);
            selections(right, into);
        }
        Node::Comparison(_, first, links) => {
            selections(first, into);
            for link in links {
                match link {
                    Link::Less(right)
                    | Link::AtMost(right)
                    | Link::More(right)
                    | Link::AtLeast(right)
                    | Link::About(right) => selections(right, into),
                    Link::Between(low, high) | Link::Around(low, high, _) => {
                        selections(low, into);
                        selections(high, into);
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn points(check: &str) -> Vec<[usize; 2]> {
        let dimension = |name: &str, labels: &[&str]| Dimension {
            name: name.into(),
            labels: labels.iter().map(|label| label.to_string()).collect(),
        };
        let dimensions = [dimension("scheme", &["sack", "bmcc"]), dimension("case", &["1", "10", "155"])];
        let check = Expression::parse(check).unwrap();
        let all = (0..2).flat_map(|scheme| (0..3).map(move |case| [scheme, case]));
        all.filter(|point| check.looks_at(&dimensions, point)).collect()
    }

    #[test]
    fn a_check_looks_at_the_points_that_its_metrics_select() {
        assert_eq!(points("utilization['sack', case = 10] ~ 0.8"), [[0, 1]]);
        assert_eq!(points("utilization['sack', case != 1] < 0.7"), [[0, 1], [0, 2]]);
        assert_eq!(points("decreasing(utilization['bmcc'], case)"), [[1, 0], [1, 1], [1, 2]]);
        assert_eq!(points("not (mean(flows.short_*.x['sack', case = 1], flows) in 1 .. 2)"), [[0, 0]]);
    }

    #[test]
    fn a_metric_without_conditions_looks_at_every_point() {
        assert_eq!(points("utilization > 0.5").len(), 6);
        let best = "x['sack', case = 1] <= min(x[case = 1], scheme)";
        assert_eq!(points(best), [[0, 0], [1, 0]]);
        assert_eq!(points("pareto(\"bmcc\")").len(), 6);
        assert_eq!(points("x['sack', case = 10] / value(case) > 1"), [[0, 1]]);
        assert_eq!(points("x['sack', case = 1] / -x['bmcc', case = 155] < 2 + 1"), [[0, 0], [1, 2]]);
    }
}
