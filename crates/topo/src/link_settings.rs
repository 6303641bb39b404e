//! Settings of some links, which tables select by name: `[[link]]`.

use pathweave_units::{Duration, Glob, Rate, closest_name, name_kind, name_kinds};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::directions::{Direction, Ways};
use crate::graph::{LinkId, Topology};

/// Settings of the links that a table selects. Absent fields are those of earlier tables for the link, or of the
/// topology. At least one field besides `match` is given.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LinkFor {
    /// Names of the links, with the ends in either order: "leaf0-spine1", or a pattern in which `*` stands for any
    /// characters, `?` for one, and `[0-7]` for a number: "srv3.gpu*-p2.leaf*". With `->` in place of the dash, the
    /// direction from the first end to the second: "leaf0->spine*". Parallel links are selected together, or one of
    /// them by its number from 0: "leaf0-spine1#1".
    #[serde(rename = "match")]
    pub names: String,
    /// Rate of each direction, above 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate: Option<Rate>,
    /// Propagation delay of each direction.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delay: Option<Duration>,
    /// Probability that a packet is lost, 0 to 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error_rate: Option<f64>,
}

/// Reason why tables do not give settings to links.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LinkForError {
    /// A value is out of its range.
    #[error("link[{table}].{field} is {value}; allowed: {allowed}")]
    Value {
        /// Number of the table, from 0.
        table: usize,
        /// The field.
        field: &'static str,
        /// The value.
        value: String,
        /// Allowed values.
        allowed: &'static str,
    },
    /// A table sets no field.
    #[error("link[{table}] sets nothing")]
    NothingSet {
        /// Number of the table, from 0.
        table: usize,
    },
    /// A table selects no link.
    #[error("no link matches \"{pattern}\"; there are links like {known}")]
    NoMatch {
        /// Number of the table, from 0.
        table: usize,
        /// The pattern.
        pattern: String,
        /// Patterns of the links that exist.
        known: String,
        /// The most similar pattern of links that exist.
        nearest: Option<String>,
    },
}

impl LinkFor {
    fn apply(&self, direction: &mut Direction) {
        direction.rate = self.rate.unwrap_or(direction.rate);
        direction.delay = self.delay.unwrap_or(direction.delay);
        direction.error_rate = self.error_rate.unwrap_or(direction.error_rate);
    }

    fn check(&self, table: usize) -> Result<(), LinkForError> {
        let refuse = |field, value, allowed| Err(LinkForError::Value { table, field, value, allowed });
        if let Some(rate) = self.rate.filter(|&rate| rate == Rate::ZERO) {
            let allowed = "above 0; a dead link is a [[fault]] of kind = \"link-down\"";
            return refuse("rate", rate.to_string(), allowed);
        }
        if let Some(errors) = self.error_rate.filter(|errors| !(0.0..=1.0).contains(errors)) {
            return refuse("error_rate", errors.to_string(), "a probability, 0 to 1");
        }
        match (self.rate, self.delay, self.error_rate) {
            (None, None, None) => Err(LinkForError::NothingSet { table }),
            _ => Ok(()),
        }
    }
}

/// Parsed selection of a table.
struct Selection {
    ends: Ends,
    /// Numbers of parallel links.
    numbers: Glob,
}

/// Patterns of the ends of links.
enum Ends {
    /// Both ends joined by a dash, in either order.
    Joined(Glob),
    /// First and second end of a direction.
    OneWay(Glob, Glob),
}

impl Selection {
    /// Parses `match` of a table. `None` if it is no pattern, which selects nothing.
    fn parse(names: &str) -> Option<Self> {
        let (names, numbers) = names.rsplit_once('#').unwrap_or((names, "*"));
        let glob = |text: &str| Glob::parse(text).ok();
        let ends = match names.split_once("->") {
            Some((from, to)) => Ends::OneWay(glob(from)?, glob(to)?),
            None => Ends::Joined(glob(names)?),
        };
        Some(Selection { ends, numbers: glob(numbers)? })
    }

    /// Returns the selected directions of a link, or `None`. `a` and `b` are the names of its ends, `number`
    /// distinguishes parallel links: "", "#1", "#2".
    fn ways(&self, a: &str, b: &str, number: &str) -> Option<Ways> {
        let number = if number.is_empty() { "0" } else { &number[1..] };
        if !self.numbers.matches(number) {
            return None;
        }
        match &self.ends {
            Ends::OneWay(from, to) => {
                let one_way = |a: &str, b: &str| from.matches(a) && to.matches(b);
                match (one_way(a, b), one_way(b, a)) {
                    (true, true) => Some(Ways::Both),
                    (true, false) => Some(Ways::FromA),
                    (false, true) => Some(Ways::FromB),
                    (false, false) => None,
                }
            }
            Ends::Joined(names) => {
                let matches = |a: &str, b: &str| names.matches(&format!("{a}-{b}"));
                (matches(a, b) || matches(b, a)).then_some(Ways::Both)
            }
        }
    }
}

impl Topology {
    /// Returns the topology with the settings of these tables. Of several tables for a link, the last one that sets
    /// a field counts.
    ///
    /// # Errors
    /// A table has a value out of its range, sets nothing, or selects no link.
    pub fn with_links(mut self, tables: &[LinkFor]) -> Result<Self, LinkForError> {
        if tables.is_empty() {
            return Ok(self);
        }
        for (table, settings) in tables.iter().enumerate() {
            settings.check(table)?;
        }
        let selections: Vec<Option<Selection>> =
            tables.iter().map(|table| Selection::parse(&table.names)).collect();
        let mut selected = vec![false; tables.len()];
        for link in (0..self.links().len() as u32).map(LinkId) {
            let chosen: Vec<(usize, Ways)> = {
                let (a, b, number) = self.parts_of_name(link);
                let ways = |selection: &Option<Selection>| selection.as_ref()?.ways(&a, &b, &number);
                let selected = selections.iter().enumerate();
                selected.filter_map(|(table, selection)| Some((table, ways(selection)?))).collect()
            };
            for (table, ways) in chosen {
                selected[table] = true;
                self.change(link, ways, |direction| tables[table].apply(direction));
            }
        }
        match selected.iter().position(|selected| !selected) {
            Some(table) => Err(self.no_link(table, &tables[table].names)),
            None => Ok(self),
        }
    }

    /// Makes directions of a link at least as fast as `rate`, and no longer than `delay`, which counts without the
    /// latency of switches.
    pub fn improve(&mut self, link: LinkId, ways: Ways, rate: Option<Rate>, delay: Option<Duration>) {
        self.change(link, ways, |direction| {
            direction.rate = direction.rate.max(rate.unwrap_or(direction.rate));
            direction.delay = direction.delay.min(delay.unwrap_or(direction.delay));
        });
    }

    /// Sets the rate of directions of a link.
    pub fn set_rate(&mut self, link: LinkId, ways: Ways, rate: Rate) {
        self.change(link, ways, |direction| direction.rate = rate);
    }

    /// Changes some directions of a link.
    fn change(&mut self, link: LinkId, ways: Ways, change: impl Fn(&mut Direction)) {
        let (mut forth, mut back) = (self.link(link).forth(), self.back(link));
        for at_a in ways.begin_at_a() {
            change(if at_a { &mut forth } else { &mut back });
        }
        let changed = self.link_mut(link);
        (changed.rate, changed.delay, changed.error_rate) = (forth.rate, forth.delay, forth.error_rate);
        if forth == back {
            self.directions_mut().back.remove(&link);
        } else {
            self.directions_mut().back.insert(link, back);
        }
    }

    /// Returns the error of a table that selects no link.
    fn no_link(&self, table: usize, pattern: &str) -> LinkForError {
        let links = || (0..self.links().len() as u32).map(|link| self.parts_of_name(LinkId(link)));
        let kinds = match pattern.contains("->") {
            true => name_kinds(links().flat_map(|(a, b, _)| [format!("{a}->{b}"), format!("{b}->{a}")])),
            false => name_kinds(links().map(|(a, b, _)| format!("{a}-{b}"))),
        };
        let turned = |kind: &String| {
            let (a, b) = kind.split_once('-')?;
            Some(format!("{b}-{a}"))
        };
        let others: Vec<String> =
            if pattern.contains("->") { Vec::new() } else { kinds.iter().filter_map(turned).collect() };
        let all = kinds.iter().chain(&others).map(String::as_str);
        let wrong = Glob::parse(pattern).err().map(|why| format!("; {}", why.what));
        LinkForError::NoMatch {
            table,
            pattern: pattern.to_owned(),
            known: kinds.join(", ") + &wrong.unwrap_or_default(),
            nearest: closest_name(&name_kind(pattern), all).map(str::to_owned),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::{Build, LeafSpine, Routing};
    use pathweave_units::HostId;

    fn network() -> Topology {
        LeafSpine { leaf_spine_links: 2, ..LeafSpine::new(2, 2, 2) }.build(Path::new(".")).unwrap()
    }

    fn table(names: &str) -> LinkFor {
        LinkFor { names: names.to_owned(), rate: None, delay: None, error_rate: None }
    }

    fn rate(names: &str, gbps: u64) -> LinkFor {
        LinkFor { rate: Some(Rate::from_gbps(gbps)), ..table(names) }
    }

    /// Returns the rates in Gb/s from `a` to `b` and back.
    fn rates(topology: &Topology, link: &str) -> (u64, u64) {
        let link = topology.link_by_name(link).unwrap();
        let of = |from_a| topology.direction(link, from_a).rate.as_bps() / 1_000_000_000;
        (of(true), of(false))
    }

    #[test]
    fn patterns_select_links_and_directions() {
        let usual = rates(&network(), "host0-leaf0").0;
        let of = |tables: &[LinkFor], link| rates(&network().with_links(tables).unwrap(), link);
        assert_eq!(of(&[rate("leaf0-spine1", 3)], "leaf0-spine1"), (3, 3));
        assert_eq!(of(&[rate("spine1-leaf0", 3)], "leaf0-spine1#1"), (3, 3), "ends in the other order");
        assert_eq!(of(&[rate("leaf0-spine1#1", 3)], "leaf0-spine1#1"), (3, 3));
        assert_eq!(of(&[rate("leaf0-spine1#1", 3)], "leaf0-spine1"), (usual, usual), "a parallel link");
        assert_eq!(of(&[rate("leaf0->spine1#0", 3)], "leaf0-spine1"), (3, usual));
        assert_eq!(of(&[rate("spine1->leaf?", 3)], "leaf0-spine1"), (usual, 3));
        assert_eq!(of(&[rate("leaf*->spine*", 3)], "leaf1-spine0#1"), (3, usual));
        assert_eq!(of(&[rate("*->*", 3)], "leaf1-spine0"), (3, 3));
        // The last table counts, for the direction that it selects.
        let tables = [rate("leaf0-*", 5), rate("leaf0->spine0", 7), rate("*-spine1", 9)];
        assert_eq!(of(&tables, "leaf0-spine0"), (7, 5));
        assert_eq!(of(&tables, "leaf0-spine1"), (9, 9));
        assert_eq!(of(&tables, "host0-leaf0"), (5, 5));
        let alike = network().with_links(&[rate("leaf0->*", 3), rate("*->leaf0", 3)]).unwrap();
        assert!(!alike.has_directions(), "both directions became alike");
        assert_eq!(network().with_links(&[]).unwrap(), network());
    }

    #[test]
    fn latency_is_behind_the_switch() {
        let latency = [600, 600, 0, 0].map(Duration::from_ns).to_vec();
        let topology = network().with_latencies(latency);
        let delay = |from: &str, to: &str| {
            let (from, to) = (topology.node_by_name(from).unwrap(), topology.node_by_name(to).unwrap());
            let port = topology.ports(from).iter().find(|port| port.peer == to).unwrap();
            assert_eq!(topology.ingress(port), topology.direction(port.link, !port.is_a));
            (topology.egress(port).delay - topology.link(port.link).delay).as_ps() / 1_000
        };
        assert_eq!((delay("leaf0", "spine0"), delay("leaf0", "host0")), (600, 600));
        assert_eq!((delay("spine0", "leaf0"), delay("host0", "leaf0")), (0, 0));
        let plain = network();
        let time = |of: &Topology| {
            let routing = Routing::all_links_up(of);
            crate::PathFinder::new(of, &routing).pair(HostId(0), HostId(3), 1_000).unwrap().latency
        };
        assert_eq!(time(&topology), time(&plain) + Duration::from_ns(1_200), "two leaves on the way");
    }

    #[test]
    fn tables_without_links_or_sense_are_refused() {
        let refused = |table: LinkFor| network().with_links(&[rate("*", 1), table]).unwrap_err();
        let nearest = |pattern: &str| match refused(rate(pattern, 3)) {
            LinkForError::NoMatch { table: 1, nearest, .. } => nearest,
            other => panic!("{other}"),
        };
        assert_eq!(nearest("laef0-spine1").as_deref(), Some("leaf*-spine*"));
        assert_eq!(nearest("spine0-laef1").as_deref(), Some("spine*-leaf*"));
        assert_eq!(nearest("leaf0->spnie*").as_deref(), Some("leaf*->spine*"));
        let known = refused(rate("a", 3)).to_string();
        assert_eq!(known, "no link matches \"a\"; there are links like host*-leaf*, leaf*-spine*");
        assert_eq!(refused(table("*")), LinkForError::NothingSet { table: 1 });
        let zero = refused(rate("*", 0)).to_string();
        assert!(zero.starts_with("link[1].rate is 0bps; allowed: above 0"), "{zero}");
        let errors = refused(LinkFor { error_rate: Some(1.5), ..table("*") }).to_string();
        assert_eq!(errors, "link[1].error_rate is 1.5; allowed: a probability, 0 to 1");
    }

    #[test]
    fn a_name_with_an_arrow_is_a_direction() {
        let topology = network();
        let ways =
            |name: &str| topology.ways_by_name(name).map(|(link, ways)| (topology.link_name(link), ways));
        assert_eq!(ways("leaf0-spine1"), Ok(("leaf0-spine1".into(), Ways::Both)));
        assert_eq!(ways("leaf0->spine1#1"), Ok(("leaf0-spine1#1".into(), Ways::FromA)));
        assert_eq!(ways("spine1->leaf0"), Ok(("leaf0-spine1".into(), Ways::FromB)));
        assert_eq!(
            ways("leaf0->spine7").unwrap_err().to_string(),
            "no link is named \"leaf0->spine7\"; did you mean \"leaf0->spine0\"?"
        );
    }
}
