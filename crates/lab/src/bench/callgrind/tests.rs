use std::fmt::Write as _;

use proptest::prelude::*;

use super::*;

const HEAD: &str = "# callgrind format\nversion: 1\ncmd: ./a fl=3\npositions: line\nevents: Ir\n";

/// A function's name, and its instructions by source file.
type Own = (String, Vec<(String, u64)>);

/// The functions of the profile with this body, or what is wrong with it.
fn parsed(body: &str) -> Result<Vec<Own>, String> {
    let text = format!("{HEAD}{body}");
    let profile = Profile::parse(&text).map_err(|error| error.to_string())?;
    let stretches = |function: &Function| {
        function.stretches.iter().map(|stretch| (stretch.file.to_string(), stretch.instructions)).collect()
    };
    let functions = profile.functions.iter();
    Ok(functions.map(|function| (function.name.to_string(), stretches(function))).collect())
}

fn function(name: &str, stretches: &[(&str, u64)]) -> Own {
    (name.into(), stretches.iter().map(|(file, cost)| (file.to_string(), *cost)).collect())
}

#[test]
fn costs_count_for_the_function_and_the_file_that_they_stand_in() {
    let body = "ob=(1) a\nfl=(1) a.rs\nfn=(1) one\n1 2\n+3 4\nfi=(2) b.rs\n* 8\nfe=(1)\n-1 16\n\nfn=(2) two\n0x1f 32\n";
    assert_eq!(
        parsed(body).unwrap(),
        [function("one", &[("a.rs", 6), ("b.rs", 8), ("a.rs", 16)]), function("two", &[("a.rs", 32)])]
    );
}

#[test]
fn a_function_begins_in_its_own_file_although_the_last_ended_in_another() {
    let body = "fl=(1) a.rs\nfn=(1) one\nfi=(2) b.rs\n1 1\nfn=(2) two\n1 2\n";
    assert_eq!(parsed(body).unwrap(), [function("one", &[("b.rs", 1)]), function("two", &[("a.rs", 2)])]);
}

#[test]
fn what_a_call_costs_is_left_out_and_the_names_that_it_gives_are_kept() {
    let body = "fl=(1) a.rs\nfn=(1) one\n1 2\ncob=(5) c\ncfi=(2) b.rs\ncfn=(2) two\ncalls=3 7 \n2 4000\n+1 8\n\
        fl=(2)\nfn=(2)\n7 16\n";
    assert_eq!(parsed(body).unwrap(), [function("one", &[("a.rs", 10)]), function("two", &[("b.rs", 16)])]);
}

#[test]
fn objects_files_and_functions_are_numbered_apart() {
    let text = format!("{HEAD}ob=(1) an object\nfl=(1) a file\nfn=(1) a name\nob=(1)\nfl=(1)\nfn=(1)\n");
    let profile = Profile::parse(&text).unwrap();
    let function = Function { object: "an object", file: "a file", name: "a name", stretches: Vec::new() };
    assert_eq!(profile.functions, [function.clone(), function]);
}

#[test]
fn a_name_without_a_number_is_a_name_also_in_brackets() {
    let body = "fl=a.rs\nfn=(below main)\n1 2\nfn=two (2)\n";
    assert_eq!(parsed(body).unwrap(), [function("(below main)", &[("a.rs", 2)]), function("two (2)", &[])]);
}

#[test]
fn the_instructions_are_found_among_other_events_and_behind_several_positions() {
    let text =
        "positions: instr line\nevents: Dr Ir Dw\nfn=a\n0x10 5 1 20 300\n+4 * 1 20\n+4 +1 1\n+4 -0x1\n";
    let profile = Profile::parse(text).unwrap();
    assert_eq!(profile.instructions, 40);
    assert_eq!(profile.functions[0].stretches, [Stretch { file: "???", instructions: 40 }]);
}

#[test]
fn a_wrong_line_is_named_with_what_would_be_valid() {
    // The body begins in line 6.
    for (body, message) in [
        ("fn=a\n1 2 3\n", "line 7: 3 numbers: valid are 1 to 2"),
        ("fn=a\n1 x\n", "line 7: `x` is no number from 0 to 18446744073709551615"),
        ("fn=a\n1 +2\n", "line 7: `+2` is no number from 0 to 18446744073709551615"),
        (
            "fn=a\n1 18446744073709551616\n",
            "line 7: `18446744073709551616` is no number from 0 to 18446744073709551615",
        ),
        (
            "fn=a\n++1 2\n",
            "line 7: `++1` is no position: valid are `*` and a number, also with `+` or `-` before it",
        ),
        ("fn=a\n1 18446744073709551615\n1 1\n", "line 8: more than 18446744073709551615 instructions"),
        ("1 2\n", "line 6: a cost before the first `fn=`"),
        ("fl=(3)\n", "line 6: `fl=(3)`: no name has this number"),
        ("fn=(1) a\ncfl=(1)\n", "line 7: `cfl=(1)`: no name has this number"),
        ("fn=a\ncalls=1 2\n", "line 7: a cost line is missing behind `calls=`"),
        ("fn=a\ncalls=1 2\nfn=b\n", "line 8: a cost line is missing behind `calls=`"),
        ("events: Dr Dw\n", "line 6: events: `Dr Dw`: `Ir` is missing, the number of instructions"),
        (
            "positions: place\n",
            "line 6: positions: `place`: valid are `instr`, `bb` and `line`, at least one of them",
        ),
        ("positions:\n", "line 6: positions: ``: valid are `instr`, `bb` and `line`, at least one of them"),
        ("rob=x\n", "line 6: `rob=x` is unknown: valid is a line of callgrind's format"),
        ("words\n", "line 6: `words` is unknown: valid is a line of callgrind's format"),
    ] {
        assert_eq!(parsed(body).unwrap_err(), message, "{body:?}");
    }
    let error = Profile::parse("fn=a\n1 2\n").unwrap_err();
    assert_eq!(error, ProfileSyntaxError { line: 2, problem: Problem::CostBeforeEvents });
    assert_eq!(error.to_string(), "line 2: a cost before the line `events:`");
}

/// How a name is written: whole, or by a number that it is given where it comes first.
fn spelled(key: &str, name: usize, names: &[&str], given: &mut Vec<usize>, numbered: bool) -> String {
    if !numbered {
        return format!("{key}={}\n", names[name]);
    }
    if given.contains(&name) {
        return format!("{key}=({name})\n");
    }
    given.push(name);
    format!("{key}=({name}) {}\n", names[name])
}

/// One cost of a generated function: its file, its position, its instructions, and whether it is a call's.
type Cost = (usize, String, u64, bool);

const OBJECTS: &[&str] = &["/bin/a", "/lib/libc.so.6"];
const FILES: &[&str] = &["???", "/home/me/crates/sim/src/a.rs", "./x (2).c", "b = c.rs"];
const FUNCTIONS: &[&str] = &["(below main)", "a::b<P,L>::c", "<a::B as c::D>::e'2", "operator="];

fn any_position() -> impl Strategy<Value = String> {
    prop_oneof![
        Just("*".to_string()),
        any::<u32>().prop_map(|n| n.to_string()),
        any::<u32>().prop_map(|n| format!("{n:#x}")),
        any::<u16>().prop_map(|n| format!("+{n}")),
        any::<u16>().prop_map(|n| format!("-{n}")),
    ]
}

fn any_function() -> impl Strategy<Value = (usize, usize, usize, Vec<Cost>)> {
    let cost = (0..FILES.len(), any_position(), 0..1_000_000_u64, prop::bool::weighted(0.2));
    (0..OBJECTS.len(), 0..FILES.len(), 0..FUNCTIONS.len(), prop::collection::vec(cost, 0..12))
}

proptest! {
    #[test]
    fn a_profile_that_is_written_is_read_again(
        functions in prop::collection::vec(any_function(), 0..12),
        numbered in any::<bool>(),
    ) {
        let mut text = HEAD.to_string();
        let (mut objects, mut files, mut names) = (Vec::new(), Vec::new(), Vec::new());
        let mut expected = Profile::default();
        for (object, file, name, costs) in &functions {
            text += &spelled("ob", *object, OBJECTS, &mut objects, numbered);
            text += &spelled("fl", *file, FILES, &mut files, numbered);
            text += &spelled("fn", *name, FUNCTIONS, &mut names, numbered);
            let mut function = Function {
                object: OBJECTS[*object], file: FILES[*file], name: FUNCTIONS[*name], stretches: Vec::new(),
            };
            for (source, position, instructions, is_call) in costs {
                if *is_call {
                    text += &spelled("cfn", *source, FUNCTIONS, &mut names, numbered);
                    writeln!(text, "calls=1 {position}\n{position} {instructions}").unwrap();
                    continue;
                }
                let key = if source == file { "fe" } else { "fi" };
                text += &spelled(key, *source, FILES, &mut files, numbered);
                writeln!(text, "{position} {instructions}").unwrap();
                expected.instructions += instructions;
                match function.stretches.last_mut().filter(|last| last.file == FILES[*source]) {
                    Some(last) => last.instructions += instructions,
                    None => function.stretches.push(Stretch { file: FILES[*source], instructions: *instructions }),
                }
            }
            expected.functions.push(function);
        }
        prop_assert_eq!(Profile::parse(&text).unwrap(), expected);
    }

    #[test]
    fn any_bytes_are_a_profile_or_an_error_with_a_line(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let text = String::from_utf8_lossy(&bytes);
        if let Err(error) = Profile::parse(&text) {
            prop_assert!((1..=text.lines().count()).contains(&error.line));
        }
    }

    #[test]
    fn any_lines_of_the_format_are_a_profile_or_an_error_with_a_line(
        lines in prop::collection::vec("(fn=|fl=|cfi=|calls=|events: |positions: )?[()0-9a-zIr *+-]{0,12}", 0..20),
    ) {
        let text = lines.join("\n");
        match Profile::parse(&text) {
            Ok(profile) => {
                let stretches = profile.functions.iter().flat_map(|function| &function.stretches);
                prop_assert_eq!(stretches.map(|stretch| stretch.instructions).sum::<u64>(), profile.instructions);
            }
            Err(error) => prop_assert!((1..=lines.len()).contains(&error.line)),
        }
    }
}
