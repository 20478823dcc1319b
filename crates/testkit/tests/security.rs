//! The tests that `docs/security.md` names are there: a promise without its test is none.

use std::collections::BTreeSet;

use brakelight_testkit::sources;

#[test]
fn every_test_that_the_page_about_security_names_is_there() {
    let page = sources::read(&["docs/security.md"], &[]).remove(0).1;
    let (_, table) = page.split_once("## Which test holds what").expect("the table");
    let rows: Vec<&str> = table.lines().filter(|line| line.starts_with("| ")).skip(1).collect();
    let code: String = sources::read(&["crates"], &[".rs"]).into_iter().map(|(_, text)| text).collect();
    let there: BTreeSet<&str> = code
        .split("fn ")
        .skip(1)
        .filter_map(|rest| rest.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').next())
        .collect();
    for row in &rows {
        let tests = row.rsplit(" | ").next().expect("a column of tests");
        let named: Vec<&str> = tests.split('`').skip(1).step_by(2).collect();
        assert!(!named.is_empty(), "{row}: a promise without a test");
        for name in named {
            assert!(there.contains(name), "{row}: there is no test `{name}`");
        }
    }
    assert!(rows.len() > 20, "{} promises", rows.len());
}
