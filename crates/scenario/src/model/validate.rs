//! Validation of the values of a scenario, as far as it is possible without building the network.

use std::collections::BTreeMap;

use pathweave_policy::Scheme;
use pathweave_transport::MIN_MTU_PAYLOAD;
use pathweave_units::{Bytes, Duration};

use super::{NamedScheme, Role, Scenario};
use crate::text::{Diagnostic, FieldPath, closest_name};

/// Largest payload of a full packet in a fabric: that of jumbo frames. Real hosts use larger packets on loopback
/// only.
const LARGEST_MTU: Bytes = Bytes::new(9_000);

impl Scenario {
    /// Returns all errors in the values.
    pub(crate) fn validate(&self) -> Vec<Diagnostic> {
        let root = FieldPath::root();
        let mut found = Vec::new();
        self.check_network(&mut found);
        self.check_run(&mut found);
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
        for (name, &hosts) in &self.pools {
            if hosts == 0 {
                found.push(out_of_range(root.key("pools").key(name), "0", "1 host or more"));
            }
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

    fn check_network(&self, found: &mut Vec<Diagnostic>) {
        let network = FieldPath::root().key("network");
        let (least, most) = (Bytes::new(u64::from(MIN_MTU_PAYLOAD)), LARGEST_MTU);
        if !(least..=most).contains(&self.network.mtu) {
            let allowed = format!("{} B to {} B of payload", least.get(), most.get());
            found.push(out_of_range(network.key("mtu"), &self.network.mtu.to_string(), &allowed));
        }
        let timer = &self.network.retransmission;
        let path = network.key("retransmission");
        if timer.timeout == Duration::ZERO {
            found.push(out_of_range(path.key("timeout"), "0s", "above 0"));
        }
        if timer.max_timeout < timer.timeout {
            let allowed = format!("at least `timeout`, {}", timer.timeout);
            found.push(out_of_range(path.key("max_timeout"), &timer.max_timeout.to_string(), &allowed));
        }
        if !(1..=16).contains(&timer.backoff) {
            found.push(out_of_range(path.key("backoff"), &timer.backoff.to_string(), "1 to 16"));
        }
    }

    fn check_run(&self, found: &mut Vec<Diagnostic>) {
        let run = FieldPath::root().key("run");
        if self.run.until == Some(Duration::ZERO) {
            found.push(out_of_range(run.key("until"), "0s", "above 0"));
        }
        if self.run.max_events == Some(0) {
            found.push(out_of_range(run.key("max_events"), "0", "1 or more"));
        }
        if let Some(threads) = self.run.threads.filter(|threads| !(1..=1_024).contains(threads)) {
            found.push(out_of_range(run.key("threads"), &threads.to_string(), "1 to 1024"));
        }
        if self.observe.max_samples < 2 {
            let field = FieldPath::root().key("observe.max_samples");
            let allowed = "2 or more; `observe.interval = \"0s\"` turns samples off";
            found.push(out_of_range(field, &self.observe.max_samples.to_string(), allowed));
        }
        if self.observe.flows > 1_000 {
            let field = FieldPath::root().key("observe.flows");
            found.push(out_of_range(field, &self.observe.flows.to_string(), "0 to 1000"));
        }
        let follow = FieldPath::root().key("observe.follow");
        let followed = self.observe.follow.len();
        if self.observe.flows <= 1_000 && self.observe.flows as usize + followed > 1_000 {
            let allowed = "at most 1000 flows, including `observe.flows`";
            found.push(out_of_range(follow, &format!("a list of {followed}"), allowed));
        } else if followed > 0 && self.observe.interval == Duration::ZERO {
            let message = "`observe.follow` follows flows at each sample, and there are none";
            found.push(Diagnostic::new(follow, message).allowed("set `observe.interval` above 0s"));
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
