//! From tokens to a tree, by recursive descent with one function per level of precedence.

use super::lexer::{Kind, Token, tokens};
use super::{At, ExpressionError, Fault, Function, Link, Node, Operator, Selector};

/// More nesting than anyone would write, and far less than a stack holds.
const DEEPEST: usize = 64;
/// Longer than any check; it bounds the depth of a chain such as `a + a + ...`, which leans to the left.
const LONGEST: usize = 1_000;

/// Words that are not metrics.
const KEYWORDS: [&str; 4] = ["and", "or", "not", "in"];

struct Parser {
    tokens: Vec<Token>,
    next: usize,
    depth: usize,
}

pub(super) fn parse(text: &str) -> Result<Node, ExpressionError> {
    if text.len() > LONGEST {
        return Err(ExpressionError { at: LONGEST, fault: Fault::TooLong { most: LONGEST } });
    }
    let mut parser = Parser { tokens: tokens(text)?, next: 0, depth: 0 };
    let root = parser.check()?;
    match parser.peek() {
        Kind::End => Ok(root),
        _ => Err(parser.unexpected("an operator or the end")),
    }
}

impl Parser {
    fn peek(&self) -> &Kind {
        &self.tokens[self.next].kind
    }

    fn at(&self) -> At {
        At(self.tokens[self.next].at)
    }

    /// Steps over the token; the last one, the end, stays.
    fn advance(&mut self) {
        self.next = (self.next + 1).min(self.tokens.len() - 1);
    }

    fn take(&mut self, sign: &str) -> bool {
        let found = matches!(self.peek(), Kind::Sign(other) if *other == sign);
        if found {
            self.advance();
        }
        found
    }

    fn take_word(&mut self, word: &str) -> bool {
        let found = matches!(self.peek(), Kind::Word(other) if other == word);
        if found {
            self.advance();
        }
        found
    }

    fn expect(&mut self, sign: &str, expected: &'static str) -> Result<(), ExpressionError> {
        if self.take(sign) { Ok(()) } else { Err(self.unexpected(expected)) }
    }

    fn unexpected(&self, expected: &'static str) -> ExpressionError {
        let found = match self.peek() {
            Kind::Number(number) => format!("`{number}`"),
            Kind::Text(text) => format!("\"{text}\""),
            Kind::Word(word) => format!("`{word}`"),
            Kind::Sign(sign) => format!("`{sign}`"),
            Kind::End => "the end".to_string(),
        };
        ExpressionError { at: self.at().0, fault: Fault::Unexpected { expected, found } }
    }

    fn check(&mut self) -> Result<Node, ExpressionError> {
        self.depth += 1;
        if self.depth > DEEPEST {
            return Err(ExpressionError { at: self.at().0, fault: Fault::TooDeep { most: DEEPEST } });
        }
        let mut parts = vec![self.all()?];
        while self.take_word("or") {
            parts.push(self.all()?);
        }
        self.depth -= 1;
        Ok(if parts.len() == 1 { parts.swap_remove(0) } else { Node::Or(parts) })
    }

    fn all(&mut self) -> Result<Node, ExpressionError> {
        let mut parts = vec![self.one()?];
        while self.take_word("and") {
            parts.push(self.one()?);
        }
        Ok(if parts.len() == 1 { parts.swap_remove(0) } else { Node::And(parts) })
    }

    fn one(&mut self) -> Result<Node, ExpressionError> {
        // Two negations cancel, so nesting cannot grow here.
        let mut negated = false;
        while self.take_word("not") {
            negated = !negated;
        }
        let node = self.compared()?;
        Ok(if negated { Node::Not(Box::new(node)) } else { node })
    }

    fn compared(&mut self) -> Result<Node, ExpressionError> {
        let at = self.at();
        let first = self.sum()?;
        let mut links = Vec::new();
        loop {
            links.push(if self.take("<=") {
                Link::AtMost(self.sum()?)
            } else if self.take(">=") {
                Link::AtLeast(self.sum()?)
            } else if self.take("<") {
                Link::Less(self.sum()?)
            } else if self.take(">") {
                Link::More(self.sum()?)
            } else if self.take("~") {
                Link::About(self.sum()?)
            } else if self.take_word("in") {
                self.range()?
            } else {
                break;
            });
        }
        Ok(if links.is_empty() { first } else { Node::Comparison(at, Box::new(first), links) })
    }

    fn range(&mut self) -> Result<Link, ExpressionError> {
        let first = self.sum()?;
        if self.take("..") {
            return Ok(Link::Between(first, self.sum()?));
        }
        self.expect("+-", "`..` and an upper end, or `+-` and a tolerance")?;
        let tolerance = match *self.peek() {
            // The tolerance keeps its own percent sign: it is relative to the centre.
            Kind::Number(number) => {
                self.advance();
                Node::Number(number)
            }
            _ => self.sum()?,
        };
        let relative = self.take("%");
        Ok(Link::Around(first, tolerance, relative))
    }

    fn sum(&mut self) -> Result<Node, ExpressionError> {
        let mut node = self.product()?;
        loop {
            let operator = if self.take("+") {
                Operator::Plus
            } else if self.take("-") {
                Operator::Minus
            } else {
                return Ok(node);
            };
            node = Node::Arithmetic(Box::new(node), operator, Box::new(self.product()?));
        }
    }

    fn product(&mut self) -> Result<Node, ExpressionError> {
        let mut node = self.unary()?;
        loop {
            let operator = if self.take("*") {
                Operator::Times
            } else if self.take("/") {
                Operator::Over
            } else {
                return Ok(node);
            };
            node = Node::Arithmetic(Box::new(node), operator, Box::new(self.unary()?));
        }
    }

    fn unary(&mut self) -> Result<Node, ExpressionError> {
        let mut negative = false;
        while self.take("-") {
            negative = !negative;
        }
        let node = self.atom()?;
        Ok(if negative { Node::Negative(Box::new(node)) } else { node })
    }

    fn atom(&mut self) -> Result<Node, ExpressionError> {
        let at = self.at();
        match self.peek().clone() {
            Kind::Number(number) => {
                self.advance();
                Ok(Node::Number(if self.take("%") { number / 100.0 } else { number }))
            }
            Kind::Text(text) => {
                self.advance();
                Ok(Node::Text(at, text))
            }
            Kind::Word(word) if !KEYWORDS.contains(&word.as_str()) => {
                self.advance();
                if self.take("(") { self.call(at, &word) } else { self.metric(at, word) }
            }
            Kind::Sign("(") => {
                self.advance();
                let inner = self.check()?;
                self.expect(")", "`)`")?;
                Ok(inner)
            }
            _ => Err(self.unexpected("a number, a metric, a function or `(`")),
        }
    }

    fn call(&mut self, at: At, name: &str) -> Result<Node, ExpressionError> {
        let Some((function, _)) = Function::ALL.iter().find(|(_, known)| *known == name) else {
            let valid = Function::ALL.map(|(_, known)| known).join(", ");
            let fault = Fault::Unknown { what: "function", name: name.to_string(), valid };
            return Err(ExpressionError { at: at.0, fault });
        };
        let mut arguments = Vec::new();
        if !self.take(")") {
            loop {
                arguments.push(self.check()?);
                if !self.take(",") {
                    break;
                }
            }
            self.expect(")", "`,` or `)`")?;
        }
        let (most, expected) = match function {
            Function::Abs | Function::Log10 => (1, "one number"),
            Function::Value => (1, "a dimension"),
            Function::Pareto => (1, "the label of a scheme, in quotes"),
            Function::Increasing | Function::Decreasing => (2, "a metric and a dimension"),
            _ => (4, "a metric and, if not over all, up to three dimensions"),
        };
        let least = if matches!(function, Function::Increasing | Function::Decreasing) { 2 } else { 1 };
        if !(least..=most).contains(&arguments.len()) {
            let fault = Fault::Arguments { function: function.name(), expected };
            return Err(ExpressionError { at: at.0, fault });
        }
        Ok(Node::Call(at, *function, arguments))
    }

    fn metric(&mut self, at: At, name: String) -> Result<Node, ExpressionError> {
        let mut selectors = Vec::new();
        if self.take("[") {
            loop {
                selectors.push(self.selector()?);
                if !self.take(",") {
                    break;
                }
            }
            self.expect("]", "`,` or `]`")?;
        }
        Ok(Node::Metric(at, name, selectors))
    }

    fn selector(&mut self) -> Result<Selector, ExpressionError> {
        let at = self.at();
        let mut except = false;
        let dimension = match self.peek().clone() {
            Kind::Word(word) => {
                self.advance();
                except = self.take("!=");
                if !except {
                    self.expect("=", "`=` or `!=`, and a label")?;
                }
                word
            }
            _ => "scheme".to_string(),
        };
        let label = match self.peek() {
            Kind::Text(text) => text.clone(),
            Kind::Number(number) => number.to_string(),
            _ => return Err(self.unexpected("a label in quotes, or a number")),
        };
        self.advance();
        Ok(Selector { at, dimension, label, except })
    }
}
