//! Schedule of a scenario's faults for a lab.
//!
//! A lab whose links have a thousandth of the rate is its network in slow motion: a microsecond of the network takes
//! a millisecond in the lab. Times are therefore divided by the rate scale.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use pathweave_fabric::any_of;
use pathweave_fabric::config::FaultConfig;
use pathweave_sim::{Action, link_changes};
use pathweave_topo::{LinkId, TopoError, Topology, Ways};
use pathweave_units::Rate;

use crate::error::LabError;
use crate::lab::{Lab, LinkState};
use crate::settings::RateScale;

/// Largest number of changes in a schedule.
const MOST_CHANGES: usize = 100_000;
/// Time after the start within which a change is applied at once, since applying it takes longer than that.
const AT_ONCE: Duration = Duration::from_millis(1);
/// Longest sleep at a time, so that a request to stop is noticed soon.
const NAP: Duration = Duration::from_millis(20);

/// Changes to the links of a lab with their times. The default has none.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Schedule {
    /// Changes in order of time since the start.
    changes: Vec<(Duration, Change)>,
    notes: Vec<String>,
}

/// Change of a link or of the routes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Change {
    /// A link goes down or comes up.
    Link(LinkId, LinkState),
    /// A link gets this rate of the topology.
    Rate(LinkId, Rate),
    /// A link loses packets with this probability.
    Loss(LinkId, f64),
    /// Routes avoid the links that are down, and use the others.
    Reroute,
}

impl Schedule {
    /// Creates the schedule of a scenario's faults, which combine as in the simulator ([`link_changes`]). Routes are
    /// updated `reroute_after` a change of a link. Faults that a lab cannot apply are left out and described in
    /// [`Schedule::notes`].
    ///
    /// # Errors
    ///
    /// A name that does not exist, a value out of its range, a fault of one direction, or more than 100,000 changes.
    pub fn new(
        topology: &Topology,
        faults: &[FaultConfig],
        reroute_after: pathweave_units::Duration,
        scale: RateScale,
    ) -> Result<Schedule, LabError> {
        faults.iter().try_for_each(|fault| check(topology, fault))?;
        let mut schedule = Schedule { changes: Vec::new(), notes: notes(faults) };
        let mut links = Faults { topology, links: BTreeMap::new() };
        for (at, action) in link_changes(topology, faults)? {
            let lab_time = |span: pathweave_units::Duration| {
                // A century is practically for ever, and can be represented.
                let seconds = (span.as_secs_f64() / scale.share()).min(3.2e9);
                Duration::from_secs_f64(seconds)
            };
            let Some(change) = links.change(action) else { continue };
            let at = lab_time(at - pathweave_units::Time::ZERO);
            schedule.changes.push((at, change));
            if let Change::Link(..) = change {
                schedule.changes.push((at + lab_time(reroute_after), Change::Reroute));
            }
        }
        check_size(schedule.changes.len())?;
        // The sort is stable: changes at the same time keep the scenario's order.
        schedule.changes.sort_by_key(|(at, _)| *at);
        Ok(schedule)
    }

    /// Returns the changes in order, each with its time from the start.
    pub fn changes(&self) -> &[(Duration, Change)] {
        &self.changes
    }
    /// Returns notes on faults that a lab applies differently or not at all.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// Applies the changes that are due at once, so that they precede all traffic. Returns the rest, to be played.
    pub(crate) fn apply_initial(&self, lab: &mut Lab) -> Result<Schedule, LabError> {
        let (now, later) = self.divided();
        now.iter().try_for_each(|(_, change)| change.make(lab))?;
        Ok(later)
    }

    /// Returns the changes that are due at once, and the rest.
    fn divided(&self) -> (&[(Duration, Change)], Schedule) {
        let (now, later) = self.changes.split_at(self.changes.partition_point(|(at, _)| *at <= AT_ONCE));
        (now, Schedule { changes: later.to_vec(), notes: Vec::new() })
    }

    /// Applies the changes in real time, counted from now, until none is left or `stop` returns true.
    pub fn run(&self, lab: &mut Lab, stop: &dyn Fn() -> bool) -> Result<(), LabError> {
        let start = Instant::now();
        for (at, change) in &self.changes {
            loop {
                if stop() {
                    return Ok(());
                }
                let left = at.saturating_sub(start.elapsed());
                if left.is_zero() {
                    break;
                }
                std::thread::sleep(left.min(NAP));
            }
            change.make(lab)?;
        }
        Ok(())
    }
}

impl Change {
    fn make(self, lab: &mut Lab) -> Result<(), LabError> {
        match self {
            Change::Link(link, state) => lab.set_link(link, state),
            Change::Rate(link, rate) => lab.set_rate(link, rate),
            Change::Loss(link, probability) => lab.set_loss(link, probability),
            Change::Reroute => lab.reroute(),
        }
    }
}

fn check_size(changes: usize) -> Result<(), LabError> {
    if changes > MOST_CHANGES {
        let allowed = format!("a lab makes at most {MOST_CHANGES}; choose a longer period of flapping links");
        return Err(LabError::Value { what: "number of changes", value: changes.to_string(), allowed });
    }
    Ok(())
}

fn notes(faults: &[FaultConfig]) -> Vec<String> {
    let mut notes = Vec::new();
    let mut add = |there: bool, note: &str| {
        if there {
            notes.push(note.to_owned());
        }
    };
    let any = |is: fn(&FaultConfig) -> bool| faults.iter().any(is);
    add(any(|fault| matches!(fault, FaultConfig::LinkDelay { .. })), "faults of delay are left out");
    add(
        any(|fault| matches!(fault, FaultConfig::PauseStorm { .. })),
        "pause storms are left out: there is no PFC",
    );
    add(
        any(|fault| matches!(fault, FaultConfig::LinkCorruption { .. })),
        "corrupted packets are lost on the link",
    );
    notes
}

/// Faults in force at the links of a topology.
struct Faults<'a> {
    topology: &'a Topology,
    links: BTreeMap<LinkId, Faulty>,
}

/// Faults of a link that are in force.
#[derive(Default)]
struct Faulty {
    /// Number of faults that hold the link down.
    down: u32,
    loss: f64,
    corruption: f64,
}

impl Faults<'_> {
    /// Takes in a change of the simulated fabric. Returns the change of the lab, if there is one.
    fn change(&mut self, action: Action) -> Option<Change> {
        match action {
            Action::Down(link, _) => {
                let faulty = self.at(link);
                faulty.down += 1;
                (faulty.down == 1).then_some(Change::Link(link, LinkState::Down))
            }
            Action::Up(link, _) => {
                let faulty = self.at(link);
                faulty.down -= 1;
                (faulty.down == 0).then_some(Change::Link(link, LinkState::Up))
            }
            Action::Rate(link, _, rate) => {
                Some(Change::Rate(link, rate.unwrap_or(self.topology.link(link).rate)))
            }
            Action::Loss(link, _, loss) => {
                self.at(link).loss = loss;
                Some(self.lost(link))
            }
            Action::Corruption(link, _, corruption) => {
                self.at(link).corruption = corruption;
                Some(self.lost(link))
            }
            Action::Delay(..)
            | Action::StormStart(_)
            | Action::StormStop(_)
            | Action::ScaleUp(..)
            | Action::Reroute => None,
        }
    }

    fn at(&mut self, link: LinkId) -> &mut Faulty {
        self.links.entry(link).or_default()
    }

    /// Returns the link with the probability that it loses or corrupts a packet. A fault can only raise the error rate of
    /// the topology.
    fn lost(&mut self, link: LinkId) -> Change {
        let error_rate = self.topology.link(link).error_rate;
        let faulty = self.at(link);
        Change::Loss(link, any_of(&[faulty.loss, faulty.corruption.max(error_rate)]))
    }
}

/// Refuses a fault that is not one of a whole link, or that makes too many changes to list them.
fn check(topology: &Topology, fault: &FaultConfig) -> Result<(), LabError> {
    match fault {
        FaultConfig::LinkDown { link, .. }
        | FaultConfig::LinkRate { link, .. }
        | FaultConfig::LinkLoss { link, .. }
        | FaultConfig::LinkCorruption { link, .. } => Ok(check_whole(topology, link)?),
        FaultConfig::LinkFlap { link, times, .. } => {
            check_whole(topology, link)?;
            check_size(4 * *times as usize)
        }
        FaultConfig::SwitchDown { .. } | FaultConfig::LinkDelay { .. } | FaultConfig::PauseStorm { .. } => {
            Ok(())
        }
    }
}

/// Checks that the name is that of a link.
///
/// # Errors
/// There is no such link, or the name means one direction.
fn check_whole(topology: &Topology, name: &str) -> Result<(), TopoError> {
    match topology.ways_by_name(name)? {
        (_, Ways::Both) => Ok(()),
        (link, _) => Err(TopoError::Field {
            field: "link",
            value: format!("\"{name}\""),
            allowed: format!(
                "a lab has faults of whole links, such as \"{}\", not of one direction",
                topology.link_name(link)
            ),
        }),
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use pathweave_topo::{Build, LeafSpine};
    use pathweave_units::Duration as Span;

    fn topology() -> Topology {
        LeafSpine::new(2, 2, 1).build(Path::new(".")).unwrap()
    }
    fn schedule(faults: &[FaultConfig], scale: &str) -> Result<Schedule, LabError> {
        Schedule::new(&topology(), faults, Span::from_us(50), scale.parse().unwrap())
    }

    #[test]
    fn times_are_in_slow_motion() {
        let topology = topology();
        let link = topology.link_by_name("leaf0-spine1").unwrap();
        let other = topology.link_by_name("leaf1-spine1").unwrap();
        let faults = [
            FaultConfig::LinkDown {
                link: "leaf0-spine1".into(),
                at: Span::from_us(100),
                up_at: Some(Span::from_us(500)),
            },
            FaultConfig::LinkRate {
                link: "leaf1-spine1".into(),
                at: Span::from_us(120),
                rate: Rate::from_gbps(25),
                until: None,
            },
        ];
        let ms = Duration::from_millis;
        assert_eq!(
            schedule(&faults, "1/1000").unwrap().changes(),
            [
                (ms(100), Change::Link(link, LinkState::Down)),
                (ms(120), Change::Rate(other, Rate::from_gbps(25))),
                (ms(150), Change::Reroute),
                (ms(500), Change::Link(link, LinkState::Up)),
                (ms(550), Change::Reroute),
            ]
        );
    }

    #[test]
    fn faults_from_the_start_are_due_at_once() {
        let down = |link: &str, at| FaultConfig::LinkDown { link: link.into(), at, up_at: None };
        let faults = [down("leaf1-spine1", Span::from_ns(1)), down("leaf0-spine1", Span::from_us(100))];
        // 50 us at 1/10 are half a millisecond.
        let schedule = schedule(&faults, "1/10").unwrap();
        let (now, later) = schedule.divided();
        let link = |name| topology().link_by_name(name).unwrap();
        let (down, ns) = (LinkState::Down, Duration::from_nanos);
        let first = (ns(10), Change::Link(link("leaf1-spine1"), down));
        assert_eq!(
            now,
            [
                first,
                (ns(500_010), Change::Reroute),
                (ns(1_000_000), Change::Link(link("leaf0-spine1"), down))
            ]
        );
        assert_eq!(later.changes(), [(ns(1_500_000), Change::Reroute)]);
    }

    #[test]
    fn flaps_and_switches_become_single_changes() {
        let flap = |times| FaultConfig::LinkFlap {
            link: "leaf0-spine0".into(),
            at: Span::from_ms(1),
            down_for: Span::from_ms(2),
            up_for: Span::from_ms(3),
            times,
        };
        let at: Vec<u128> =
            schedule(&[flap(2)], "1").unwrap().changes.iter().map(|(at, _)| at.as_micros()).collect();
        assert_eq!(at, [1_000, 1_050, 3_000, 3_050, 6_000, 6_050, 8_000, 8_050]);
        let error = schedule(&[flap(u32::MAX)], "1").unwrap_err().to_string();
        assert!(error.contains("a lab makes at most 100000"), "{error}");

        let switch = FaultConfig::SwitchDown { switch: "spine1".into(), at: Span::from_ms(1), up_at: None };
        let broken = schedule(&[switch], "1").unwrap();
        let down =
            broken.changes.iter().filter(|(_, change)| matches!(change, Change::Link(_, LinkState::Down)));
        assert_eq!(down.count(), 2);
    }

    /// 100 Gb/s; 25 from 1 to 4 ms and 10 from 2 to 3 ms. Down from 1 to 3 ms and from 2 to 4 ms. A fifth is lost from 1 to
    /// 3 ms, and a tenth corrupted from 2 ms: together .28.
    #[test]
    fn faults_that_overlap_combine_as_in_the_simulator() {
        let (ms, link) = (Span::from_ms, || "leaf0-spine1".to_owned());
        let rate = |at, gbps, until| FaultConfig::LinkRate {
            link: link(),
            at: ms(at),
            rate: Rate::from_gbps(gbps),
            until: Some(ms(until)),
        };
        let down = |at, up_at| FaultConfig::LinkDown { link: link(), at: ms(at), up_at: Some(ms(up_at)) };
        let loss = FaultConfig::LinkLoss { link: link(), at: ms(1), probability: 0.2, until: Some(ms(3)) };
        let corruption =
            FaultConfig::LinkCorruption { link: link(), at: ms(2), probability: 0.1, until: None };
        let of = |faults: &[FaultConfig]| {
            let changes = schedule(faults, "1").unwrap().changes;
            let named = changes.into_iter().filter(|(_, change)| *change != Change::Reroute);
            named.map(|(at, change)| (at.as_millis(), change)).collect::<Vec<_>>()
        };
        let id = topology().link_by_name("leaf0-spine1").unwrap();
        let has = |gbps| Change::Rate(id, Rate::from_gbps(gbps));
        let slow = [(1, has(25)), (2, has(10)), (3, has(25)), (4, has(100))];
        assert_eq!(of(&[rate(1, 25, 4), rate(2, 10, 3)]), slow);
        assert_eq!(of(&[rate(2, 10, 3), rate(1, 25, 4)]), slow, "the order of the tables has no effect");
        let state = |state| Change::Link(id, state);
        assert_eq!(of(&[down(1, 3), down(2, 4)]), [(1, state(LinkState::Down)), (4, state(LinkState::Up))]);
        let lost: Vec<_> = of(&[loss, corruption])
            .into_iter()
            .map(|(at, change)| match change {
                Change::Loss(_, probability) => (at, (1e3 * probability).round()),
                other => panic!("{other:?}"),
            })
            .collect();
        assert_eq!(lost, [(1, 200.0), (2, 280.0), (3, 100.0)]);
    }

    #[test]
    fn impossible_faults_are_reported_and_wrong_names_refused() {
        let storm = FaultConfig::PauseStorm { host: "host0".into(), at: Span::from_ms(1), until: None };
        let none = schedule(&[storm], "1").unwrap();
        assert_eq!(
            (none.changes.len(), none.notes()[0].as_str()),
            (0, "pause storms are left out: there is no PFC")
        );
        let unknown =
            FaultConfig::LinkDown { link: "leaf0-spine7".into(), at: Span::from_ms(1), up_at: None };
        let error = schedule(&[unknown], "1").unwrap_err().to_string();
        assert!(error.contains("no link is named \"leaf0-spine7\"; did you mean"), "{error}");
    }
}
