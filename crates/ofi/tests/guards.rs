//! Checks that every function that C may call is guarded. A panic in such a function becomes an error, and
//! never unwinds into the application, where it would end the process. The check reads the source, so it
//! covers functions that are added later.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Functions that catch panics.
const GUARDS: [&str; 3] = ["status", "count", "catch_unwind"];
/// Functions that are called outside of a guard to build arguments. The test below checks that they cannot
/// panic.
const BUILDERS: [&str; 11] = [
    "refused", "one", "several", "spans", "any", "with_tag", "plain", "tagged", "data_of", "context", "order",
];
/// Functions of the language and the core library that cannot panic.
const HARMLESS: [&str; 12] = [
    "as_ref",
    "as_ptr",
    "is_null",
    "read",
    "then_some",
    "new",
    "wrapping_add",
    "null_mut",
    "get",
    "size_of",
    "forked",
    "this",
];
/// Code that can panic.
const PANICS: [&str; 9] =
    ["unwrap()", "expect(", "panic!", "assert", "unreachable!", "todo!", "[index", "slice_from", " / "];

/// A function of the source.
struct Function {
    file: String,
    name: String,
    is_entry: bool,
    body: String,
}

fn sources(folder: &Path, into: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap().flatten() {
        let path = entry.path();
        if path.is_dir() {
            sources(&path, into);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            into.push(path);
        }
    }
}

/// Returns the functions with bodies, without comments, up to the tests.
fn functions(path: &Path) -> Vec<Function> {
    let text = std::fs::read_to_string(path).unwrap();
    let code: Vec<&str> = text.lines().map(|line| line.split("//").next().unwrap_or_default()).collect();
    let code = code.join("\n");
    let code = code.split("#[cfg(test)]").next().unwrap_or_default();
    let mut found = Vec::new();
    for (at, _) in code.match_indices("fn ") {
        let line_start = code[..at].rfind('\n').map_or(0, |newline| newline + 1);
        let rest = &code[at + 3..];
        let name: String = rest.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
        let Some(opening) = rest.find('{') else { continue };
        // A function type, or a declaration, ends before any body.
        if name.is_empty() || rest[..opening].contains(';') {
            continue;
        }
        let mut depth = 0;
        let length = rest[opening..].find(|c: char| {
            depth += i32::from(c == '{') - i32::from(c == '}');
            depth == 0
        });
        let Some(length) = length else { continue };
        found.push(Function {
            file: path.file_name().unwrap().to_string_lossy().into_owned(),
            name,
            is_entry: code[line_start..at].contains("extern \"C\""),
            body: rest[opening + 1..opening + length].to_owned(),
        });
    }
    found
}

/// Returns the functions and methods that a body calls.
fn calls(body: &str) -> BTreeSet<&str> {
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    let called = body.match_indices('(').map(|(at, _)| {
        let start = body[..at].rfind(|c| !is_word(c)).map_or(0, |before| before + 1);
        &body[start..at]
    });
    // Names that begin with a capital letter construct a value; an empty name is a tuple.
    called.filter(|name| name.starts_with(char::is_lowercase) && *name != "if" && *name != "match").collect()
}

/// Returns the part of a body before its guard; the whole body if it has none.
fn before_guard(body: &str) -> &str {
    let guard = GUARDS.iter().filter_map(|name| body.find(&format!("{name}(")));
    &body[..guard.min().unwrap_or(body.len())]
}

#[test]
fn every_entry_is_guarded() {
    let mut paths = Vec::new();
    sources(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"), &mut paths);
    let all: Vec<Vec<Function>> = paths.iter().map(|path| functions(path)).collect();
    let is_guard = |name: &str| GUARDS.contains(&name);
    let mut entries = 0;
    for file in &all {
        // Entries call each other and functions in the same file. A function that is found safe may make its
        // callers safe.
        let mut safe: BTreeSet<&str> = BTreeSet::new();
        loop {
            let is_known = |name: &&str| {
                is_guard(name) || safe.contains(name) || BUILDERS.contains(name) || HARMLESS.contains(name)
            };
            let is_safe = |function: &&Function| {
                let before = before_guard(&function.body);
                calls(before).iter().all(is_known) && !PANICS.iter().any(|word| before.contains(word))
            };
            let more: BTreeSet<&str> =
                file.iter().filter(is_safe).map(|function| function.name.as_str()).collect();
            if more == safe {
                break;
            }
            safe = more;
        }
        for entry in file.iter().filter(|function| function.is_entry) {
            entries += 1;
            let Function { file, name, body, .. } = entry;
            assert!(safe.contains(name.as_str()), "{file}: {name} does something outside of a guard: {body}");
        }
    }
    // There are at least as many entries as table slots, so the search has not missed them.
    assert!(entries > 100, "{entries}");
    // The builders are safe by the same rule, whichever file they are in.
    for builder in all.iter().flatten().filter(|function| BUILDERS.contains(&function.name.as_str())) {
        if builder.is_entry {
            continue;
        }
        let panics = PANICS.iter().find(|word| builder.body.contains(**word));
        assert_eq!(panics, None, "{}: {} is called outside of a guard", builder.file, builder.name);
    }
}

#[test]
fn the_search_sees_what_is_not_guarded() {
    let folder = std::env::temp_dir().join(format!("pathweave-guards-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let path = folder.join("entry.rs");
    let text = "unsafe extern \"C\" fn bad(at: usize) -> c_int {\n    table(at).unwrap() // count(\n}\n";
    std::fs::write(&path, text).unwrap();
    let found = functions(&path);
    std::fs::remove_dir_all(&folder).unwrap();
    assert_eq!((found.len(), found[0].name.as_str(), found[0].is_entry), (1, "bad", true));
    assert_eq!(calls(&found[0].body), BTreeSet::from(["table", "unwrap"]));
}

/// Error numbers for arguments that cannot be used. Numbers for optional features or for temporary states are
/// not among them.
const REFUSALS: [&str; 5] = ["FI_EINVAL", "FI_EMSGSIZE", "FI_EBADFLAGS", "FI_ENOKEY", "FI_ENOSYS"];

/// A rejected argument is logged at FI_LOG_LEVEL=warn, because every rejection uses the one function that
/// logs.
#[test]
fn no_argument_is_refused_without_a_word() {
    let mut paths = Vec::new();
    sources(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"), &mut paths);
    let mut silent = Vec::new();
    for path in paths {
        for function in functions(&path) {
            let bare = |errno: &str| {
                [format!("Err(Errno({errno}"), format!("or(Errno({errno}"), format!("-{errno}")]
                    .iter()
                    .any(|bare| function.body.contains(bare))
            };
            silent.extend(
                REFUSALS
                    .iter()
                    .filter(|errno| bare(errno))
                    .map(|errno| format!("{}: {}: {errno}", function.file, function.name)),
            );
        }
    }
    // Exceptions: slots without an implementation, commands that libfabric itself tries, and forms that do
    // not exist.
    let known = ["cm.rs: ", "no_slot", "query_collective", "nic.rs: control", "atomic.rs: valid"];
    silent.retain(|found| !known.iter().any(|known| found.contains(known)));
    assert_eq!(silent, [""; 0]);
}
