//! Nobody but the table tells algorithms apart by their names: what a scheme needs is a property on its line.
//! The sources of all crates are read for comparisons with registered names, patterns of them and lists of
//! them.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use brakelight_registry::{CONTROLLERS, FEEDBACKS, QUEUES};
use proc_macro2::{TokenStream, TokenTree};
use syn::visit::{self, Visit};

/// The files of the tables, and of the names that stand for more than one algorithm.
const TABLES: &[&str] = &["senders/src/table.rs", "routers/src/table.rs", "registry/src/names.rs"];

/// What only looks like a use of a registered name: the file, the word, and what it is there.
const OTHERS: &[(&str, &str, &str)] = &[
    ("lab/src/parity/pairs.rs", "cubic", "what was really run, as the table of measurements calls it"),
    ("lab/src/parity/pairs.rs", "bbr", "what was really run, as the table of measurements calls it"),
    (
        "lab/src/parity/pairs.rs",
        "codel",
        "what was really run, and what parity runs over QUIC where nothing is named",
    ),
    ("lab/src/parity/pairs.rs", "pie", "what was really run, as the table of measurements calls it"),
    ("lab/src/parity/pairs.rs", "abc", "what parity runs over QUIC where nothing is named: a default"),
    ("lab/src/parity/pairs.rs", "quicdc", "what parity runs over QUIC where nothing is named: a default"),
    ("lab/src/evaluate.rs", "bbr", "the kit of BBR's draft"),
    ("lab/src/arena/rounds.rs", "cubic", "beside whom senders compete, which the arena's rules say"),
    ("lab/src/arena/rounds.rs", "bbr3", "beside whom senders compete, which the arena's rules say"),
    ("lab/src/evaluate.rs", "bbr3", "the controller that shows every value of which that kit's files speak"),
    ("lab/src/evaluate/page.rs", "bbr", "the kit of BBR's draft"),
    ("tcp/src/bpf/status.rs", "abc", "an eBPF program's own name"),
    ("tcp/src/qdisc/rate.rs", "cake", "what the kernel calls its qdisc"),
];

fn registered() -> BTreeSet<&'static str> {
    let entries = CONTROLLERS.iter().chain(FEEDBACKS).chain(QUEUES);
    entries.flat_map(|entry| entry.aliases.iter().copied().chain([entry.name])).collect()
}

/// A registered name in a place where it tells algorithms apart.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Use {
    line: usize,
    name: String,
    what: &'static str,
}

struct Reader {
    names: BTreeSet<&'static str>,
    found: BTreeSet<Use>,
}

fn is_test(attributes: &[syn::Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        let syn::Meta::List(list) = &attribute.meta else { return false };
        list.path.is_ident("cfg")
            && list.tokens.to_string().split(|c: char| !c.is_alphanumeric()).any(|word| word == "test")
    })
}

/// Methods that compare with what they are given.
const COMPARING: &[&str] = &["eq", "ne", "contains", "starts_with", "ends_with", "eq_ignore_ascii_case"];

impl Reader {
    fn note(&mut self, text: &syn::LitStr, what: &'static str) {
        // A scheme's words begin with a name: `cubic+codel:target=5ms`.
        let value = text.value();
        let first = value.split(':').next().unwrap_or_default();
        let parts: Vec<&str> = match self.names.contains(first) {
            true => vec![first],
            false => first.split('+').collect(),
        };
        if parts.iter().all(|part| self.names.contains(part)) {
            for name in parts {
                let line = text.span().start().line;
                self.found.insert(Use { line, name: name.to_string(), what });
            }
        }
    }

    /// The strings that an expression is made of, not those it hands to a function.
    fn strings(&mut self, expression: &syn::Expr, what: &'static str) {
        match expression {
            syn::Expr::Lit(syn::ExprLit { lit: syn::Lit::Str(text), .. }) => self.note(text, what),
            syn::Expr::Reference(inner) => self.strings(&inner.expr, what),
            syn::Expr::Paren(inner) => self.strings(&inner.expr, what),
            syn::Expr::Group(inner) => self.strings(&inner.expr, what),
            syn::Expr::Unary(inner) => self.strings(&inner.expr, what),
            syn::Expr::Tuple(tuple) => tuple.elems.iter().for_each(|inner| self.strings(inner, what)),
            // `Some("abc")`
            syn::Expr::Call(call) if matches!(&*call.func, syn::Expr::Path(path) if path.path.is_ident("Some")) =>
            {
                call.args.iter().for_each(|inner| self.strings(inner, what));
            }
            _ => {}
        }
    }

    /// The strings beside `==`, `!=`, `=>` and `|` in what a macro is given, and all after the first comma of
    /// `matches!`.
    fn tokens(&mut self, stream: TokenStream, pattern_after_comma: bool) {
        let trees: Vec<TokenTree> = stream.into_iter().collect();
        let punct = |place: Option<&TokenTree>, marks: &str| matches!(place, Some(TokenTree::Punct(punct)) if marks.contains(punct.as_char()));
        let mut pattern = false;
        for (place, tree) in trees.iter().enumerate() {
            match tree {
                TokenTree::Punct(punct) if punct.as_char() == ',' => pattern |= pattern_after_comma,
                TokenTree::Group(group) => {
                    if pattern {
                        for inner in group.stream() {
                            self.literal(&inner, "a pattern");
                        }
                    }
                    self.tokens(group.stream(), false);
                }
                TokenTree::Literal(_) => {
                    let (before, before_that) = (place.checked_sub(1), place.checked_sub(2));
                    let at = |place: Option<usize>| place.and_then(|place| trees.get(place));
                    let compared = punct(at(before), "=") && punct(at(before_that), "=!")
                        || punct(trees.get(place + 1), "=!") && punct(trees.get(place + 2), "=");
                    let matched = pattern
                        || punct(trees.get(place + 1), "=") && punct(trees.get(place + 2), ">")
                        || punct(trees.get(place + 1), "|")
                        || punct(at(before), "|");
                    if compared {
                        self.literal(tree, "a comparison");
                    } else if matched {
                        self.literal(tree, "a pattern");
                    }
                }
                _ => {}
            }
        }
    }

    fn literal(&mut self, tree: &TokenTree, what: &'static str) {
        if let TokenTree::Literal(literal) = tree
            && let syn::Lit::Str(text) = syn::Lit::new(literal.clone())
        {
            self.note(&text, what);
        }
    }
}

impl<'a> Visit<'a> for Reader {
    fn visit_item(&mut self, item: &'a syn::Item) {
        let attributes = match item {
            syn::Item::Mod(item) => &item.attrs,
            syn::Item::Fn(item) => &item.attrs,
            syn::Item::Impl(item) => &item.attrs,
            syn::Item::Const(item) => &item.attrs,
            syn::Item::Static(item) => &item.attrs,
            _ => return visit::visit_item(self, item),
        };
        if !is_test(attributes) {
            visit::visit_item(self, item);
        }
    }

    fn visit_expr_binary(&mut self, binary: &'a syn::ExprBinary) {
        if matches!(binary.op, syn::BinOp::Eq(_) | syn::BinOp::Ne(_)) {
            self.strings(&binary.left, "a comparison");
            self.strings(&binary.right, "a comparison");
        }
        visit::visit_expr_binary(self, binary);
    }

    fn visit_expr_method_call(&mut self, call: &'a syn::ExprMethodCall) {
        if COMPARING.iter().any(|name| call.method == name) {
            call.args.iter().for_each(|argument| self.strings(argument, "a comparison"));
        }
        visit::visit_expr_method_call(self, call);
    }

    fn visit_pat(&mut self, pattern: &'a syn::Pat) {
        if let syn::Pat::Lit(syn::ExprLit { lit: syn::Lit::Str(text), .. }) = pattern {
            self.note(text, "a pattern");
        }
        visit::visit_pat(self, pattern);
    }

    fn visit_expr_array(&mut self, array: &'a syn::ExprArray) {
        array.elems.iter().for_each(|element| self.strings(element, "a list"));
        visit::visit_expr_array(self, array);
    }

    fn visit_item_const(&mut self, item: &'a syn::ItemConst) {
        self.strings(&item.expr, "a constant");
        visit::visit_item_const(self, item);
    }

    fn visit_item_static(&mut self, item: &'a syn::ItemStatic) {
        self.strings(&item.expr, "a constant");
        visit::visit_item_static(self, item);
    }

    fn visit_macro(&mut self, called: &'a syn::Macro) {
        self.tokens(called.tokens.clone(), called.path.is_ident("matches"));
        if let Ok(array) = syn::parse2::<Listed>(called.tokens.clone())
            && called.path.is_ident("vec")
        {
            array.0.iter().for_each(|element| self.strings(element, "a list"));
        }
    }
}

/// What `vec!` is given.
struct Listed(syn::punctuated::Punctuated<syn::Expr, syn::Token![,]>);

impl syn::parse::Parse for Listed {
    fn parse(input: syn::parse::ParseStream<'_>) -> syn::Result<Self> {
        syn::punctuated::Punctuated::parse_terminated(input).map(Listed)
    }
}

fn uses(source: &str) -> Vec<(String, &'static str)> {
    read(source).into_iter().map(|found| (found.name, found.what)).collect()
}

fn read(source: &str) -> BTreeSet<Use> {
    let file = syn::parse_file(source).expect("the sources compile");
    let mut reader = Reader { names: registered(), found: BTreeSet::new() };
    if !is_test(&file.attrs) {
        reader.visit_file(&file);
    }
    reader.found
}

/// All sources below `folder`.
fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    let mut entries: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    entries.sort();
    for path in entries {
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

/// The files and folders of modules that `path` declares for tests alone.
fn tests_of(path: &Path) -> Vec<PathBuf> {
    let file = syn::parse_file(&fs::read_to_string(path).unwrap()).expect("the sources compile");
    let (folder, stem) = (path.parent().unwrap(), path.file_stem().unwrap());
    let own = if ["mod", "lib", "main"].iter().any(|name| stem == *name) {
        folder.into()
    } else {
        folder.join(stem)
    };
    let mut tests = Vec::new();
    for item in &file.items {
        let syn::Item::Mod(module) = item else { continue };
        if module.content.is_some() || !is_test(&module.attrs) {
            continue;
        }
        let given = module.attrs.iter().find_map(|attribute| match &attribute.meta {
            syn::Meta::NameValue(pair) if pair.path.is_ident("path") => match &pair.value {
                syn::Expr::Lit(syn::ExprLit { lit: syn::Lit::Str(text), .. }) => Some(text.value()),
                _ => None,
            },
            _ => None,
        });
        match given {
            Some(given) => tests.push(folder.join(given)),
            None => {
                let name = module.ident.to_string();
                tests.extend([own.join(format!("{name}.rs")), own.join(name)]);
            }
        }
    }
    tests
}

#[test]
fn nobody_but_the_table_tells_algorithms_apart_by_name() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut files = Vec::new();
    for entry in fs::read_dir(&crates).unwrap() {
        let source = entry.unwrap().path().join("src");
        if source.is_dir() {
            sources(&source, &mut files);
        }
    }
    assert!(files.len() > 100, "{} files", files.len());
    let tests: Vec<PathBuf> = files.iter().flat_map(|path| tests_of(path)).collect();
    files.retain(|path| !tests.iter().any(|test| path.starts_with(test)));
    let mut needed = BTreeSet::new();
    let mut faults = Vec::new();
    for path in &files {
        let place = path.strip_prefix(&crates).unwrap().to_str().unwrap();
        if TABLES.contains(&place) {
            continue;
        }
        for found in read(&fs::read_to_string(path).unwrap()) {
            match OTHERS.iter().position(|(file, name, _)| *file == place && *name == found.name) {
                Some(index) => {
                    needed.insert(index);
                }
                None => faults.push(format!("{place}:{}: {} of `{}`", found.line, found.what, found.name)),
            }
        }
    }
    assert!(
        faults.is_empty(),
        "what a scheme needs is a property on its line of a table ({TABLES:?}), not known by its name:\n{}",
        faults.join("\n")
    );
    for (index, (file, name, _)) in OTHERS.iter().enumerate() {
        assert!(needed.contains(&index), "`{name}` in {file} is excused and not there");
    }
}

#[test]
fn every_way_to_tell_algorithms_apart_by_name_is_found() {
    for (code, what) in [
        (r#"fn f(n: &str) -> bool { n == "abc" }"#, "a comparison"),
        (r#"fn f(n: &str) -> bool { "abc" != n }"#, "a comparison"),
        (r#"fn f(n: Option<&str>) -> bool { n == Some("abc") }"#, "a comparison"),
        (r#"fn f(n: &&str) -> bool { **n == *"abc" }"#, "a comparison"),
        (r#"fn f(n: &str) -> bool { n.eq("abc") || n.starts_with("x") }"#, "a comparison"),
        (r#"fn f(n: &str) -> u8 { match n { "abc" => 1, _ => 2 } }"#, "a pattern"),
        (r#"fn f(n: (&str, u8)) -> bool { if let ("abc", _) = n { true } else { false } }"#, "a pattern"),
        (r#"fn f(n: &str) -> bool { matches!(n, "abc") }"#, "a pattern"),
        (r#"fn f(n: (u8, &str)) -> bool { matches!(n, (_, "abc")) }"#, "a pattern"),
        (r#"fn f(n: &str) -> bool { ["abc", "other"].contains(&n) }"#, "a list"),
        (r#"const K: &[(&str, u8)] = &[("abc", 1)];"#, "a list"),
        (r#"fn f() -> Vec<&'static str> { vec!["abc"] }"#, "a list"),
        (r#"const K: &str = "abc";"#, "a constant"),
        (r#"fn f(n: &str) { assert!(n != "abc"); }"#, "a comparison"),
        (r#"make! { fn f(n: &str) -> u8 { match n { "abc" => 1, _ => 2 } } }"#, "a pattern"),
        (r#"impl S { fn f(n: &str) -> bool { let g = |m: &str| m == "abc"; g(n) } }"#, "a comparison"),
    ] {
        assert_eq!(uses(code), [("abc".to_string(), what)], "{code}");
    }
}

#[test]
fn words_of_a_scheme_are_names_too_and_other_words_are_none() {
    assert_eq!(uses(r#"const K: &[&str] = &["cubic+codel:target=5ms"];"#).len(), 2);
    for code in [
        r#"fn f() { ControllerConfig::new("abc", &[]); }"#,
        r#"fn f(n: &str) -> bool { n == "measured" }"#,
        r#"#[cfg(test)] mod tests { fn f(n: &str) -> bool { n == "abc" } }"#,
        r#"enum Encoding { Abc } fn f(e: Encoding) -> &'static str { match e { Encoding::Abc => "abc" } }"#,
        r#"fn f(visit: &mut dyn FnMut(&str)) { visit("reno"); }"#,
    ] {
        assert_eq!(uses(code), [], "{code}");
    }
}
