//! Validation of the values of a scenario, as far as it is possible without building the network.

use std::collections::BTreeMap;

use pathweave_policy::{ConfigError, Scheme};
use pathweave_units::Duration;

use super::{NamedScheme, Role, Scenario};
use crate::text::{Diagnostic, FieldPath, closest_name};

impl Scenario {
    /// Returns all errors in the values.
    pub(crate) fn validate(&self) -> Vec<Diagnostic> {
        let root = FieldPath::root();
        let mut found = Vec::new();
        self.check_sections(&mut found);
        if self.name.trim().is_empty() || self.name.chars().any(char::is_control) {
            found.push(out_of_range(root.key("name"), &format!("{:?}", self.name), "a name of one line"));
        }
        if self.workload.is_empty() {
            let finding = Diagnostic::new(root.key("workload"), "the scenario has no workload");
            found.push(finding.allowed("at least one [[workload]] is needed"));
        }
        self.check_groups(&mut found);
        self.check_pools(&mut found);
        if let Err(why) = self.switch.validate() {
            found.push(out_of_range(root.key("switch").key(why.field), &why.value, &why.allowed));
        }
        for (i, fault) in self.fault.iter().enumerate() {
            if let Err(why) = fault.validate() {
                found.push(out_of_range(root.key("fault").index(i).key(why.field), &why.value, &why.allowed));
            }
        }
        self.check_schemes(&mut found);
        found
    }

    /// Returns every scheme with the field that sets it, beginning with the scenario's own.
    pub(crate) fn schemes(&self) -> impl Iterator<Item = (FieldPath, &NamedScheme)> {
        let root = FieldPath::root();
        let of_workloads = self.workload.iter().enumerate().flat_map(|(i, workload)| {
            let path = FieldPath::root().key("workload").index(i);
            let fields = [("scheme", &workload.scheme), ("between_sites", &workload.between_sites)];
            fields.into_iter().filter_map(move |(field, scheme)| Some((path.key(field), scheme.as_ref()?)))
        });
        [(root.key("scheme"), &self.scheme)].into_iter().chain(of_workloads)
    }

    /// Checks that workloads of one group have the same scheme and class.
    fn check_groups(&self, found: &mut Vec<Diagnostic>) {
        let mut first_of: BTreeMap<&str, usize> = BTreeMap::new();
        for (i, workload) in self.workload.iter().enumerate() {
            let path = FieldPath::root().key("workload").index(i);
            let classes = self.switch.weights.len();
            if workload.class == 0 || usize::from(workload.class) > classes {
                let allowed = format!("1 to {classes}, the number of `switch.weights`");
                found.push(out_of_range(path.key("class"), &workload.class.to_string(), &allowed));
            }
            let group = workload.group_name();
            if group.trim().is_empty() || group.chars().any(char::is_control) {
                found.push(out_of_range(path.key("group"), &format!("{group:?}"), "a name of one line"));
            }
            let first = &self.workload[*first_of.entry(group).or_insert(i)];
            for (differs, field) in [
                (first.scheme != workload.scheme, "scheme"),
                (first.between_sites != workload.between_sites, "between_sites"),
                (first.class != workload.class, "class"),
                (first.role != workload.role, "role"),
            ] {
                if differs {
                    let message = format!("workloads of group \"{group}\" differ in `{field}`");
                    let finding = Diagnostic::new(path.key(field), message);
                    found.push(finding.help("give one of them another `group`, or both the same"));
                }
            }
        }
    }

    fn check_pools(&self, found: &mut Vec<Diagnostic>) {
        let root = FieldPath::root();
        for (name, pool) in &self.pools {
            found.extend(pool.errors(&root.key("pools").key(name), name, self.pools.keys()));
        }
        for (i, workload) in self.workload.iter().enumerate() {
            let Some(pool) = &workload.pool else { continue };
            if !self.pools.contains_key(pool) {
                let path = root.key("workload").index(i).key("pool");
                let names = || self.pools.keys().map(String::as_str);
                let finding = Diagnostic::new(path, format!("no pool is named \"{pool}\""));
                let all = names().collect::<Vec<_>>().join(", ");
                let finding = match all.as_str() {
                    "" => finding.allowed("declare it: [pools] with a line `name = hosts`"),
                    all => finding.allowed(format!("pools: {all}")),
                };
                found.push(finding.suggest(closest_name(pool, names())));
            }
        }
        if !self.workload.is_empty() && self.workload.iter().all(|workload| workload.role == Role::Background)
        {
            let path = root.key("workload").index(0).key("role");
            let finding = Diagnostic::new(path, "every workload is background, so the run would end at once");
            found.push(finding.help("set role = \"foreground\", the default, for the measured workloads"));
        }
    }

    fn check_schemes(&self, found: &mut Vec<Diagnostic>) {
        let mut by_name: BTreeMap<&str, &Scheme> = BTreeMap::new();
        for (path, NamedScheme { name, scheme }) in self.schemes() {
            if let Err(why) = scheme.validate() {
                found.push(out_of_range(path.key(&why.field), &why.value, &why.allowed));
            }
            if *by_name.entry(name).or_insert(scheme) != scheme {
                let message = format!("two different schemes are named \"{name}\"");
                found.push(Diagnostic::new(path, message).help("give one of them a `name` of its own"));
            }
        }
    }

    /// Checks the sections that the simulator configures itself by.
    fn check_sections(&self, found: &mut Vec<Diagnostic>) {
        let root = FieldPath::root();
        for (section, errors) in [
            ("network", self.network.errors()),
            ("run", self.run.errors()),
            ("observe", self.observe.errors()),
        ] {
            let section = root.key(section);
            let of = |why: ConfigError| out_of_range(section.key(&why.field), &why.value, &why.allowed);
            found.extend(errors.into_iter().map(of));
        }
        let follow = &self.observe.follow;
        if !follow.is_empty() && self.observe.interval == Duration::ZERO && self.observe.errors().is_empty() {
            let message = "`observe.follow` follows flows at each sample, and there are none";
            let finding = Diagnostic::new(root.key("observe.follow"), message);
            found.push(finding.allowed("set `observe.interval` above 0s"));
        }
    }
}

/// Returns the error for a value outside of its field's range.
pub(crate) fn out_of_range(field: FieldPath, value: &str, allowed: &str) -> Diagnostic {
    let message = format!("`{field}` cannot be {value}");
    // Some crates list the allowed values, others write a sentence about them.
    let sentence =
        ["must", "expected", "no", "already", "a", "give"].contains(&allowed.split(' ').next().unwrap_or(""));
    let allowed = if sentence { allowed.to_owned() } else { format!("allowed: {allowed}") };
    Diagnostic::new(field, message).allowed(allowed)
}
