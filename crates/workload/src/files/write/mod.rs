//! Writers of flow lists in the formats of pathweave and of other programs. Information that a format cannot
//! express is listed in `lost`, as text for the user.

mod csv_list;
mod htsim_cm;
mod ns3;

pub use csv_list::write_csv;
pub use htsim_cm::write_htsim_cm;
pub use ns3::write_ns3;

use pathweave_units::Duration;

use super::{FlowFile, FlowRecord};

/// Formats a time exactly: a whole number of units, with as many decimals as needed.
fn decimal(ps: u64, ps_per_unit: u64) -> String {
    let (whole, rest) = (ps / ps_per_unit, ps % ps_per_unit);
    if rest == 0 {
        return whole.to_string();
    }
    let digits = ps_per_unit.ilog10() as usize;
    format!("{whole}.{}", format!("{rest:0digits$}").trim_end_matches('0'))
}

/// Returns the number of flows that lose something, as a phrase.
fn count(flows: &FlowFile, of: impl Fn(&FlowRecord) -> bool) -> Option<String> {
    match flows.flows.iter().filter(|flow| of(flow)).count() {
        0 => None,
        1 => Some("1 flow".to_owned()),
        n => Some(format!("{n} flows")),
    }
}

/// Returns the number of flows that share a connection with another flow.
fn shared_connections(flows: &FlowFile) -> usize {
    let mut used: std::collections::BTreeMap<(u64, u64, u32), usize> = Default::default();
    for flow in &flows.flows {
        if let Some(connection) = flow.connection {
            *used.entry((flow.src, flow.dst, connection)).or_default() += 1;
        }
    }
    used.values().filter(|&&n| n > 1).sum()
}

fn has_delay(flow: &FlowRecord) -> bool {
    !flow.after.is_empty()
        && (flow.delay > Duration::ZERO || flow.after.iter().any(|after| after.delay > Duration::ZERO))
}

/// Returns the start of a flow that waits for no other flow.
fn start_ps(flow: &FlowRecord) -> u64 {
    let delay = if flow.after.is_empty() { flow.delay.as_ps() } else { 0 };
    flow.start.as_ps().saturating_add(delay)
}

#[cfg(test)]
mod tests {
    use pathweave_units::Time;
    use proptest::prelude::*;

    use super::*;
    use crate::files::{FlowDependency, HtsimDialect, Ns3Dialect, parse_csv, parse_htsim_cm, parse_ns3};
    use crate::graph::Moment;

    fn flow(src: u64, dst: u64, size_bytes: u64, start_ps: u64) -> FlowRecord {
        FlowRecord { src, dst, size_bytes, start: Time::from_ps(start_ps), ..FlowRecord::default() }
    }

    fn list(flows: Vec<FlowRecord>) -> FlowFile {
        FlowFile { flows, ..FlowFile::default() }
    }

    /// A chain on one connection: `b` 70 ns after `a`, and `c` 5 ns after both.
    fn chain() -> FlowFile {
        let after =
            |id: &str, ns| FlowDependency { delay: Duration::from_ns(ns), ..FlowDependency::from(id) };
        let named = |id: &str, flow: FlowRecord| FlowRecord { id: Some(id.to_owned()), ..flow };
        list(vec![
            named("a", flow(0, 1, 100, 1_500)),
            FlowRecord { connection: Some(4), after: vec![after("a", 70)], ..named("b", flow(1, 2, 7, 0)) },
            FlowRecord {
                connection: Some(4),
                delay: Duration::from_ns(5),
                after: vec![after("a", 0), after("b", 0)],
                ..flow(1, 2, 9, 0)
            },
        ])
    }

    #[test]
    fn our_own_list_says_everything() {
        let mut lost = Vec::new();
        let text = write_csv(&chain(), &mut lost).unwrap();
        assert!(lost.is_empty());
        let expected = "src,dst,size_bytes,start_ns,id,after,after_delays_ns,delay_ns,connection\n\
                        0,1,100,1.5,a,,,,\n1,2,7,0,b,a,70,,4\n1,2,9,0,,a b,,5,4\n";
        assert_eq!(text, expected);
    }

    #[test]
    fn ns3_lists_name_what_they_cannot_say() {
        let mut lost = Vec::new();
        let text = write_ns3(&chain(), Ns3Dialect::Conweave, &mut lost).unwrap();
        assert_eq!(text, "3\n1 2 3 7 0\n1 2 3 9 0\n0 1 3 100 0.0000000015\n");
        assert_eq!(lost, ["the order of 2 flows behind others", "that 2 flows share connections"]);
        let hpcc = write_ns3(&list(vec![flow(5, 4, 6, 2_000_000_000_000)]), Ns3Dialect::Hpcc, &mut lost);
        assert_eq!(hpcc.unwrap(), "1\n5 4 3 100 6 2\n");
    }

    #[test]
    fn matrices_have_triggers() {
        let mut lost = Vec::new();
        let id = |id: &str, flow: FlowRecord| FlowRecord { id: Some(id.to_owned()), ..flow };
        let after = |ids: &[&str], flow: FlowRecord| FlowRecord {
            after: ids.iter().map(|&id| FlowDependency::from(id)).collect(),
            ..flow
        };
        let flows = list(vec![
            id("7", flow(0, 1, 10, 5)),
            id("b", flow(2, 3, 10, 0)),
            id("1", after(&["b", "7"], flow(1, 0, 20, 0))),
            after(&["7", "b"], flow(1, 2, 30, 0)),
            FlowRecord {
                after: vec![FlowDependency { moment: Moment::Completion, ..FlowDependency::from("1") }],
                ..flow(1, 3, 40, 0)
            },
        ]);
        let text = write_htsim_cm(&flows, HtsimDialect::Csg, &mut lost).unwrap();
        let expected = "# start in picoseconds (csg-htsim)\nNodes 4\nConnections 5\nTriggers 2\n\
                        0->1 id 7 start 5 size 10 recv_done_trigger 1\n\
                        2->3 id 2 start 0 size 10 recv_done_trigger 1\n\
                        1->0 id 1 trigger 1 size 20 send_done_trigger 2\n\
                        1->2 id 3 trigger 1 size 30\n\
                        1->3 id 4 trigger 2 size 40\n\
                        trigger id 1 barrier count 2\ntrigger id 2 oneshot\n";
        assert_eq!(text, expected);
        assert_eq!(std::mem::take(&mut lost), ["the names of 1 flow, which get numbers"]);
        // A flow can fire only one trigger.
        let fork = list(vec![
            id("1", flow(0, 1, 10, 0)),
            id("2", flow(0, 1, 10, 0)),
            after(&["1", "2"], flow(1, 2, 30, 0)),
            after(&["1"], flow(1, 3, 40, 0)),
        ]);
        assert_eq!(
            write_htsim_cm(&fork, HtsimDialect::Csg, &mut lost).unwrap_err(),
            "the flow \"1\" would have to set off 2 triggers, as flows wait for it in several ways; a flow of htsim sets off one"
        );
        let large =
            write_htsim_cm(&list(vec![flow(0, 1, 1 << 31, 0)]), HtsimDialect::Uet, &mut lost).unwrap_err();
        assert!(large.contains("2147483648 bytes; htsim takes less than 2147483648"), "{large}");
        write_htsim_cm(&chain(), HtsimDialect::Uet, &mut lost).unwrap_err();
        assert!(lost.is_empty());
        let late = after(&["1"], flow(1, 2, 30, 7));
        write_htsim_cm(&list(vec![id("1", flow(0, 1, 10, 0)), late]), HtsimDialect::Uet, &mut lost).unwrap();
        assert_eq!(std::mem::take(&mut lost), ["the start of 1 flow, beside a trigger"]);
        // uet-htsim reads whole microseconds.
        let text = write_htsim_cm(
            &list(vec![flow(0, 1, 10, 10_000_000), flow(0, 1, 10, 10_500_000)]),
            HtsimDialect::Uet,
            &mut lost,
        );
        assert!(text.unwrap().contains(
            "# start in microseconds (uet-htsim)\nNodes 2\nConnections 2\n0->1 id 1 start 10 size 10\n"
        ));
        assert_eq!(
            lost,
            ["parts of a microsecond in the start of 1 flow (--to csg-htsim-flows has picoseconds)"]
        );
    }

    prop_compose! {
        fn plain_flow()(src in 0u64..9, way in 1u64..9, size in 1u64..1 << 31, start in 0u64..1 << 50) -> FlowRecord {
            flow(src, (src + way) % 9, size, start)
        }
    }

    proptest! {
        #[test]
        fn written_files_are_read_again(mut flows in prop::collection::vec(plain_flow(), 1..20)) {
            flows.sort_by_key(|flow| flow.start);
            let flows = list(flows);
            let mut lost = Vec::new();
            let strip = |file: FlowFile| {
                let plain = |flow: FlowRecord| FlowRecord { line: 0, id: None, ..flow };
                file.flows.into_iter().map(plain).collect::<Vec<_>>()
            };
            let csv = parse_csv(&write_csv(&flows, &mut lost).unwrap(), "f").unwrap();
            prop_assert_eq!(&strip(csv), &flows.flows);
            for dialect in [Ns3Dialect::Hpcc, Ns3Dialect::Conweave] {
                let read = parse_ns3(&write_ns3(&flows, dialect, &mut lost).unwrap(), "f", Some(dialect)).unwrap();
                prop_assert!(read.unused.is_empty());
                prop_assert_eq!(&strip(read), &flows.flows);
            }
            let cm = write_htsim_cm(&flows, HtsimDialect::Csg, &mut lost).unwrap();
            // The comment states the unit.
            for dialect in [None, Some(HtsimDialect::Csg)] {
                let cm = parse_htsim_cm(&cm, "f", dialect).unwrap();
                prop_assert!(cm.unused.is_empty());
                prop_assert_eq!(&strip(cm), &flows.flows);
            }
            prop_assert!(lost.is_empty());
            let whole = |flow: &FlowRecord| FlowRecord {
                start: Time::from_us(flow.start.as_ps() / 1_000_000),
                ..flow.clone()
            };
            let flows = list(flows.flows.iter().map(whole).collect());
            let cm = write_htsim_cm(&flows, HtsimDialect::Uet, &mut lost).unwrap();
            prop_assert_eq!(&strip(parse_htsim_cm(&cm, "f", None).unwrap()), &flows.flows);
            prop_assert!(lost.is_empty());
        }

        /// Chains of barriers and multishot triggers survive a round trip through a matrix, and through the
        /// flow list of pathweave: flows keep their dependencies and their names.
        #[test]
        fn triggers_are_read_again(levels in prop::collection::vec((1usize..4, any::<bool>(), any::<bool>()), 1..6)) {
            let mut flows: Vec<FlowRecord> = Vec::new();
            let mut below: Vec<FlowDependency> = Vec::new();
            for &(width, multishot, acked) in &levels {
                let mut these = Vec::new();
                let width = if multishot && !below.is_empty() { width.min(below.len()) } else { width };
                for n in 1..=width {
                    let id = (flows.len() * 3 + 2).to_string();
                    let moment = if acked { Moment::Completion } else { Moment::Delivery };
                    these.push(FlowDependency { moment, ..FlowDependency::from(id.as_str()) });
                    let needs = (multishot && n < below.len()).then_some(n as u32);
                    flows.push(FlowRecord { id: Some(id), after: below.clone(), needs, ..flow(0, 1, 5, 0) });
                }
                below = these;
            }
            let mut lost = Vec::new();
            let csv = write_csv(&list(flows.clone()), &mut lost).unwrap();
            let by_csv = parse_csv(&csv, "f").unwrap();
            let read = parse_htsim_cm(&write_htsim_cm(&by_csv, HtsimDialect::Uet, &mut lost).unwrap(), "f", None).unwrap();
            let strip = |flow: &FlowRecord| FlowRecord { line: 0, ..flow.clone() };
            prop_assert_eq!(read.flows.iter().map(strip).collect::<Vec<_>>(), flows);
            prop_assert!(lost.is_empty());
        }
    }
}
