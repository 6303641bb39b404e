//! Loading of a scenario from a file and the command line.

use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock};

use crate::expand::{DEFAULT_SCHEME, expand};
use crate::model::Scenario;
use crate::resolved;
use crate::text::shape::SchemaCheck;
use crate::text::{
    Diagnostic, Diagnostics, Document, FieldPath, FileKind, Node, Setting, Source, Value, parse_document,
    read_document,
};

/// The shape of a complete scenario, which is derived once: it takes as long as the rest of loading.
static SCENARIO: LazyLock<SchemaCheck> = LazyLock::new(SchemaCheck::for_type::<Scenario>);

/// Changes to a scenario from outside its file, applied in this order.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Changes {
    /// Settings of another file such as a sweep, with their locations there.
    pub settings: Vec<Setting>,
    /// `key=value` settings of `--set`.
    pub set: Vec<String>,
    /// Seed of `--seed`.
    pub seed: Option<u64>,
    /// Scheme of `--schemes` for all workloads without a scheme of their own: a built-in one, or one that the
    /// scenario defines under `[schemes.NAME]`. Settings in `set` refine it.
    pub scheme: Option<String>,
}

impl Changes {
    /// Appends later changes. A scheme, from [`Changes::scheme`] or a setting of `scheme`, replaces the earlier
    /// scheme and its settings. Everything else is added.
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

/// Scenario with the source location of each value, so that later errors can still point to it.
#[derive(Clone, Debug)]
pub struct Loaded {
    /// The scenario.
    pub scenario: Scenario,
    /// Base folder of relative file names in the scenario.
    pub base_dir: PathBuf,
    tree: Node,
}

impl Loaded {
    /// Reads a scenario file, applies the changes, fills in defaults, and validates the result.
    ///
    /// # Errors
    ///
    /// [`Diagnostics`] with all errors found.
    pub fn read(path: &Path, changes: &Changes) -> Result<Self, Diagnostics> {
        let (tree, source) = read_document(path)?;
        FileKind::Scenario.check(&tree, &source.name)?;
        let base_dir = path.parent().unwrap_or(Path::new("")).to_owned();
        let name = path.file_stem().map(|stem| stem.to_string_lossy().into_owned());
        Self::complete(tree, name.unwrap_or_default(), base_dir, changes)
    }

    /// Parses a scenario from a text, which error messages call `source_name`. Relative file names refer to
    /// `base_dir`.
    ///
    /// # Errors
    ///
    /// As for [`Loaded::read`].
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

    /// Reads the scenario in the table `field` of another document.
    ///
    /// # Errors
    ///
    /// As for [`Loaded::read`], and if `field` is not a table.
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

    /// Returns the scenario with another seed.
    ///
    /// # Errors
    ///
    /// The seed is larger than `i64::MAX`.
    pub fn with_seed(&self, seed: u64) -> Result<Self, Diagnostics> {
        if i64::try_from(seed).is_err() {
            return Err(self.add_location(seed_too_large(seed)).into());
        }
        let mut other = self.clone();
        other.scenario.seed = seed;
        Ok(other)
    }

    /// Returns the scenario as TOML with all defaults filled in and absolute file names, so that it runs from any
    /// folder.
    pub fn resolved(&self) -> String {
        resolved::to_toml(&self.scenario, &self.base_dir)
    }

    /// Returns the paths of the files that the scenario names. The path of a trace is that of its folder, or the folder
    /// and the prefix of its files.
    pub fn files(&self) -> Vec<PathBuf> {
        resolved::files(&self.scenario, &self.base_dir)
    }

    /// Returns a text that identifies the outcome of a run: the scenario with all defaults filled in, without its
    /// name, and with a digest of each file in place of the file's name. Runs of equal texts give equal digests.
    ///
    /// # Errors
    ///
    /// A file cannot be read.
    pub fn identity(&self) -> Result<String, Diagnostics> {
        resolved::canonical_text(&self.scenario, &self.base_dir).map_err(Diagnostics::from)
    }

    fn complete(
        mut tree: Node,
        name: String,
        base_dir: PathBuf,
        changes: &Changes,
    ) -> Result<Self, Diagnostics> {
        let mut found = apply(changes, &mut tree)?;
        if let Some(table) = tree.as_table_mut() {
            table.entry("name".to_owned()).or_insert_with(|| Node::without_location(Value::Text(name)));
        }
        expand(&mut tree, &mut found);
        SCENARIO.open_names(&mut tree);
        // An unknown name leaves a value behind whose shape would be reported a second time.
        let reported: Vec<String> = found.iter().map(|finding| finding.field.to_string()).collect();
        let shape = SCENARIO.check(&tree);
        found.extend(shape.into_iter().filter(|finding| !is_already_reported(&finding.field, &reported)));
        Diagnostics::check(found)?;
        let scenario: Scenario = deserialise(&tree)?;
        let findings = scenario.validate().into_iter().map(|finding| tree.place(finding));
        Diagnostics::check(findings.collect())?;
        Ok(Loaded { scenario, base_dir, tree })
    }

    /// Returns true if the file or an override sets this field.
    pub(crate) fn is_written(&self, field: &FieldPath) -> bool {
        self.tree.find(field).is_some_and(|node| node.span.is_some() || node.key.is_some())
    }

    /// Returns the text of a field, `None` if it is none or not set.
    pub(crate) fn text(&self, field: &FieldPath) -> Option<&str> {
        match &self.tree.find(field)?.value {
            Value::Text(text) => Some(text),
            _ => None,
        }
    }

    /// Adds the source location to an error that was found after loading.
    pub(crate) fn add_location(&self, finding: Diagnostic) -> Diagnostic {
        self.tree.place(finding)
    }
}

/// Returns true if `field` is one of `reported` or within one of them.
fn is_already_reported(field: &FieldPath, reported: &[String]) -> bool {
    let field = field.to_string();
    reported.iter().any(|outer| {
        let outer = outer.trim_end_matches(".name").trim_end_matches(".preset").trim_end_matches(".base");
        field.strip_prefix(outer).is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
    })
}

/// Applies the command line's changes. Returns the errors after which the check can continue.
fn apply(changes: &Changes, tree: &mut Node) -> Result<Vec<Diagnostic>, Diagnostics> {
    let mut found = Vec::new();
    // `--set scheme.paths=64` changes the default scheme if the scenario names none.
    if let Some(table) = tree.as_table_mut() {
        let default = || Node::without_location(Value::Text(DEFAULT_SCHEME.to_owned()));
        table.entry("scheme".to_owned()).or_insert_with(default);
    }
    for setting in &changes.settings {
        found.extend(setting.apply(tree).err());
    }
    let insert = |tree: &mut Node, name: &str, node: Node| {
        tree.as_table_mut().map(|table| table.insert(name.to_owned(), node));
    };
    // Applied before the settings of `--set` for its fields.
    if let Some(scheme) = &changes.scheme {
        insert(tree, "scheme", node_of_flag(format!("--schemes {scheme}"), Value::Text(scheme.clone())));
    }
    for text in &changes.set {
        let setting = Setting::parse(text)?;
        let named = [FieldPath::root().key("scheme"), FieldPath::root().key("scheme").key("base")]
            .into_iter()
            .find(|field| changes.scheme.is_some() && setting.is_of(field));
        if let Some(field) = named {
            let help = "name schemes in one of them; --set scheme.FIELD=VALUE changes fields of each";
            found.push(setting.error(format!("`{field}` is set beside --schemes")).help(help));
            continue;
        }
        found.extend(setting.apply(tree).err());
    }
    if let Some(seed) = changes.seed {
        let given =
            node_of_flag(format!("--seed {seed}"), Value::Integer(i64::try_from(seed).unwrap_or(i64::MAX)));
        if i64::try_from(seed).is_err() {
            found.push(seed_too_large(seed).at(given.span.clone()));
        }
        insert(tree, "seed", given);
    }
    Ok(found)
}

/// Returns the error for a seed that TOML's integers cannot represent.
fn seed_too_large(seed: u64) -> Diagnostic {
    let finding = Diagnostic::new(FieldPath::root().key("seed"), format!("`seed` cannot be {seed}"));
    finding.allowed(format!("at most {}", i64::MAX))
}

/// Returns the node for a value that a command line flag sets.
fn node_of_flag(text: String, value: Value) -> Node {
    let source = Source::new("command line", text);
    let span = crate::text::Span::new(&Arc::clone(&source), 0..source.text.len());
    Node { value, key: Some(span.clone()), span: Some(span) }
}

/// Deserialises a checked tree. An error that only serde detects is reported at the location that serde names.
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

    /// Each scheme of a comparison gets the fields that are set, on top of its own.
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

    /// Fields of former versions are answered with what has taken their place.
    #[test]
    fn former_fields_are_answered_with_their_new_names() {
        for (scheme, set, answer) in [
            ("ecmp", "scheme.cnp.mode=off", "the field is now called `kind`"),
            ("udmp", "scheme.policy.variant=published", "`kind = \"udmp_published\"`"),
            ("dlbf", "scheme.policy.gap_margin=1us", "no delay is added to DLBF's gaps"),
            ("dlbf", "scheme.reordering.copy_marks=notify", "never cause a notification"),
        ] {
            let why = loaded(scheme, &[set]).expect_err("a former field").to_string();
            assert!(why.contains("unknown field") && why.contains(answer), "{why}");
        }
        let why = loaded("weave", &["scheme.cnp.interval=1us"]).expect_err("there are no notifications");
        assert!(why.to_string().contains("unknown field `interval` in `scheme.cnp`"), "{why}");
    }

    /// Settings of a scheme belong to that scheme; a later scheme inherits nothing from an earlier one.
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
