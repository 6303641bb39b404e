//! Statements of documents about the code that no other test checks: names of functions, and numbers of items.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use pathweave_report::FILES;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn read(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap_or_else(|why| panic!("{path}: {why}"))
}

fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|ext| ext == "rs") {
            found.push(path);
        }
    }
}

/// Returns the word at the start of a text.
fn word(text: &str) -> &str {
    text.split(|c: char| !c.is_alphanumeric() && c != '_').next().unwrap_or_default()
}

/// Returns the type that a line `impl<...> Trait for Type<...> {` refers to.
fn implemented(line: &str) -> Option<&str> {
    let rest = line.strip_prefix("impl")?;
    let mut depth = 0;
    let generics = rest.char_indices().find(|&(_, c)| {
        depth += match c {
            '<' => 1,
            '>' => -1,
            _ => 0,
        };
        depth == 0
    });
    let rest = if rest.starts_with('<') { &rest[generics?.0 + 1..] } else { rest };
    let subject =
        rest.split_once(" for ").map_or(rest, |(_, subject)| subject).trim_start_matches([' ', '&']);
    let path = subject.split(['<', ' ', '{']).next()?;
    path.rsplit("::").next()
}

/// Returns the members of each type by name: functions, constants and types of its blocks, and variants.
fn members() -> BTreeMap<String, BTreeSet<String>> {
    let mut files = Vec::new();
    for krate in fs::read_dir(root().join("crates")).expect("crates") {
        sources(&krate.expect("a crate").path().join("src"), &mut files);
    }
    let mut members: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for file in files {
        let text = fs::read_to_string(file).expect("a source");
        let mut of: Option<(String, usize)> = None;
        for line in text.lines() {
            let indent = line.len() - line.trim_start().len();
            let mut code = line.trim_start();
            for before in ["pub(crate) ", "pub(super) ", "pub ", "unsafe ", "async "] {
                code = code.strip_prefix(before).unwrap_or(code);
            }
            let opened = implemented(code).or_else(|| {
                ["trait ", "enum ", "struct "].iter().find_map(|kind| code.strip_prefix(kind)).map(word)
            });
            if let Some(name) = opened.filter(|name| !name.is_empty()) {
                members.entry(name.to_owned()).or_default();
                of = Some((name.to_owned(), indent));
                continue;
            }
            let Some((name, outer)) = &of else { continue };
            if indent <= *outer && code.starts_with('}') {
                of = None;
            } else if indent == outer + 4 {
                for before in ["const fn ", "fn ", "const ", "type "] {
                    code = code.strip_prefix(before).unwrap_or(code);
                }
                members.get_mut(name).expect("made when it was opened").insert(word(code).to_owned());
            }
        }
    }
    members
}

/// Documents about the implementation.
const PAGES: [&str; 7] = [
    "ARCHITECTURE.md",
    "CONTRIBUTING.md",
    "docs/internals.md",
    "docs/testing.md",
    "docs/how-schemes-work.md",
    "docs/switch-load-balancing.md",
    "docs/weave.md",
];

#[test]
fn functions_that_documents_name_are_there() {
    let members = members();
    assert!(
        members["Shard"].contains("issue_work_request") && members["Grant"].contains("Send"),
        "the reader is wrong"
    );
    let (mut missing, mut seen) = (Vec::new(), 0);
    for page in PAGES {
        let text = read(page);
        let mut fenced = false;
        for (number, line) in (1..).zip(text.lines()) {
            fenced ^= line.trim_start().starts_with("```");
            if fenced {
                continue;
            }
            for code in line.split('`').skip(1).step_by(2) {
                let Some((path, member)) = code.rsplit_once("::") else { continue };
                let (owner, member) = (path.rsplit("::").next().unwrap_or(path), word(member));
                // Modules begin with a lower-case letter.
                if !owner.starts_with(|c: char| c.is_uppercase()) || member.is_empty() {
                    continue;
                }
                seen += 1;
                if !members.get(owner).is_some_and(|members| members.contains(member)) {
                    missing.push(format!("{page}:{number}: `{owner}::{member}`"));
                }
            }
        }
    }
    assert!(seen > 40, "only {seen} names were looked at");
    assert!(missing.is_empty(), "documents name what is not there:\n{}", missing.join("\n"));
}

/// Returns a number as documents write it.
fn in_words(number: usize) -> &'static str {
    const WORDS: [&str; 21] = [
        "no",
        "one",
        "two",
        "three",
        "four",
        "five",
        "six",
        "seven",
        "eight",
        "nine",
        "ten",
        "eleven",
        "twelve",
        "thirteen",
        "fourteen",
        "fifteen",
        "sixteen",
        "seventeen",
        "eighteen",
        "nineteen",
        "twenty",
    ];
    WORDS.get(number).copied().unwrap_or("many")
}

#[test]
fn documents_count_right() {
    let tables = FILES.iter().filter(|(name, _)| name.ends_with(".parquet")).count();
    let bare = read(".ci/bare-target");
    let line =
        bare.lines().find_map(|line| line.strip_prefix("# Proves that ")).expect("it says which crates");
    let crates = line
        .split(" need ")
        .next()
        .expect("the crates")
        .split([',', ' '])
        .filter(|name| !name.is_empty() && *name != "and");
    let bare: Vec<&str> = crates.collect();
    let registry = read("crates/policy/src/registry.rs");
    let (_, list) = registry.rsplit_once("policies! {\n").expect("the list of policies");
    let coupled = list.lines().filter(|line| line.trim_end().ends_with("Config),")).count() - 1;
    let crates = fs::read_dir(root().join("crates")).expect("crates").count();
    // A document, the words around the number, and the number.
    let claims = [
        ("README.md", "A run writes `summary.json`, {} Parquet tables", tables),
        ("ARCHITECTURE.md", "the {} no_std crates", bare.len()),
        ("docs/testing.md", "the {} `no_std` crates", bare.len()),
        ("crates/policy/src/lib.rs", "- {} policies decide rate and path together", coupled),
    ];
    for (page, words, number) in claims {
        let expected = words.replace("{}", in_words(number));
        let text = read(page).replace("\n//! ", " ").replace('\n', " ");
        let capital = match expected.strip_prefix("- ") {
            Some(words) => format!("- {}{}", words[..1].to_uppercase(), &words[1..]),
            None => expected.clone(),
        };
        assert!(text.contains(&expected) || text.contains(&capital), "{page} does not say \"{expected}\"");
    }
    let contributing = read("CONTRIBUTING.md");
    for name in bare {
        assert!(
            contributing.contains(&format!("`{name}`")),
            "CONTRIBUTING.md leaves out {name}, which has no std"
        );
    }
    // Each crate has a row in the table of crates.
    let table = read("ARCHITECTURE.md");
    let rows = table.lines().filter(|line| {
        let name = line.strip_prefix("| `").and_then(|rest| rest.split('`').next());
        name.is_some_and(|name| root().join("crates").join(name).is_dir())
    });
    assert_eq!(rows.count(), crates, "ARCHITECTURE.md has a row for each crate");
}
