//! Files of a crate that refer to each other in a circle can only be understood together, so a circle may have at
//! most four.
//!
//! A file refers to another one if it names an item that is defined there, in a `use` or a path. An item re-exported
//! by a third file counts at its definition. `mod` lines and tests do not count.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// Largest number of files in a circle.
const MOST_FILES: usize = 4;

/// Path of a module from the root of the crate.
type Name = Vec<String>;

#[derive(Default)]
struct Module {
    /// Names that a `use` imports, also into modules below, and their paths.
    given_on: BTreeMap<String, Name>,
    given_on_whole: Vec<Name>,
    /// Paths that the module's code names.
    named: Vec<Name>,
    /// Names of the module's items.
    items: BTreeSet<String>,
}

/// Returns the words and symbols of a source, without comments, string literals and the test module at its end.
fn tokens(source: &str) -> Vec<String> {
    let mut tokens: Vec<String> = Vec::new();
    let mut rest = source;
    while let Some(first) = rest.chars().next() {
        let mut len = first.len_utf8();
        if rest.starts_with("//") {
            len = rest.find('\n').unwrap_or(rest.len());
        } else if first == '"' {
            let mut escaped = false;
            let end = rest[1..].find(|c| {
                let ends = c == '"' && !escaped;
                escaped = c == '\\' && !escaped;
                ends
            });
            len = end.map_or(rest.len(), |end| end + 2);
        } else if rest.starts_with("'\"'") {
            len = 3;
        } else if rest.starts_with("::") {
            len = 2;
            tokens.push("::".to_owned());
        } else if first.is_alphabetic() || first == '_' {
            len = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
            tokens.push(rest[..len].to_owned());
        } else if !first.is_whitespace() {
            tokens.push(first.to_string());
        }
        rest = &rest[len..];
        // The test module comes last by convention.
        if tokens.ends_with(&["mod", "tests"].map(str::to_owned)) && rest.trim_start().starts_with('{') {
            break;
        }
    }
    tokens
}

/// Returns the paths in the tree of a `use`, each with the name that it imports.
fn paths_of(tree: &[String]) -> Vec<(Name, String)> {
    let Some(open) = tree.iter().position(|token| token == "{") else {
        let mut path: Name = tree.iter().take_while(|token| *token != "as").cloned().collect();
        path.retain(|token| token != "::");
        if path.last().is_some_and(|last| last == "self") {
            path.pop();
        }
        let known_as = tree.last().filter(|last| *last != "self").or(path.last()).cloned();
        return known_as.map(|known_as| (path, known_as)).into_iter().collect();
    };
    let (mut depth, mut start, mut all) = (0, open + 1, Vec::new());
    for (at, token) in tree.iter().enumerate().skip(open + 1) {
        match token.as_str() {
            "{" => depth += 1,
            "}" | "," if depth == 0 => {
                if at > start {
                    all.extend(paths_of(&[&tree[..open], &tree[start..at]].concat()));
                }
                start = at + 1;
            }
            "}" => depth -= 1,
            _ => {}
        }
    }
    all
}

/// Reads a module and those below it.
fn read(file: &Path, folder: &Path, name: &Name, modules: &mut BTreeMap<Name, Module>) {
    let tokens = tokens(&std::fs::read_to_string(file).expect("a readable source"));
    let mut module = Module::default();
    let mut children: Vec<(String, PathBuf)> = Vec::new();
    let mut at = 0;
    while at < tokens.len() {
        let (token, next) = (tokens[at].as_str(), tokens.get(at + 1).map_or("", String::as_str));
        let before = |back: usize| at.checked_sub(back).map_or("", |at| tokens[at].as_str());
        match token {
            "use" => {
                let end = at + tokens[at..].iter().position(|token| token == ";").unwrap_or(1);
                let is_public = before(1) == "pub" || before(1) == ")";
                for (path, known_as) in paths_of(&tokens[at + 1..end]) {
                    if !is_public {
                        module.named.push(path.clone());
                    }
                    match known_as.as_str() {
                        "*" => module.given_on_whole.push(path[..path.len() - 1].to_vec()),
                        _ => drop(module.given_on.insert(known_as, path)),
                    }
                }
                at = end;
            }
            "mod" if tokens.get(at + 2).is_some_and(|token| token == ";") => {
                let path = [format!("{next}.rs"), format!("{next}/mod.rs")].map(|path| folder.join(path));
                let is_test = before(1) == "]" && before(3) == "test";
                if let (false, Some(path)) = (is_test, path.into_iter().find(|path| path.exists())) {
                    children.push((next.to_owned(), path));
                }
            }
            "struct" | "enum" | "fn" | "trait" | "const" | "static" | "type" => {
                module.items.insert(next.to_owned());
            }
            _ if next == "::" && before(1) != "::" && before(1) != "$" => {
                let path = tokens[at..].iter().step_by(2).zip(tokens[at + 1..].iter().step_by(2));
                let mut named: Name =
                    path.take_while(|(_, sign)| *sign == "::").map(|(t, _)| t.clone()).collect();
                named.extend(tokens.get(at + 2 * named.len()).cloned());
                module.named.push(named);
            }
            _ => {}
        }
        at += 1;
    }
    modules.insert(name.clone(), module);
    for (child, path) in children {
        read(&path, &folder.join(&child), &[&name[..], &[child]].concat(), modules);
    }
}

/// Returns the module that defines the item of a path, as seen from module `from`, or `None` if no module of this
/// crate does.
fn defines(modules: &BTreeMap<Name, Module>, from: &Name, path: &[String], depth: usize) -> Option<Name> {
    let mut at = from.clone();
    let mut rest = path;
    match path.first()?.as_str() {
        "crate" => (at, rest) = (Vec::new(), &rest[1..]),
        "self" => rest = &rest[1..],
        "super" => {
            while rest.first().is_some_and(|first| first == "super") {
                at.pop();
                rest = &rest[1..];
            }
        }
        first => {
            let is_child = modules.contains_key(&[&from[..], &[first.to_owned()]].concat());
            if !is_child && !modules[from].given_on.contains_key(first) {
                return None;
            }
        }
    }
    while let Some(first) = rest.first() {
        let child = [&at[..], std::slice::from_ref(first)].concat();
        if !modules.contains_key(&child) {
            break;
        }
        (at, rest) = (child, &rest[1..]);
    }
    let module = &modules[&at];
    let Some(first) = rest.first().filter(|_| depth < 10) else { return Some(at) };
    let given_on = module.given_on.get(first).and_then(|path| defines(modules, &at, path, depth + 1));
    let in_whole = || {
        let mut all = module.given_on_whole.iter().filter_map(|path| defines(modules, &at, path, depth + 1));
        all.find(|module| modules[module].items.contains(first))
    };
    given_on.or_else(in_whole).or(Some(at.clone()))
}

/// Returns the largest circle of a crate.
fn largest_circle(source: &Path) -> Vec<String> {
    let mut modules = BTreeMap::new();
    let main = ["lib.rs", "main.rs"].map(|name| source.join(name)).into_iter().find(|path| path.exists());
    read(&main.expect("a crate"), source, &Vec::new(), &mut modules);
    let referred = |from: &Name| -> BTreeSet<Name> {
        modules[from].named.iter().filter_map(|path| defines(&modules, from, path, 0)).collect()
    };
    let arrows: BTreeMap<&Name, BTreeSet<Name>> = modules.keys().map(|name| (name, referred(name))).collect();
    let reached: BTreeMap<&Name, BTreeSet<&Name>> = modules
        .keys()
        .map(|from| {
            let (mut reached, mut open) = (BTreeSet::new(), vec![from]);
            while let Some(at) = open.pop() {
                open.extend(arrows[at].iter().filter(|to| reached.insert(*to)));
            }
            (from, reached)
        })
        .collect();
    let circle = |name: &Name| -> Vec<String> {
        let with = reached[name].iter().filter(|other| reached[**other].contains(name));
        with.map(|name| name.join("::")).collect()
    };
    modules.keys().map(circle).max_by_key(Vec::len).unwrap_or_default()
}

#[test]
fn circles_of_files_are_small() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut wrong = Vec::new();
    for entry in std::fs::read_dir(crates).expect("a folder of crates") {
        let folder = entry.expect("a readable folder").path();
        let name = folder.file_name().expect("a name").to_string_lossy().into_owned();
        let circle = largest_circle(&folder.join("src"));
        if circle.len() > MOST_FILES {
            wrong.push(format!("{name}: {} files refer to each other: {}", circle.len(), circle.join(", ")));
        }
    }
    assert!(wrong.is_empty(), "at most {MOST_FILES} files:\n{}", wrong.join("\n"));
}
