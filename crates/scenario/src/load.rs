//! From a file and the command line to a scenario.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::expand::{DEFAULT_SCHEME, expand};
use crate::model::Scenario;
use crate::resolved;
use crate::text::shape::Shape;
use crate::text::{
    Diagnostic, Diagnostics, Document, FieldPath, Node, Setting, Source, Value, parse_document, read_document,
};

/// What changes a scenario from outside its file, in this order.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Changes {
    /// What another file sets, such as a sweep; it knows its places there.
    pub settings: Vec<Setting>,
    /// `key=value`, as given to `--set`.
    pub set: Vec<String>,
    /// The seed, as given to `--seed`.
    pub seed: Option<u64>,
    /// The scheme of all workloads that have none of their own, as given to `--schemes`: a built-in one, or one the
    /// scenario defines under `[schemes.NAME]`. What `set` says of its fields comes on top.
    pub scheme: Option<String>,
}

impl Changes {
    /// Makes later changes after these. A scheme, named by [`Changes::scheme`] or by a setting of `scheme`, replaces the one
    /// before and what was set of it; everything else adds to what there is.
    pub fn then(&mut self, later: Changes) {
        let of_scheme = |text: &String| Setting::parse(text).is_ok_and(|setting| setting.is_within("scheme"));
        let field = FieldPath::root().key("scheme");
        let names = |text: &String| Setting::parse(text).is_ok_and(|setting| setting.is_of(&field));
        if later.scheme.is_some() || later.set.iter().any(names) {
            self.set.retain(|text| !of_scheme(text));
            self.scheme = later.scheme;
        }
        self.settings.extend(later.settings);
        self.set.extend(later.set);
        self.seed = later.seed.or(self.seed);
    }
}

/// A scenario and where each of its values was written, so that what is found wrong later can still be placed.
#[derive(Clone, Debug)]
pub struct Loaded {
    /// The scenario.
    pub scenario: Scenario,
    /// Folder to which file names in the scenario are relative.
    pub base_dir: PathBuf,
    tree: Node,
}

impl Loaded {
    /// Reads, changes, completes and checks a scenario file.
    pub fn read(path: &Path, changes: &Changes) -> Result<Self, Diagnostics> {
        let (tree, _) = read_document(path)?;
        let base_dir = path.parent().unwrap_or(Path::new("")).to_owned();
        let name = path.file_stem().map(|stem| stem.to_string_lossy().into_owned());
        Self::complete(tree, name.unwrap_or_default(), base_dir, changes)
    }

    /// The same for a text, called `source_name` in errors. Its file names are relative to `base_dir`.
    pub fn parse(
        text: &str,
        source_name: &str,
        base_dir: impl Into<PathBuf>,
        changes: &Changes,
    ) -> Result<Self, Diagnostics> {
        let tree = parse_document(&Source::new(source_name, text))?;
        let name = source_name.trim_end_matches(".toml").to_owned();
        Self::complete(tree, name, base_dir.into(), changes)
    }

    /// The same for a scenario that is the table `field` of another document.
    pub fn within(
        document: &Document,
        field: &FieldPath,
        name: &str,
        changes: &Changes,
    ) -> Result<Self, Diagnostics> {
        let Some(tree) = document.table(field) else {
            let finding = Diagnostic::new(field.clone(), format!("`{field}` is no scenario"));
            return Err(document
                .place(finding.allowed("expected a table laid out as a scenario file is"))
                .into());
        };
        Self::complete(tree.clone(), name.to_owned(), document.base_dir.clone(), changes)
    }

    /// The same with another seed.
    pub fn with_seed(&self, seed: u64) -> Result<Self, Diagnostics> {
        if i64::try_from(seed).is_err() {
            return Err(self.place(seed_too_large(seed)).into());
        }
        let mut other = self.clone();
        other.scenario.seed = seed;
        Ok(other)
    }

    /// The scenario as TOML with every default filled in and files named by absolute paths: it runs again from
    /// anywhere.
    pub fn resolved(&self) -> String {
        resolved::to_toml(&self.scenario, &self.base_dir)
    }

    /// What decides the outcome of a run, as a text: the scenario with every default filled in, without its name, and
    /// with the contents of files in place of their names. Equal texts give equal digests.
    pub fn identity(&self) -> Result<String, Diagnostics> {
        resolved::identity(&self.scenario, &self.base_dir).map_err(Diagnostics::from)
    }

    fn complete(
        mut tree: Node,
        name: String,
        base_dir: PathBuf,
        changes: &Changes,
    ) -> Result<Self, Diagnostics> {
        let mut found = apply(changes, &mut tree)?;
        if let Some(table) = tree.as_table_mut() {
            table.entry("name".to_owned()).or_insert_with(|| Node::unplaced(Value::Text(name)));
        }
        expand(&mut tree, &mut found);
        // Unknown names leave values behind that would only be complained about again.
        let reported: Vec<String> = found.iter().map(|finding| finding.field.to_string()).collect();
        let shape = Shape::for_type::<Scenario>().check(&tree);
        found.extend(shape.into_iter().filter(|finding| !covered(&finding.field, &reported)));
        Diagnostics::check(found)?;
        let scenario: Scenario = deserialise(&tree)?;
        let findings = scenario.validate().into_iter().map(|finding| tree.place(finding));
        Diagnostics::check(findings.collect())?;
        Ok(Loaded { scenario, base_dir, tree })
    }

    /// Whether the file or an override states this field.
    pub(crate) fn is_written(&self, field: &FieldPath) -> bool {
        self.tree.find(field).is_some_and(|node| node.span.is_some() || node.key.is_some())
    }

    /// Places a finding that was made after loading.
    pub(crate) fn place(&self, finding: Diagnostic) -> Diagnostic {
        self.tree.place(finding)
    }
}

/// Whether `field` is one of `reported` or below it.
fn covered(field: &FieldPath, reported: &[String]) -> bool {
    let field = field.to_string();
    reported.iter().any(|outer| {
        let outer = outer.trim_end_matches(".name").trim_end_matches(".preset").trim_end_matches(".base");
        field.strip_prefix(outer).is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
    })
}

/// Applies the command line's changes. Findings that do not prevent looking further are returned.
fn apply(changes: &Changes, tree: &mut Node) -> Result<Vec<Diagnostic>, Diagnostics> {
    let mut found = Vec::new();
    // `--set scheme.paths=64` changes the default scheme where the scenario names none.
    if let Some(table) = tree.as_table_mut() {
        let default = || Node::unplaced(Value::Text(DEFAULT_SCHEME.to_owned()));
        table.entry("scheme".to_owned()).or_insert_with(default);
    }
    for setting in &changes.settings {
        found.extend(setting.apply(tree).err());
    }
    let insert = |tree: &mut Node, name: &str, node: Node| {
        tree.as_table_mut().map(|table| table.insert(name.to_owned(), node));
    };
    // Before what `--set` says of its fields.
    if let Some(scheme) = &changes.scheme {
        insert(tree, "scheme", flag(format!("--schemes {scheme}"), Value::Text(scheme.clone())));
    }
    for text in &changes.set {
        let setting = Setting::parse(text)?;
        let named = [FieldPath::root().key("scheme"), FieldPath::root().key("scheme").key("base")]
            .into_iter()
            .find(|field| changes.scheme.is_some() && setting.is_of(field));
        if let Some(field) = named {
            let help = "name schemes in one of them; --set scheme.FIELD=VALUE changes fields of each";
            found.push(setting.refused(format!("`{field}` is set beside --schemes")).help(help));
            continue;
        }
        found.extend(setting.apply(tree).err());
    }
    if let Some(seed) = changes.seed {
        let given = flag(format!("--seed {seed}"), Value::Integer(i64::try_from(seed).unwrap_or(i64::MAX)));
        if i64::try_from(seed).is_err() {
            found.push(seed_too_large(seed).at(given.span.clone()));
        }
        insert(tree, "seed", given);
    }
    Ok(found)
}

/// TOML's integers end there, and a scenario must be able to say its seed.
fn seed_too_large(seed: u64) -> Diagnostic {
    let finding = Diagnostic::new(FieldPath::root().key("seed"), format!("`seed` cannot be {seed}"));
    finding.allowed(format!("at most {}", i64::MAX))
}

/// A value that a flag of the command line sets.
fn flag(text: String, value: Value) -> Node {
    let source = Source::new("command line", text);
    let span = crate::text::Span::new(&Arc::clone(&source), 0..source.text.len());
    Node { value, key: Some(span.clone()), span: Some(span) }
}

/// The shape has been checked; what serde still refuses is reported where serde says it is.
fn deserialise(tree: &Node) -> Result<Scenario, Diagnostics> {
    serde_path_to_error::deserialize(tree.to_toml()).map_err(|error| {
        let field = FieldPath::from(error.path());
        let message = error.into_inner().message().trim().to_owned();
        tree.place(Diagnostic::new(field, message)).into()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn loaded(scheme: &str, set: &[&str]) -> Result<Loaded, Diagnostics> {
        let text = "scheme = \"ecmp\"\ntopology = { kind = \"star\", hosts = 4 }\n[[workload]]\nkind = \"permutation\"\n\
                    size = \"64KB\"\n";
        let set = set.iter().map(|&text| text.to_owned()).collect();
        let changes = Changes { set, scheme: Some(scheme.to_owned()), ..Changes::default() };
        Loaded::parse(text, "a.toml", ".", &changes)
    }

    /// Each scheme of a comparison has the fields that are set, over its own.
    #[test]
    fn fields_of_a_scheme_that_is_chosen_can_be_set() {
        for scheme in ["rps", "udmp"] {
            let loaded = loaded(scheme, &["scheme.paths=64"]).expect("a field of both");
            let chosen = &loaded.scenario.scheme;
            assert_eq!((chosen.name.as_str(), chosen.scheme.paths), (format!("{scheme}*").as_str(), 64));
        }
        for (set, what) in [("scheme=udmp", "`scheme`"), ("scheme.base=udmp", "`scheme.base`")] {
            let why = loaded("rps", &[set]).expect_err("two schemes").to_string();
            let said = format!("{what} is set beside --schemes");
            assert!(why.contains(&said) && why.contains("scheme.FIELD=VALUE"), "{why}");
        }
    }

    /// What is set with a scheme is of it; a scheme that comes later has nothing of an earlier one.
    #[test]
    fn later_changes_replace_schemes_and_add_to_the_rest() {
        let set = |text: &str| Changes { set: vec![text.to_owned()], ..Changes::default() };
        let scheme = |name: &str| Changes { scheme: Some(name.to_owned()), ..Changes::default() };
        let after = |all: &[Changes]| {
            let mut changes = Changes::default();
            all.iter().for_each(|later| changes.then(later.clone()));
            (changes.set, changes.scheme)
        };
        let texts = |all: &[&str]| all.iter().map(|&text| text.to_owned()).collect::<Vec<_>>();
        let first = [set("seed=3"), set("scheme.base=rps"), set("scheme.paths=64")];
        assert_eq!(after(&first), (texts(&["seed=3", "scheme.base=rps", "scheme.paths=64"]), None));
        let chosen = [&first[..], &[scheme("udmp")]].concat();
        assert_eq!(after(&chosen), (texts(&["seed=3"]), Some("udmp".to_owned())));
        let more = [&chosen[..], &[set("scheme.paths=8")]].concat();
        assert_eq!(after(&more), (texts(&["seed=3", "scheme.paths=8"]), Some("udmp".to_owned())));
        let other = [&more[..], &[set("scheme=ecmp")]].concat();
        assert_eq!(after(&other), (texts(&["seed=3", "scheme=ecmp"]), None));
    }
}
