//! Reads what callgrind writes: the format of version 1, as valgrind's manual describes it ("Callgrind Format
//! Specification").
//!
//! | line | meaning |
//! |---|---|
//! | `positions: instr line` | numbers at the beginning of a cost line |
//! | `events: Ir Dr` | numbers behind them |
//! | `ob=`, `fl=`, `fn=` | the object, file and name of the function that the next costs belong to |
//! | `fi=`, `fe=` | the source file of the next costs where code of another file is inlined; its end |
//! | `cob=`, `cfi=`, `cfl=`, `cfn=` | the same of a function that is called |
//! | `calls=` | the next cost line is that of a call, with all that it calls: no cost of this function |
//! | `+3 5`, `* 5`, `0x1f 12 5` | costs; a position may be told as the distance from the last one |
//!
//! `(7) name` gives a name the number 7, and `(7)` stands for it from then on. Objects, files and functions
//! are numbered apart.

use std::collections::HashMap;

/// The event that counts instructions.
const INSTRUCTIONS: &str = "Ir";

/// What callgrind writes for a name that it does not know.
const UNKNOWN: &str = "???";

/// Lines of the header without a meaning here.
const HEADER: [&str; 10] =
    ["version", "creator", "pid", "cmd", "part", "thread", "desc", "event", "summary", "totals"];

/// What callgrind counted.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Profile<'a> {
    /// The functions, in the order of the file. One may be there more than once.
    pub functions: Vec<Function<'a>>,
    /// Instructions of all functions.
    pub instructions: u64,
}

/// A function, with what it costs without its calls.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Function<'a> {
    /// The program or library that it is in.
    pub object: &'a str,
    /// The source file that it is defined in.
    pub file: &'a str,
    /// Its name.
    pub name: &'a str,
    /// Its instructions by source file, in the order of the file.
    pub stretches: Vec<Stretch<'a>>,
}

/// Instructions of a function that have the same source file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stretch<'a> {
    /// The source file, which is another one than the function's where code is inlined.
    pub file: &'a str,
    /// How many instructions were executed.
    pub instructions: u64,
}

/// Why a text is no profile.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {problem}")]
pub struct ProfileSyntaxError {
    /// The line, from 1.
    pub line: usize,
    /// What is wrong with it.
    pub problem: Problem,
}

/// What is wrong with a line of a profile.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Problem {
    /// Nothing of the format begins like this.
    #[error("`{0}` is unknown: valid is a line of callgrind's format")]
    UnknownLine(String),
    /// The positions are others than those that are known.
    #[error("positions: `{0}`: valid are `instr`, `bb` and `line`, at least one of them")]
    Positions(String),
    /// Instructions are not among the events.
    #[error("events: `{0}`: `Ir` is missing, the number of instructions")]
    Events(String),
    /// There is a cost before the line that says what costs there are.
    #[error("a cost before the line `events:`")]
    CostBeforeEvents,
    /// There is a cost before the first function.
    #[error("a cost before the first `fn=`")]
    CostBeforeFunction,
    /// A cost line has too few or too many numbers.
    #[error("{found} numbers: valid are {least} to {most}")]
    Numbers {
        /// How many it has.
        found: usize,
        /// Its positions.
        least: usize,
        /// Its positions and every event.
        most: usize,
    },
    /// What should be a number is none.
    #[error("`{0}` is no number from 0 to 18446744073709551615")]
    Number(String),
    /// What should be a position is none.
    #[error("`{0}` is no position: valid are `*` and a number, also with `+` or `-` before it")]
    Position(String),
    /// A number stands for a name that it was never given.
    #[error("`{key}=({number})`: no name has this number")]
    UnknownName {
        /// What is named.
        key: String,
        /// The number.
        number: u64,
    },
    /// A line `calls=` is without the line of its costs.
    #[error("a cost line is missing behind `calls=`")]
    CallWithoutCost,
    /// The sum of all instructions has more than 64 bits.
    #[error("more than 18446744073709551615 instructions")]
    TooMany,
}

/// The names of one kind, by their numbers.
type Names<'a> = HashMap<u64, &'a str>;

impl<'a> Profile<'a> {
    /// Returns the profile that `text` holds. An empty text holds an empty one.
    pub fn parse(text: &'a str) -> Result<Self, ProfileSyntaxError> {
        let mut parser = Parser {
            objects: Names::new(),
            files: Names::new(),
            names: Names::new(),
            positions: 1,
            events: None,
            object: UNKNOWN,
            file: UNKNOWN,
            source: UNKNOWN,
            is_call: false,
            profile: Profile::default(),
        };
        let mut lines = 0;
        for line in text.lines() {
            lines += 1;
            parser.line(line).map_err(|problem| ProfileSyntaxError { line: lines, problem })?;
        }
        if parser.is_call {
            return Err(ProfileSyntaxError { line: lines, problem: Problem::CallWithoutCost });
        }
        Ok(parser.profile)
    }
}

/// The events of a cost line.
#[derive(Clone, Copy, Debug)]
struct Events {
    count: usize,
    /// The place of the instructions.
    instructions: usize,
}

/// What is known between two lines.
struct Parser<'a> {
    objects: Names<'a>,
    files: Names<'a>,
    names: Names<'a>,
    positions: usize,
    events: Option<Events>,
    object: &'a str,
    /// That of the function.
    file: &'a str,
    /// That of the next costs.
    source: &'a str,
    /// Whether the next line holds the costs of a call.
    is_call: bool,
    profile: Profile<'a>,
}

impl<'a> Parser<'a> {
    fn line(&mut self, line: &'a str) -> Result<(), Problem> {
        let is_cost = line.starts_with(|c: char| c.is_ascii_digit() || "+-*".contains(c));
        if std::mem::take(&mut self.is_call) {
            if !is_cost {
                return Err(Problem::CallWithoutCost);
            }
            return self.cost(line).map(|_| ());
        }
        if is_cost {
            let instructions = self.cost(line)?;
            return self.add(instructions);
        }
        if line.is_empty() || line.starts_with('#') {
            return Ok(());
        }
        match line.split_once('=') {
            Some((key, value)) if self.body(key, value)? => Ok(()),
            _ => self.header(line),
        }
    }

    /// Takes a line of the body other than costs. Returns `false` if it is none.
    fn body(&mut self, key: &str, value: &'a str) -> Result<bool, Problem> {
        match key {
            "ob" => self.object = named(&mut self.objects, key, value)?,
            "fl" => {
                self.file = named(&mut self.files, key, value)?;
                self.source = self.file;
            }
            "fi" | "fe" => self.source = named(&mut self.files, key, value)?,
            "fn" => {
                let name = named(&mut self.names, key, value)?;
                self.source = self.file;
                let function = Function { object: self.object, file: self.file, name, stretches: Vec::new() };
                self.profile.functions.push(function);
            }
            "cob" => _ = named(&mut self.objects, key, value)?,
            "cfi" | "cfl" => _ = named(&mut self.files, key, value)?,
            "cfn" => _ = named(&mut self.names, key, value)?,
            "calls" => self.is_call = true,
            "jump" | "jcnd" => {}
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn header(&mut self, line: &str) -> Result<(), Problem> {
        let Some((key, value)) = line.split_once(':') else {
            return Err(Problem::UnknownLine(line.to_string()));
        };
        let words = || value.split_ascii_whitespace();
        match key {
            "positions" => {
                self.positions = words().count();
                if self.positions == 0 || words().any(|word| !["instr", "bb", "line"].contains(&word)) {
                    return Err(Problem::Positions(value.trim().to_string()));
                }
            }
            "events" => {
                let instructions = words().position(|word| word == INSTRUCTIONS);
                let instructions = instructions.ok_or_else(|| Problem::Events(value.trim().to_string()))?;
                self.events = Some(Events { count: words().count(), instructions });
            }
            key if HEADER.contains(&key) => {}
            _ => return Err(Problem::UnknownLine(line.to_string())),
        }
        Ok(())
    }

    /// Returns the instructions of a cost line. Events that it leaves out at its end are 0.
    fn cost(&self, line: &str) -> Result<u64, Problem> {
        let events = self.events.ok_or(Problem::CostBeforeEvents)?;
        let words: Vec<&str> = line.split_ascii_whitespace().collect();
        let (found, least, most) = (words.len(), self.positions, self.positions + events.count);
        if !(least..=most).contains(&found) {
            return Err(Problem::Numbers { found, least, most });
        }
        let (positions, costs) = words.split_at(self.positions);
        positions.iter().try_for_each(|word| position(word))?;
        let mut instructions = 0;
        for (place, word) in costs.iter().enumerate() {
            let cost = number(word).ok_or_else(|| Problem::Number(word.to_string()))?;
            if place == events.instructions {
                instructions = cost;
            }
        }
        Ok(instructions)
    }

    fn add(&mut self, instructions: u64) -> Result<(), Problem> {
        let total = self.profile.instructions.checked_add(instructions).ok_or(Problem::TooMany)?;
        let function = self.profile.functions.last_mut().ok_or(Problem::CostBeforeFunction)?;
        match function.stretches.last_mut().filter(|last| last.file == self.source) {
            // No sum of some costs is more than that of all.
            Some(last) => last.instructions += instructions,
            None => function.stretches.push(Stretch { file: self.source, instructions }),
        }
        self.profile.instructions = total;
        Ok(())
    }
}

/// The name that `value` gives or stands for.
fn named<'a>(names: &mut Names<'a>, key: &str, value: &'a str) -> Result<&'a str, Problem> {
    let value = value.trim_start_matches([' ', '\t']);
    let numbered = value.strip_prefix('(').and_then(|rest| rest.split_once(')'));
    // `(below main)` is a name.
    let Some((number, name)) = numbered.and_then(|(digits, name)| Some((number(digits)?, name))) else {
        return Ok(value);
    };
    let name = name.trim_start_matches([' ', '\t']);
    if name.is_empty() {
        let known = names.get(&number).copied();
        return known.ok_or_else(|| Problem::UnknownName { key: key.to_string(), number });
    }
    names.insert(number, name);
    Ok(name)
}

/// The value of a number, which may be hexadecimal.
fn number(word: &str) -> Option<u64> {
    let (digits, radix) = word.strip_prefix("0x").map_or((word, 10), |digits| (digits, 16));
    // A sign is a position's.
    digits.starts_with(|c: char| c.is_digit(radix)).then(|| u64::from_str_radix(digits, radix).ok())?
}

fn position(word: &str) -> Result<(), Problem> {
    let digits = word.strip_prefix(['+', '-']).unwrap_or(word);
    let is_valid = word == "*" || number(digits).is_some();
    is_valid.then_some(()).ok_or_else(|| Problem::Position(word.to_string()))
}

#[cfg(test)]
mod tests;
