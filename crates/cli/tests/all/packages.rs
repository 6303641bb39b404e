//! Crates that other programs use by themselves can be packaged as a registry takes them.

use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::common::{packages, root};

/// Categories of crates.io that fit here. The registry refuses others.
const CATEGORIES: &[&str] = &[
    "algorithms",
    "asynchronous",
    "config",
    "cryptography",
    "encoding",
    "memory-management",
    "network-programming",
    "no-std",
    "simulation",
];

/// Crates that are of use by themselves. `publish = false` marks all others.
const FOR_OTHERS: &[&str] = &[
    "datapath",
    "execution",
    "fabric",
    "flow",
    "heap",
    "policy",
    "records",
    "scenario",
    "secure",
    "sim",
    "tagged",
    "topo",
    "transport",
    "units",
    "wire",
    "workload",
];

/// Returns the packages of the workspace that are not marked `publish = false`.
fn published() -> Vec<Value> {
    packages().into_iter().filter(|package| package["publish"].is_null()).collect()
}

fn name(package: &Value) -> &str {
    package["name"].as_str().and_then(|name| name.strip_prefix("pathweave-")).expect("a name of ours")
}

fn words<'a>(package: &'a Value, key: &str) -> Vec<&'a str> {
    package[key].as_array().expect("a list").iter().filter_map(Value::as_str).collect()
}

#[test]
fn what_a_registry_asks_for_is_there() {
    let packages = published();
    let mut names: Vec<&str> = packages.iter().map(name).collect();
    names.sort_unstable();
    assert_eq!(names, FOR_OTHERS, "other crates say `publish = false`");
    for package in &packages {
        let name = name(package);
        for key in ["description", "license", "repository", "readme", "rust_version"] {
            assert!(package[key].as_str().is_some_and(|text| !text.is_empty()), "{name}: no {key}");
        }
        let keywords = words(package, "keywords");
        assert!((1..=5).contains(&keywords.len()), "{name}: 1 to 5 keywords, not {}", keywords.len());
        let fits = |word: &str| {
            word.len() <= 20
                && word.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_+".contains(&byte))
        };
        assert!(keywords.iter().all(|word| fits(word)), "{name}: {keywords:?}");
        let categories = words(package, "categories");
        assert!(!categories.is_empty(), "{name}: no category");
        for category in categories {
            assert!(CATEGORIES.contains(&category), "{name}: category {category}; known: {CATEGORIES:?}");
        }
        for dependency in package["dependencies"].as_array().expect("a list") {
            let on = dependency["name"].as_str().expect("a name");
            let Some(ours) = on.strip_prefix("pathweave-") else { continue };
            if dependency["kind"].is_null() {
                assert!(FOR_OTHERS.contains(&ours), "{name} depends on {ours}, which is not for others");
                assert_ne!(dependency["req"], "*", "{name}: {ours} has no version");
            } else if !FOR_OTHERS.contains(&ours) {
                assert_eq!(dependency["req"], "*", "{name}: tests alone use {ours}, which has no package");
            }
        }
    }
}

#[test]
fn cargo_packages_them_in_order() {
    let target = tempfile::tempdir().unwrap();
    let mut command = Command::new(env!("CARGO"));
    command.args(["package", "--no-verify", "--offline", "--allow-dirty", "--quiet"]);
    command.arg("--target-dir").arg(target.path()).current_dir(root());
    for krate in FOR_OTHERS {
        command.args(["-p", &format!("pathweave-{krate}")]);
    }
    let output = command.output().expect("cargo runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    for krate in FOR_OTHERS {
        let stem = format!("pathweave-{krate}-{}", env!("CARGO_PKG_VERSION"));
        let files = content(&target.path().join(format!("package/{stem}.crate")));
        for file in ["src/lib.rs", "Cargo.toml", "README.md", "LICENSE"] {
            assert!(files.contains(&format!("{stem}/{file}")), "{stem} has no {file}: {files:?}");
        }
    }
}

/// Returns the paths in a package.
fn content(package: &Path) -> Vec<String> {
    let output = Command::new("tar").arg("-tzf").arg(package).output().expect("tar runs");
    assert!(output.status.success(), "{}", package.display());
    String::from_utf8(output.stdout).expect("names are UTF-8").lines().map(str::to_owned).collect()
}
