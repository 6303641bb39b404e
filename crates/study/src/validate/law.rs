//! Exact laws: values that a run must have, computed by arithmetic alone.
//!
//! The case's file has the few numbers that a law needs. Nothing here uses the simulator's own code for times.

use std::collections::BTreeMap;
use std::fmt::Display;

use pathweave_records::{FlowRecord, RunResult};
use serde::Deserialize;

use crate::validate::cluster_law::{Confined, LostUnaware};
use crate::validate::figures::Figures;
use crate::validate::md1::{SUM_IS_GOOD, md1_mean, md1_quantile, md1_waits_at_most};
use crate::validate::model::Stat;

/// Largest count of links, packets, senders, ranks or ports. The product of two counts fits 32 bits.
const MOST_COUNT: u32 = 65_535;
/// Bounds on bytes and on rates in Gb/s. Within them, rounding loses no time.
const LEAST_SIZE: f64 = 1e-6;
pub(super) const MOST_SIZE: f64 = 1e9;

/// Link of a law.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Link {
    /// Rate in gigabits per second.
    pub rate_gbps: f64,
    /// One-way delay in nanoseconds.
    pub delay_ns: f64,
}

impl Link {
    fn serialisation_us(self, bytes: f64) -> f64 {
        bytes * 8.0 / self.rate_gbps * 1e-3
    }

    fn delay_us(self) -> f64 {
        self.delay_ns * 1e-3
    }
}

/// Law with its numbers. The bytes of a packet are everything that takes time on a link: payload, headers, gap.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Law {
    /// Messages of one packet each wait in one queue, and those of a sender leave in the order posted. Lindley's
    /// recursion over the post times of the run gives every completion.
    Lindley {
        /// Links of the path, all alike. The first one has the queue.
        link: Link,
        /// Number of links on the path.
        links: u32,
        /// Bytes of a packet on a link.
        packet_bytes: f64,
    },
    /// Messages of one packet each wait in one queue and arrive at random (M/D/1). The formula of Pollaczek and
    /// Khinchine gives the mean, and Erlang's sum the distribution.
    Md1 {
        /// Links of the path, all alike. The first one has the queue.
        link: Link,
        /// Number of links on the path.
        links: u32,
        /// Bytes of a packet on a link.
        packet_bytes: f64,
        /// Utilisation of the link, as a share of the time.
        load: f64,
    },
    /// Message alone on its path. All its packets cross the first link, and the last one crosses each further link.
    Alone {
        /// Links of the path, all alike.
        link: Link,
        /// Number of links on the path.
        links: u32,
        /// Number of packets in the message, all full.
        packets: u32,
        /// Bytes of a packet on a link.
        packet_bytes: f64,
    },
    /// Senders at one switch send to one receiver at once. The receiver's link is busy without interruption from the
    /// first packet on.
    Incast {
        /// Links, all alike.
        link: Link,
        /// Number of senders.
        senders: u32,
        /// Number of packets per sender, all full.
        packets: u32,
        /// Bytes of a packet on a link.
        packet_bytes: f64,
    },
    /// Senders at one switch send to one receiver at once, and HPCC holds the receiver's link at a utilisation: eta, and
    /// the steps of all senders. For `max_stage` 0, where every round trip follows the utilisation.
    Held {
        /// Links, all alike.
        link: Link,
        /// Number of senders.
        senders: u32,
        /// Number of packets per sender, all full.
        packets: u32,
        /// Bytes of a packet on a link, with its telemetry.
        packet_bytes: f64,
        /// eta.
        utilisation: f64,
        /// Step of a sender's rate in gigabits per second.
        increase_gbps: f64,
    },
    /// Ring all-reduce at one switch: 2 (ranks - 1) steps, each of which is a block alone on its path. From the
    /// second step on, a rank first acknowledges the block that has just arrived.
    Ring {
        /// Links, all alike.
        link: Link,
        /// Number of ranks in the ring.
        ranks: u32,
        /// Number of packets in a block, all full.
        packets: u32,
        /// Bytes of a packet on a link.
        packet_bytes: f64,
        /// Bytes of an acknowledgement on a link. There is one per block.
        ack_bytes: f64,
    },
    /// Smallest headroom without loss: the bytes that a sender at full rate sends until a pause frame stops it. The
    /// headrooms of a switch's ports form one reserve of its buffer, which the single sender may fill. The run is
    /// repeated until two reserves that differ by one packet are found, of which one loses packets and the other does
    /// not.
    PfcHeadroom {
        /// Link between sender and switch.
        link: Link,
        /// Bytes of a data packet on the link.
        packet_bytes: f64,
        /// Number of ports of the switch.
        ports: u32,
        /// Bytes of a pause frame on the link.
        pause_bytes: f64,
    },
    /// Messages that stay on the links of some tiers and in scale-up networks.
    Confined(Confined),
    /// Packets that a port sends into a failed link of the receiver.
    LostUnaware(LostUnaware),
}

/// Field that [`Law::PfcHeadroom`] varies.
pub(crate) const HEADROOM: &str = "switch.pfc.headroom";

/// Figure by a law beside the same figure of the run.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct LawComparison {
    pub(crate) what: &'static str,
    pub(crate) stat: Stat,
    pub(crate) unit: &'static str,
    pub(crate) law: f64,
    pub(crate) ours: f64,
}

impl Law {
    /// Returns the name of the law, for people.
    pub fn name(&self) -> &'static str {
        match self {
            Law::Lindley { .. } => "Lindley's recursion",
            Law::Md1 { .. } => "M/D/1",
            Law::Alone { .. } => "store and forward",
            Law::Incast { .. } => "a busy link",
            Law::Held { .. } => "a link held below its rate",
            Law::Ring { .. } => "time of a ring",
            Law::PfcHeadroom { .. } => "PFC headroom",
            Law::Confined(_) => "where bytes go",
            Law::LostUnaware(_) => "loss until routes change",
        }
    }

    /// Checks that the law's numbers are meaningful.
    ///
    /// # Errors
    /// The field, its value, and the allowed values.
    pub(crate) fn check(&self) -> Result<(), String> {
        let count = |field: &str, value: u32, least: u32| {
            let good = (least..=MOST_COUNT).contains(&value);
            refuse_unless(good, field, value, format!("expected a whole number from {least} to {MOST_COUNT}"))
        };
        let size = |field: &str, value: f64| {
            let good = (LEAST_SIZE..=MOST_SIZE).contains(&value);
            refuse_unless(
                good,
                field,
                value,
                format!("expected a number from {LEAST_SIZE:e} to {MOST_SIZE:e}"),
            )
        };
        let link = |link: Link| {
            size("link.rate_gbps", link.rate_gbps)?;
            let (delay, good) = (link.delay_ns, (0.0..=MOST_SIZE).contains(&link.delay_ns));
            refuse_unless(good, "link.delay_ns", delay, format!("expected a number from 0 to {MOST_SIZE:e}"))
        };
        match *self {
            Law::Confined(law) => law.check(),
            Law::LostUnaware(law) => law.check(),
            Law::Lindley { link: of, links, packet_bytes } => {
                link(of).and(count("links", links, 1)).and(size("packet_bytes", packet_bytes))
            }
            Law::Md1 { link: of, links, packet_bytes, load } => {
                link(of).and(count("links", links, 1)).and(size("packet_bytes", packet_bytes))?;
                let good = load > 0.0 && load < 1.0;
                refuse_unless(good, "load", load, "expected a number above 0 and below 1".to_owned())?;
                let good = md1_waits_at_most(load, SUM_IS_GOOD) >= 0.99;
                let allowed = format!(
                    "expected less: P99 is beyond {SUM_IS_GOOD} service times, where the formula loses its digits"
                );
                refuse_unless(good, "load", load, allowed)
            }
            Law::Alone { link: of, links, packets, packet_bytes } => link(of)
                .and(count("links", links, 1))
                .and(count("packets", packets, 1))
                .and(size("packet_bytes", packet_bytes)),
            Law::Incast { link: of, senders, packets, packet_bytes } => link(of)
                .and(count("senders", senders, 1))
                .and(count("packets", packets, 1))
                .and(size("packet_bytes", packet_bytes)),
            Law::Held { link: of, senders, packets, packet_bytes, utilisation, increase_gbps } => {
                link(of)
                    .and(count("senders", senders, 1))
                    .and(count("packets", packets, 1))
                    .and(size("packet_bytes", packet_bytes))
                    .and(size("increase_gbps", increase_gbps))?;
                let held = held(of, senders, utilisation, increase_gbps);
                let good = utilisation > 0.0 && held < 1.0;
                let allowed = "expected a number above 0 that stays below 1 with all steps added".to_owned();
                refuse_unless(good, "utilisation", utilisation, allowed)
            }
            Law::Ring { link: of, ranks, packets, packet_bytes, ack_bytes } => link(of)
                .and(count("ranks", ranks, 2))
                .and(count("packets", packets, 1))
                .and(size("packet_bytes", packet_bytes))
                .and(size("ack_bytes", ack_bytes)),
            Law::PfcHeadroom { link: of, packet_bytes, ports, pause_bytes } => {
                link(of)
                    .and(size("packet_bytes", packet_bytes))
                    .and(count("ports", ports, 1))
                    .and(size("pause_bytes", pause_bytes))?;
                let good = self.headroom().is_some_and(|(packets, _)| packets <= MOST_COUNT);
                let allowed = format!(
                    "expected a delay and a pause frame during which {MOST_COUNT} packets are sent at most"
                );
                refuse_unless(good, "link.delay_ns", of.delay_ns, allowed)
            }
        }
    }

    /// Returns the figures by the law beside those of the runs. Empty if nothing can be compared, for instance
    /// because no flow finished.
    pub(crate) fn compare(&self, runs: &[RunResult], ours: &Figures) -> Vec<LawComparison> {
        let row = |stat: Stat, law: f64| LawComparison {
            what: stat.name(),
            stat,
            unit: "us",
            law,
            ours: ours.stat(stat),
        };
        match *self {
            Law::Lindley { link, links, packet_bytes } => {
                let beyond = rest_of_path_us(link, links, packet_bytes);
                let service = link.serialisation_us(packet_bytes);
                let times = runs.iter().flat_map(|run| lindley(&run.flows, service)).map(|us| us + beyond);
                let Some(law) = Figures::from_values(times.collect()) else { return Vec::new() };
                Stat::ALL.map(|stat| row(stat, law.stat(stat))).into()
            }
            Law::Md1 { link, links, packet_bytes, load } => {
                let service = link.serialisation_us(packet_bytes);
                let rest = service + rest_of_path_us(link, links, packet_bytes);
                let quantile = |share| rest + service * md1_quantile(load, share);
                vec![
                    row(Stat::Mean, rest + service * md1_mean(load)),
                    row(Stat::P50, quantile(0.5)),
                    row(Stat::P99, quantile(0.99)),
                ]
            }
            Law::Alone { link, links, packets, packet_bytes } => {
                vec![row(Stat::Max, alone_us(link, links, packets, packet_bytes))]
            }
            Law::Incast { link, senders, packets, packet_bytes } => {
                vec![row(Stat::Max, alone_us(link, 2, senders * packets, packet_bytes))]
            }
            Law::Held { link, senders, packets, packet_bytes, utilisation, increase_gbps } => {
                let all = f64::from(senders * packets) * link.serialisation_us(packet_bytes);
                let sent = all / held(link, senders, utilisation, increase_gbps);
                vec![row(Stat::Max, sent + rest_of_path_us(link, 2, packet_bytes))]
            }
            Law::Ring { link, ranks, packets, packet_bytes, ack_bytes } => {
                let law = ring_us(link, ranks, packets, packet_bytes, ack_bytes);
                let last = |run: &RunResult| run.flows.iter().filter_map(|flow| flow.finish_ps).max();
                let Some(ours) = runs.iter().filter_map(last).max() else { return Vec::new() };
                let ours = ours as f64 * 1e-6;
                vec![LawComparison { what: "all-reduce", stat: Stat::Max, unit: "us", law, ours }]
            }
            Law::PfcHeadroom { .. } => Vec::new(),
            Law::Confined(law) => law.compare(runs),
            Law::LostUnaware(law) => law.compare(runs),
        }
    }

    /// Returns the packets of the smallest reserve and a port's part of it in bytes, for [`Law::PfcHeadroom`].
    pub(crate) fn headroom(&self) -> Option<(u32, f64)> {
        let Law::PfcHeadroom { link, packet_bytes, ports, pause_bytes } = *self else { return None };
        let open = link.serialisation_us(pause_bytes) + 2.0 * link.delay_us();
        // A packet that is being sent when the pause arrives is sent to its end.
        let packets = ((open / link.serialisation_us(packet_bytes)).floor() as u32).saturating_add(1);
        Some((packets, f64::from(packets) * packet_bytes / f64::from(ports)))
    }
}

pub(super) fn refuse_unless(
    good: bool,
    field: &str,
    value: impl Display,
    allowed: String,
) -> Result<(), String> {
    if good { Ok(()) } else { Err(format!("law.{field} = {value}: {allowed}")) }
}

/// Returns the time from when the last bit leaves the first link's queue to its arrival.
fn rest_of_path_us(link: Link, links: u32, packet_bytes: f64) -> f64 {
    f64::from(links - 1) * link.serialisation_us(packet_bytes) + f64::from(links) * link.delay_us()
}

fn alone_us(link: Link, links: u32, packets: u32, packet_bytes: f64) -> f64 {
    f64::from(packets) * link.serialisation_us(packet_bytes) + rest_of_path_us(link, links, packet_bytes)
}

/// Returns the utilisation U at which HPCC's rates stay: R = R eta / U + step for each of n senders, whose rates are
/// U C / n.
fn held(link: Link, senders: u32, utilisation: f64, increase_gbps: f64) -> f64 {
    utilisation + f64::from(senders) * increase_gbps / link.rate_gbps
}

fn ring_us(link: Link, ranks: u32, packets: u32, packet_bytes: f64, ack_bytes: f64) -> f64 {
    let steps = 2.0 * f64::from(ranks - 1);
    steps * alone_us(link, 2, packets, packet_bytes) + (steps - 1.0) * link.serialisation_us(ack_bytes)
}

/// Returns the time from post to departure of each message, by Lindley's recursion for each sender.
fn lindley(flows: &[FlowRecord], service_us: f64) -> Vec<f64> {
    let mut posted: BTreeMap<u32, Vec<u64>> = BTreeMap::new();
    for flow in flows {
        posted.entry(flow.src_host).or_default().push(flow.start_ps);
    }
    let mut times = Vec::new();
    for mut starts in posted.into_values() {
        starts.sort_unstable();
        let mut free = 0.0_f64;
        for start in starts {
            let start = start as f64 * 1e-6;
            free = free.max(start) + service_us;
            times.push(free - start);
        }
    }
    times
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINK: Link = Link { rate_gbps: 8.0, delay_ns: 1_000.0 };

    #[test]
    fn lindley_by_hand() {
        let flow =
            |src_host, us: u64| FlowRecord { src_host, start_ps: us * 1_000_000, ..FlowRecord::default() };
        // Service takes 2 us. The second message waits 1 us, and the third finds the link free. The other sender has
        // its own link.
        let times = lindley(&[flow(0, 0), flow(0, 1), flow(0, 10), flow(1, 1)], 2.0);
        assert_eq!(times, [2.0, 3.0, 2.0, 2.0]);
    }

    #[test]
    fn two_senders_are_held_at_eta_and_two_steps() {
        // 8 Gb/s: steps of 40 Mb/s are .005 each.
        assert!((held(LINK, 2, 0.95, 0.04) - 0.96).abs() < 1e-12);
    }

    /// Tries each number of each law beyond both ends of its range.
    #[test]
    fn numbers_that_say_nothing_are_refused() {
        let table = |kind: &str, rest: &str| {
            format!("kind = \"{kind}\"\nlink = {{ rate_gbps = 100.0, delay_ns = 1000.0 }}\n{rest}")
        };
        let path = "links = 2\npacket_bytes = 1000.0\n";
        for (text, fields) in [
            (table("lindley", path), &["rate_gbps", "delay_ns", "links", "packet_bytes"][..]),
            (table("md1", &format!("{path}load = 0.5\n")), &["rate_gbps", "links", "packet_bytes", "load"]),
            (table("alone", &format!("{path}packets = 9\n")), &["links", "packets", "packet_bytes"]),
            (table("incast", "senders = 2\npackets = 9\npacket_bytes = 1000.0\n"), &["senders", "packets"]),
            (
                table(
                    "held",
                    "senders = 2\npackets = 9\npacket_bytes = 1000.0\nutilisation = 0.5\nincrease_gbps = 1.0\n",
                ),
                &["senders", "packets", "packet_bytes", "utilisation", "increase_gbps"],
            ),
            (
                table("ring", "ranks = 4\npackets = 9\npacket_bytes = 1000.0\nack_bytes = 84.0\n"),
                &["ranks", "packets", "packet_bytes", "ack_bytes"],
            ),
            (
                table("pfc-headroom", "packet_bytes = 1000.0\nports = 2\npause_bytes = 84.0\n"),
                &["packet_bytes", "ports", "pause_bytes", "delay_ns"],
            ),
        ] {
            let law = |text: &str| toml::from_str::<Law>(text).unwrap_or_else(|why| panic!("{text}{why}"));
            assert_eq!(law(&text).check(), Ok(()), "{text}");
            for field in fields {
                let at = text.find(&format!("{field} = ")).expect(field) + field.len() + 3;
                let end = at + text[at..].find([',', ' ', '\n']).expect("something follows");
                let is_count = !text[at..end].contains('.');
                let beyond = if is_count { &["0", "65536"][..] } else { &["-1.0", "1.1e9", "nan", "inf"] };
                for value in beyond {
                    let why =
                        law(&format!("{}{value}{}", &text[..at], &text[end..])).check().expect_err(value);
                    assert!(why.contains(&format!("{field} = ")) && why.contains("expected"), "{why}");
                }
            }
        }
        let ring = toml::from_str::<Law>(&table(
            "ring",
            "ranks = 1\npackets = 9\npacket_bytes = 1.0\nack_bytes = 1.0\n",
        ));
        assert_eq!(
            ring.unwrap().check(),
            Err("law.ranks = 1: expected a whole number from 2 to 65535".to_owned())
        );
        let md1 = |load| Law::Md1 { link: LINK, links: 1, packet_bytes: 1_000.0, load }.check();
        assert_eq!(md1(1.0), Err("law.load = 1: expected a number above 0 and below 1".to_owned()));
        assert!(md1(0.0).is_err() && md1(0.7).is_ok());
        assert!(md1(0.95).unwrap_err().contains("beyond 15 service times"));
        let slow = Link { rate_gbps: 8.0, delay_ns: 1e9 };
        let headroom = Law::PfcHeadroom { link: slow, packet_bytes: 1e-6, ports: 2, pause_bytes: 84.0 };
        assert!(headroom.check().unwrap_err().contains("65535 packets"));
    }

    #[test]
    fn times_by_hand() {
        // 1,000 bytes take 1 us.
        assert_eq!(alone_us(LINK, 1, 1, 1_000.0), 2.0);
        assert_eq!(alone_us(LINK, 3, 10, 1_000.0), 15.0);
        // Two ranks: two steps of 13 us, an acknowledgement of 0.1 us between them.
        assert!((ring_us(LINK, 2, 10, 1_000.0, 100.0) - 26.1).abs() < 1e-9);
        let law = Law::PfcHeadroom { link: LINK, packet_bytes: 1_000.0, ports: 2, pause_bytes: 84.0 };
        // The pause takes effect 2.084 us after its cause: two whole packets, and one that has begun.
        assert_eq!(law.headroom(), Some((3, 1_500.0)));
    }
}
