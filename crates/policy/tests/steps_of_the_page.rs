//! Executes the steps of docs/add-a-scheme.md to the letter on a copy of the crate, whose tests must then pass.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

/// Crates from which the policy crate is built.
const CRATES: [&str; 3] = ["units", "wire", "policy"];

/// A block of code in the page, and its place in the crate.
#[derive(Debug)]
enum Step {
    File { path: String, text: String },
    Line { path: String, after: String, text: String },
}

/// Returns the blocks behind `<!-- new file: PATH -->` and `<!-- new line in PATH, after: LINE -->`.
fn steps(page: &str) -> Vec<Step> {
    let mut steps = Vec::new();
    let mut lines = page.lines();
    while let Some(line) = lines.next() {
        let note = line.trim_start().strip_prefix("<!-- ").and_then(|note| note.strip_suffix(" -->"));
        let Some(note) = note.filter(|note| note.starts_with("new ")) else { continue };
        let fence = lines.next().expect("a block follows");
        let indent = fence.strip_suffix("```rust").unwrap_or_else(|| panic!("{fence} is no block of Rust"));
        let code = lines.by_ref().take_while(|line| line.trim() != "```");
        let text: String =
            code.map(|line| format!("{}\n", line.strip_prefix(indent).unwrap_or_default())).collect();
        steps.push(match note.strip_prefix("new file: ") {
            Some(path) => Step::File { path: path.to_owned(), text },
            None => {
                let place = note.strip_prefix("new line in ").and_then(|place| place.split_once(", after: "));
                let (path, after) = place.unwrap_or_else(|| panic!("{note}"));
                Step::Line { path: path.to_owned(), after: after.to_owned(), text }
            }
        });
    }
    steps
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("a folder");
    for entry in fs::read_dir(from).expect("a folder") {
        let entry = entry.expect("an entry");
        let (from, to) = (entry.path(), to.join(entry.file_name()));
        if from.is_dir() {
            copy(&from, &to);
        } else {
            fs::copy(&from, &to).expect("a file");
        }
    }
}

/// Creates a workspace of only these crates.
fn workspace(root: &Path, at: &Path) {
    let manifest = fs::read_to_string(root.join("Cargo.toml")).expect("the manifest");
    let members = CRATES.map(|name| format!("\"crates/{name}\"")).join(", ");
    let ours = manifest.replace("members = [\"crates/*\", \"fuzz\"]", &format!("members = [{members}]"));
    assert_ne!(ours, manifest, "the members are named otherwise");
    // With the version of the workspace, Cargo would give the copy's builds the names of the workspace's, and take them for
    // those later: a test of the workspace would run the code of the copy.
    let version = |version: &str| format!("version = \"{version}\"");
    let ours = ours.replace(&version(env!("CARGO_PKG_VERSION")), &version("0.0.1"));
    for name in CRATES {
        copy(&root.join("crates").join(name).join("src"), &at.join("crates").join(name).join("src"));
        let file = Path::new("crates").join(name).join("Cargo.toml");
        fs::copy(root.join(&file), at.join(&file)).expect("a manifest");
    }
    fs::write(at.join("Cargo.toml"), ours).expect("the manifest");
    fs::copy(root.join("Cargo.lock"), at.join("Cargo.lock")).expect("the lock file");
}

#[test]
fn a_copy_of_the_crate_with_the_steps_passes_its_tests() {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..");
    let page = fs::read_to_string(root.join("docs/add-a-scheme.md")).expect("the page");
    let scratch = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let at = scratch.join("add-a-scheme");
    let _ = fs::remove_dir_all(&at);
    workspace(&root, &at);
    let steps = steps(&page);
    assert_eq!(steps.len(), 6, "two files and four places: {steps:?}");
    for step in steps {
        match step {
            Step::File { path, text } => {
                assert!(!at.join(&path).exists(), "{path} is there already");
                fs::write(at.join(path), text).expect("a file");
            }
            Step::Line { path, after, text } => {
                let file = at.join(&path);
                let before = fs::read_to_string(&file).expect("a file");
                let (start, end) = before
                    .split_once(&format!("{after}\n"))
                    .unwrap_or_else(|| panic!("{path} has no line \"{after}\""));
                fs::write(file, format!("{start}{after}\n{text}{end}")).expect("a file");
            }
        }
    }
    // Reuse the workspace's builds of other crates.
    let target = scratch.parent().expect("it is in the target folder");
    let done = Command::new(env::var_os("CARGO").unwrap_or("cargo".into()))
        .args(["test", "--offline", "--quiet", "-p", "pathweave-policy", "--lib", "--"])
        // Tests that cover everything registered.
        .args(["sizes_of_the_policies", "everything_through_every_scenario", "registry", "schemes"])
        .current_dir(&at)
        .env("CARGO_TARGET_DIR", target)
        .env("PATHWEAVE_BLESS", "1")
        .output()
        .expect("Cargo starts");
    let said = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert!(done.status.success(), "{}\n{}", said(&done.stdout), said(&done.stderr));
    let table = "crates/policy/src/testing/snapshot.txt";
    let rows = |root: &Path| fs::read_to_string(root.join(table)).expect("the table");
    let (old, new) = (rows(&root), rows(&at));
    let added: Vec<&str> = new.lines().filter(|row| !old.contains(row)).collect();
    for name in ["two_choices", "two-choices"] {
        assert!(added.iter().any(|row| row.contains(name)), "no row of {name}: {added:?}");
    }
    assert_eq!(new.lines().count(), old.lines().count() + added.len(), "rows of others are as before");
}
