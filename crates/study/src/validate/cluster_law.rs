//! Laws about the bytes and losses of servers with several NICs.

use pathweave_records::{LinkTotals, RunResult, ScaleUpBytes};
use serde::Deserialize;

use crate::validate::law::{LawComparison, MOST_SIZE, refuse_unless};
use crate::validate::model::Stat;

/// Messages that stay on the links of some tiers and in scale-up networks.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Confined {
    /// Highest tier whose links carry bytes: 0 for the links of hosts.
    pub tier: u8,
    /// Bytes that all scale-up networks carry together. 0 if the law says nothing about them.
    pub scale_up_bytes: f64,
}

/// Packets that a port sends into a failed link of the receiver at its full rate, until routes avoid the link.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LostUnaware {
    /// Rate of the port in gigabits per second.
    pub rate_gbps: f64,
    /// Time until routes avoid the link, in microseconds.
    pub after_us: f64,
    /// Bytes of a packet on a link.
    pub packet_bytes: f64,
}

fn largest(what: &'static str, unit: &'static str, law: f64, ours: f64) -> LawComparison {
    LawComparison { what, stat: Stat::Max, unit, law, ours }
}

impl Confined {
    pub(super) fn check(self) -> Result<(), String> {
        let bytes = self.scale_up_bytes;
        let allowed = format!("expected a number from 0 to {MOST_SIZE:e}");
        refuse_unless((0.0..=MOST_SIZE).contains(&bytes), "scale_up_bytes", bytes, allowed)
    }

    pub(super) fn compare(self, runs: &[RunResult]) -> Vec<LawComparison> {
        let sent = |counts: &dyn Fn(&LinkTotals) -> bool| -> u64 {
            runs.iter().flat_map(|run| &run.links).filter(|link| counts(link)).map(|link| link.tx_bytes).sum()
        };
        let all = sent(&|_| true);
        if all == 0 {
            return Vec::new();
        }
        let below = sent(&|link| link.tier <= self.tier);
        let mut rows = vec![largest("share of bytes", "", 1.0, below as f64 / all as f64)];
        if self.scale_up_bytes > 0.0 {
            let carried: u64 = runs.iter().map(in_scale_up_networks).sum();
            rows.push(largest("scale-up bytes", "B", self.scale_up_bytes, carried as f64));
        }
        rows
    }
}

fn in_scale_up_networks(run: &RunResult) -> u64 {
    let Some(mut bytes) = ScaleUpBytes::new(run.info.servers.as_ref()) else { return 0 };
    run.flows.iter().for_each(|flow| bytes.add(flow));
    bytes.sent_by_hosts(&run.info).iter().sum()
}

impl LostUnaware {
    pub(super) fn check(self) -> Result<(), String> {
        let LostUnaware { rate_gbps, after_us, packet_bytes } = self;
        for (field, value) in
            [("rate_gbps", rate_gbps), ("after_us", after_us), ("packet_bytes", packet_bytes)]
        {
            let allowed = format!("expected a number above 0, at most {MOST_SIZE:e}");
            refuse_unless(value > 0.0 && value <= MOST_SIZE, field, value, allowed)?;
        }
        Ok(())
    }

    fn packets(self) -> f64 {
        self.after_us * self.rate_gbps * 125.0 / self.packet_bytes
    }

    pub(super) fn compare(self, runs: &[RunResult]) -> Vec<LawComparison> {
        let lost: u64 =
            runs.iter().flat_map(|run| &run.flows).map(|flow| u64::from(flow.dropped_packets)).sum();
        vec![largest("lost packets", "", self.packets(), lost as f64)]
    }
}

#[cfg(test)]
mod tests {
    use pathweave_records::{FlowRecord, ServersInfo};

    use super::*;

    const LOST: LostUnaware = LostUnaware { rate_gbps: 100.0, after_us: 1_000.0, packet_bytes: 4_178.0 };

    /// 100 Gb/s are 12,500 B a microsecond: in a millisecond 12.5 MB, which are 2,991.9 packets.
    #[test]
    fn lost_packets_by_hand() {
        assert!((LOST.packets() - 12_500_000.0 / 4_178.0).abs() < 1e-9);
        let flow = |dropped_packets| FlowRecord { dropped_packets, ..FlowRecord::default() };
        let run = RunResult { flows: vec![flow(3), flow(4)], ..RunResult::default() };
        assert_eq!(LOST.compare(&[run])[0].ours, 7.0);
    }

    /// Three quarters of the bytes are on links of hosts. Of the two flows, that within server 0 counts, and that to
    /// server 1 does not.
    #[test]
    fn shares_by_hand() {
        let link = |tier, tx_bytes| LinkTotals { tier, tx_bytes, ..LinkTotals::default() };
        let flow = |src_host, dst_host, size_bytes| FlowRecord {
            src_host,
            dst_host,
            size_bytes,
            finish_ps: Some(1),
            ..FlowRecord::default()
        };
        let servers = ServersInfo {
            servers: 2,
            gpus: 2,
            nics: 2,
            nic_ports: 1,
            planes: 1,
            parts: 0,
            domain: Some(2),
            scale_up_bps: 1,
        };
        let mut run = RunResult {
            links: vec![link(0, 300), link(1, 100)],
            flows: vec![flow(0, 1, 50), flow(0, 2, 70)],
            ..RunResult::default()
        };
        run.info.servers = Some(servers);
        let rows = Confined { tier: 0, scale_up_bytes: 100.0 }.compare(std::slice::from_ref(&run));
        let ratios: Vec<f64> = rows.iter().map(|row| row.ours / row.law).collect();
        assert_eq!(ratios, [0.75, 0.5]);
        run.links.clear();
        assert!(Confined { tier: 0, scale_up_bytes: 0.0 }.compare(&[run]).is_empty(), "nothing was sent");
    }

    #[test]
    fn numbers_that_say_nothing_are_refused() {
        assert!(LOST.check().is_ok() && Confined { tier: 0, scale_up_bytes: 0.0 }.check().is_ok());
        let why = LostUnaware { after_us: 0.0, ..LOST }.check().unwrap_err();
        assert_eq!(why, "law.after_us = 0: expected a number above 0, at most 1e9");
        assert!(
            Confined { tier: 0, scale_up_bytes: -1.0 }.check().unwrap_err().contains("scale_up_bytes = -1")
        );
    }
}
