use super::*;

/// A folder with traces in it, gone at the end.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str, files: &[(&str, &str)]) -> Self {
        let path = std::env::temp_dir().join(format!("brakelight-names-{name}-{}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        for (file, text) in files {
            fs::write(path.join(file), text).unwrap();
        }
        Folder(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[test]
fn an_embedded_name_leads_to_the_embedded_trace() {
    let names = Names::default();
    assert_eq!(names.load("fixed").unwrap(), Embedded::find("fixed").unwrap().trace());
    assert_eq!(names.list().len(), EMBEDDED.len());
}

#[test]
fn a_trace_that_a_program_made_goes_by_its_name_before_files_of_that_name() {
    let folder = Folder::new("given", &[("mine", "1\n")]);
    let trace = |ms| Trace::from_millis([ms]).unwrap();
    let names = Names::with_folder(&folder.0).unwrap().with_trace("mine", trace(2));
    assert_eq!(names.load("mine").unwrap(), trace(2));
    assert_eq!(names.clone().with_trace("mine", trace(3)).load("mine").unwrap(), trace(3));
    assert_eq!(names.list()[EMBEDDED.len()], "mine");
    let fixed = Embedded::find("fixed").unwrap().trace();
    assert_eq!(names.with_trace("fixed", trace(2)).load("fixed").unwrap(), fixed);
}

#[test]
fn files_of_the_folder_go_by_name_with_or_without_extension() {
    let folder =
        Folder::new("folder", &[("b.up", "1\n"), ("a.down", "2\n"), (".hidden", "3\n"), ("plain", "4\n")]);
    let names = Names::with_folder(&folder.0).unwrap();
    assert_eq!(names.list()[EMBEDDED.len()..], ["a.down", "b.up", "plain"]);
    for (name, ms) in [("a.down", 2), ("a", 2), ("b", 1), ("plain", 4)] {
        assert_eq!(names.load(name).unwrap().millis().collect::<Vec<_>>(), [ms], "{name}");
    }
}

#[test]
fn a_path_is_read_whatever_the_folder() {
    let folder = Folder::new("path", &[("t", "7\n")]);
    let path = folder.0.join("t");
    assert_eq!(Names::default().load(path.to_str().unwrap()).unwrap().millis().collect::<Vec<_>>(), [7]);
}

#[test]
fn an_unknown_name_is_answered_with_the_known_ones() {
    let folder = Folder::new("unknown", &[("mine.trace", "1\n")]);
    let refusal = Names::with_folder(&folder.0).unwrap().load("lte-drivign").unwrap_err().to_string();
    assert!(
        refusal.starts_with(
            "unknown trace `lte-drivign` (did you mean `lte-driving`?): no such file, and the known traces are `lte-driving`, "
        )
    );
    assert!(refusal.ends_with(", `mine.trace`"), "{refusal}");
}

#[test]
fn a_name_that_two_files_answer_to_is_refused() {
    let folder = Folder::new("ambiguous", &[("x.down", "1\n"), ("x.up", "1\n")]);
    let refusal = Names::with_folder(&folder.0).unwrap().find("x").unwrap_err();
    assert!(refusal.to_string().ends_with("`x.down`, `x.up` both match; give the extension"), "{refusal}");
}

#[test]
fn a_file_that_is_no_trace_is_refused_by_file_and_line() {
    let folder = Folder::new("wrong", &[("bad", "1\nx\n"), ("empty", "")]);
    let names = Names::with_folder(&folder.0).unwrap();
    let refusal = names.load("bad").unwrap_err().to_string();
    assert!(refusal.contains("/bad: line 2: `x` is not a whole number"), "{refusal}");
    assert!(names.load("empty").unwrap_err().to_string().contains("/empty: the trace is empty"));
    let table = Folder::new("table", &[("rates.CSV", "start_s,mbps\n0,5\n")]);
    let refusal = names.load(table.0.join("rates.CSV").to_str().unwrap()).unwrap_err().to_string();
    assert!(refusal.ends_with("`brakelight trace convert` makes a trace of such a file"), "{refusal}");
    let directory = names.load(folder.0.to_str().unwrap()).unwrap_err();
    assert!(matches!(directory, NameError::Read { .. }), "{directory}");
}

#[test]
fn a_folder_that_is_not_there_is_named() {
    let refusal = Names::with_folder(Path::new("/no/such/folder")).unwrap_err().to_string();
    assert!(refusal.starts_with("BRAKELIGHT_TRACES=/no/such/folder: "), "{refusal}");
}

#[test]
fn a_recipe_is_found_by_name_or_read_from_a_file() {
    assert_eq!(recipe("3g").unwrap(), Embedded::find("3g").unwrap().recipe());
    let folder = Folder::new(
        "recipe",
        &[("mine.toml", Embedded::find("step").unwrap().recipe), ("bad.toml", "x = 1")],
    );
    let path = |name: &str| folder.0.join(name).to_str().unwrap().to_string();
    assert_eq!(recipe(&path("mine.toml")).unwrap().steps.len(), 2);
    let refusal = recipe(&path("bad.toml")).unwrap_err().to_string();
    assert!(refusal.contains("/bad.toml: ") && refusal.contains("unknown field `x`"), "{refusal}");
    let refusal = recipe("4g").unwrap_err().to_string();
    let wanted = "unknown recipe `4g` (did you mean `3g`?): no such file, and the embedded recipes are `lte-driving`, ";
    assert!(refusal.starts_with(wanted), "{refusal}");
    assert!(matches!(recipe(folder.0.to_str().unwrap()), Err(RecipeNameError::Read { .. })));
}
