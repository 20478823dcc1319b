//! The language in which an experiment states what must hold of its measurements.
//!
//! ```text
//! check      = all { "or" all }                 all = one { "and" one }           one = "not" one | compared
//! compared   = sum { ( "<" | "<=" | ">" | ">=" | "~" ) sum | "in" range }   chains hold link by link
//! range      = sum ".." sum | sum "+-" sum [ "%" ]                         a percentage is of the centre
//! sum        = product { ( "+" | "-" ) product }      product = unary { ( "*" | "/" ) unary }
//! unary      = [ "-" ] atom
//! atom       = number [ "%" ] | metric [ "[" selector { "," selector } "]" ] | function "(" ... ")"
//!            | "(" check ")"
//! metric     = the path of a number in a row's JSON, by dots; an element of `flows` or `links` goes by its
//!              name, and `*` at its end stands for the rest of any: `links.*.utilization`,
//!              `flows.long_*.throughput_mbps`
//! selector   = "label" of a scheme | dimension ( "=" | "!=" ) ( "label" | number )
//! ```
//!
//! A metric is the median over the seeds, one value for every point of the experiment's matrix that the
//! selectors leave. Arithmetic and comparisons go point by point; a check holds when it does at every point.
//! `a ~ b` says that a is within 15 % of b. A metric with `*` has one more dimension, `links` or `flows`.
//! Functions, with the dimensions to reduce over, up to three (otherwise over all). `seeds` is one of these:
//! what is reduced over it is each run's number instead of the median.
//!
//! | function | gives |
//! |---|---|
//! | `mean(x)`, `median(x)`, `min(x)`, `max(x)`, `sum(x)`, `count(x)` | one number, or one per point left |
//! | `deviation(x)`, `jain(x)` | their standard deviation and Jain's index, reduced in the same way |
//! | `abs(x)`, `log10(x)` | point by point |
//! | `value(dimension)` | the number that each label of a swept dimension is |
//! | `increasing(x, dimension)`, `decreasing(x, dimension)` | whether x is strictly so in the file's order |
//! | `pareto("scheme")` | whether no other has more throughput and less p95 queueing delay, each by > 2 % |

use std::fmt;

use thiserror::Error;

mod evaluate;
mod lexer;
mod parser;
mod reach;
mod targets;

pub(crate) use evaluate::Sides;
pub use evaluate::{Grid, Value};
pub use targets::Target;

/// How far from its target a value may lie where no tolerance is given.
pub const TOLERANCE: f64 = 0.15;
/// By how much another scheme must be better to count as better.
pub const PARETO_MARGIN: f64 = 0.02;

/// An expression, checked for its grammar.
#[derive(Clone, Debug, PartialEq)]
pub struct Expression {
    text: String,
    root: Node,
}

/// What is wrong with an expression, and at which character.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("at character {at}: {fault}")]
pub struct ExpressionError {
    /// Counted from 1.
    pub at: usize,
    /// What is wrong.
    pub fault: Fault,
}

/// What is wrong with an expression.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum Fault {
    /// Something else should stand there.
    #[error("expected {expected}, found {found}")]
    Unexpected {
        /// What would have been valid.
        expected: &'static str,
        /// What stands there.
        found: String,
    },
    /// A name that refers to nothing.
    #[error("unknown {what} `{name}`: valid are {valid}")]
    Unknown {
        /// What it should name.
        what: &'static str,
        /// The name.
        name: String,
        /// The names that exist.
        valid: String,
    },
    /// A number where a truth value belongs, or the other way round.
    #[error("expected {expected}, found {found}")]
    Kind {
        /// What belongs there.
        expected: &'static str,
        /// What is there.
        found: &'static str,
    },
    /// A call with the wrong number of arguments.
    #[error("`{function}` takes {expected}")]
    Arguments {
        /// The function.
        function: &'static str,
        /// What it takes.
        expected: &'static str,
    },
    /// More nesting than anyone would write.
    #[error("nested more than {most} deep")]
    TooDeep {
        /// The limit.
        most: usize,
    },
    /// More text than anyone would write.
    #[error("longer than {most} characters")]
    TooLong {
        /// The limit.
        most: usize,
    },
    /// A measurement that is not there.
    #[error("no value of `{metric}` at {point}")]
    NoValue {
        /// What was to be measured.
        metric: String,
        /// Where in the matrix.
        point: String,
    },
}

/// A position in the text. All are equal, so that expressions compare by what they mean.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct At(pub(crate) usize);

impl PartialEq for At {
    fn eq(&self, _other: &At) -> bool {
        true
    }
}

/// A node of the syntax tree.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Node {
    Number(f64),
    Text(At, String),
    Metric(At, String, Vec<Selector>),
    Call(At, Function, Vec<Node>),
    Negative(Box<Node>),
    Arithmetic(Box<Node>, Operator, Box<Node>),
    Comparison(At, Box<Node>, Vec<Link>),
    Not(Box<Node>),
    And(Vec<Node>),
    Or(Vec<Node>),
}

/// One link of a chain of comparisons.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Link {
    Less(Node),
    AtMost(Node),
    More(Node),
    AtLeast(Node),
    About(Node),
    Between(Node, Node),
    Around(Node, Node, bool),
}

/// A condition on one dimension.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Selector {
    pub(crate) at: At,
    pub(crate) dimension: String,
    pub(crate) label: String,
    /// Whether the label is left out, rather than all others.
    pub(crate) except: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Operator {
    Plus,
    Minus,
    Times,
    Over,
}

/// The functions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Function {
    Mean,
    GeometricMean,
    Median,
    Min,
    Max,
    Sum,
    Count,
    Deviation,
    Jain,
    Abs,
    Log10,
    Value,
    Increasing,
    Decreasing,
    Pareto,
}

impl Function {
    pub(crate) const ALL: [(Function, &'static str); 15] = [
        (Function::Mean, "mean"),
        (Function::GeometricMean, "geomean"),
        (Function::Median, "median"),
        (Function::Min, "min"),
        (Function::Max, "max"),
        (Function::Sum, "sum"),
        (Function::Count, "count"),
        (Function::Deviation, "deviation"),
        (Function::Jain, "jain"),
        (Function::Abs, "abs"),
        (Function::Log10, "log10"),
        (Function::Value, "value"),
        (Function::Increasing, "increasing"),
        (Function::Decreasing, "decreasing"),
        (Function::Pareto, "pareto"),
    ];

    pub(crate) fn name(self) -> &'static str {
        Function::ALL.iter().find(|(function, _)| *function == self).map_or("", |(_, name)| name)
    }
}

impl Expression {
    /// Reads an expression.
    pub fn parse(text: &str) -> Result<Self, ExpressionError> {
        Ok(Expression { text: text.trim().to_string(), root: parser::parse(text)? })
    }

    /// Returns the text it was read from.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Returns the left side of a check that is a comparison.
    pub fn left(&self) -> Option<String> {
        let Node::Comparison(_, left, _) = &self.root else { return None };
        Some(left.to_string())
    }

    /// The numbers that a check is about: both sides of each comparison, where they are measured and not
    /// given, and what a test of order looks at.
    pub(crate) fn subjects(&self) -> Vec<&Node> {
        let mut subjects = Vec::new();
        collect(&self.root, &mut subjects);
        subjects
    }
}

fn collect<'n>(node: &'n Node, subjects: &mut Vec<&'n Node>) {
    let mut measured = |node: &'n Node| {
        if is_measured(node) && !subjects.contains(&node) {
            subjects.push(node);
        }
    };
    match node {
        Node::Comparison(_, first, links) => {
            measured(first);
            for link in links {
                match link {
                    Link::Less(right)
                    | Link::AtMost(right)
                    | Link::More(right)
                    | Link::AtLeast(right)
                    | Link::About(right)
                    | Link::Around(right, ..) => measured(right),
                    Link::Between(low, high) => {
                        measured(low);
                        measured(high);
                    }
                }
            }
        }
        Node::Call(_, Function::Increasing | Function::Decreasing, arguments) => measured(&arguments[0]),
        Node::Not(inner) => collect(inner, subjects),
        Node::And(parts) | Node::Or(parts) => parts.iter().for_each(|part| collect(part, subjects)),
        _ => {}
    }
}

/// Whether a number comes from the measurements.
fn is_measured(node: &Node) -> bool {
    match node {
        Node::Metric(..) => true,
        Node::Call(_, Function::Value, _) => false,
        Node::Call(_, _, arguments) => arguments.iter().any(is_measured),
        Node::Negative(inner) => is_measured(inner),
        Node::Arithmetic(left, _, right) => is_measured(left) || is_measured(right),
        _ => false,
    }
}

/// Reads back as the same expression.
impl fmt::Display for Expression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.root.fmt(f)
    }
}

impl fmt::Display for Node {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Node::Number(number) => write!(f, "{number}"),
            Node::Text(_, text) => f.write_str(&quoted(text)),
            Node::Metric(_, name, selectors) => {
                f.write_str(name)?;
                for (index, selector) in selectors.iter().enumerate() {
                    let open = if index == 0 { "[" } else { ", " };
                    let sign = if selector.except { "!=" } else { "=" };
                    write!(f, "{open}{} {sign} {}", selector.dimension, quoted(&selector.label))?;
                }
                f.write_str(if selectors.is_empty() { "" } else { "]" })
            }
            Node::Call(_, function, arguments) => {
                write!(f, "{}(", function.name())?;
                join(f, arguments, ", ")?;
                f.write_str(")")
            }
            Node::Negative(inner) => write!(f, "-({inner})"),
            Node::Arithmetic(left, operator, right) => {
                let sign = match operator {
                    Operator::Plus => "+",
                    Operator::Minus => "-",
                    Operator::Times => "*",
                    Operator::Over => "/",
                };
                write!(f, "({left} {sign} {right})")
            }
            Node::Comparison(_, first, links) => {
                write!(f, "({first}")?;
                for link in links {
                    match link {
                        Link::Less(node) => write!(f, " < {node}")?,
                        Link::AtMost(node) => write!(f, " <= {node}")?,
                        Link::More(node) => write!(f, " > {node}")?,
                        Link::AtLeast(node) => write!(f, " >= {node}")?,
                        Link::About(node) => write!(f, " ~ {node}")?,
                        Link::Between(low, high) => write!(f, " in {low} .. {high}")?,
                        Link::Around(center, tolerance, relative) => {
                            write!(f, " in {center} +- ({tolerance}){}", if *relative { " %" } else { "" })?;
                        }
                    }
                }
                f.write_str(")")
            }
            Node::Not(inner) => write!(f, "(not {inner})"),
            Node::And(parts) => paren(f, parts, " and "),
            Node::Or(parts) => paren(f, parts, " or "),
        }
    }
}

/// A label holds at most one kind of quote, so the other can enclose it.
fn quoted(label: &str) -> String {
    let quote = if label.contains('"') { '\'' } else { '"' };
    format!("{quote}{label}{quote}")
}

fn paren(f: &mut fmt::Formatter<'_>, parts: &[Node], separator: &str) -> fmt::Result {
    f.write_str("(")?;
    join(f, parts, separator)?;
    f.write_str(")")
}

fn join(f: &mut fmt::Formatter<'_>, parts: &[Node], separator: &str) -> fmt::Result {
    for (index, part) in parts.iter().enumerate() {
        write!(f, "{}{part}", if index == 0 { "" } else { separator })?;
    }
    Ok(())
}

#[cfg(test)]
mod tests;
