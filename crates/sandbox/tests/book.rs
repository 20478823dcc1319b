//! The page of the arena says what a module exports and where its fields are.

use brakelight_sandbox::abi::{ABI, BUFFER, Field, ModuleEvent, TRAITS};
use brakelight_testkit::part;

#[test]
fn the_page_has_every_field_and_every_export() {
    let mut table = String::from("| offset | field | unit | |\n|---|---|---|---|\n");
    for field in Field::ALL {
        let (name, unit, meaning) = field.about();
        table += &format!("| {} | `{name}` | {unit} | {meaning} |\n", field.offset());
    }
    part::check("../arena", "fields", &table);
    let page = include_str!("../../../docs/arena.md");
    let exports = ModuleEvent::ALL.map(|event| (event.export(), event.is_required()));
    for (name, required) in [(ABI, true), (BUFFER, true), (TRAITS, false)].into_iter().chain(exports) {
        let line = page.lines().find(|line| line.starts_with(&format!("| `{name}()"))).expect(name);
        assert_eq!(line.contains(" | needed | "), required, "{line}");
    }
}
