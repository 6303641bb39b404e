//! Receiver credit: a receiver limits how much its senders send, so that packets that arrive together do not exceed
//! its link.
//!
//! A receiving host paces its grants at a share of its link's rate and serves its senders in turn. With each packet a
//! sender announces its *pull target*, the total that it wants granted, and it sends as far as it has credit. Only
//! the first window leaves without credit. The profiles [`rccc`](CreditConfig::rccc) of Ultra Ethernet,
//! [`eqds`](CreditConfig::eqds) and [`ndp`](CreditConfig::ndp) differ in the unit of credit, in the pace of grants,
//! and in the order of service.
//!
//! This module holds configuration only; the endpoint of `transport` grants and spends credit.

use pathweave_units::{Bytes, Duration, Rate};

use crate::cc::Window;
use crate::error::{above, check, within};
use crate::{ConfigError, HostEnv, PolicyEnv};

/// Receivers grant credit, and senders send as far as they have credit. Default: Ultra Ethernet's receiver-based
/// congestion control (RCCC), as in uet-htsim 40ccb05.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema))]
#[cfg_attr(feature = "serde", serde(deny_unknown_fields, default))]
pub struct CreditConfig {
    /// Unit of credit (quantum): `{ bytes = "256B" }` is a number of bytes on the wire, headers included; "packet" is
    /// a packet of any size. Default `{ bytes = "256B" }` (RCCC).
    pub quantum: Quantum,
    /// Quanta of a grant, 1 to 65535. Default 64 (RCCC), which are 16 KiB.
    pub grant: u16,
    /// Share of the receiver's link at which grants are paced, above 0, at most 2. Default 0.99 (RCCC).
    pub pace: f64,
    /// Bytes of the receiver's link that a grant occupies in pacing: "granted" (RCCC, default) the bytes that it
    /// grants; `{ packet = "38B" }` (EQDS, NDP) also the headers of a packet and the given bytes.
    pub cost: GrantCost,
    /// Rule for grants. "target" (RCCC, default): at most what is missing to the pull target. "full" (EQDS): full
    /// grants while anything is missing, and first of all one packet for each trimmed one. "arrivals" (NDP): one
    /// grant for each packet that arrives, whole or trimmed, up to the pull target.
    pub demand: Demand,
    /// Grants to senders that want nothing, while no other sender wants credit, up to a window beyond their target:
    /// "on" (RCCC, EQDS; default) or "off".
    pub idle: IdleGrants,
    /// Request of a sender that has credit from several receivers: "shared" (RCCC, default) asks each receiver for
    /// its share only, "whole" asks each for all it could use.
    pub ask: Ask,
    /// Data that a new queue pair sends without credit, and also the largest request and the largest stored credit:
    /// `{ bdp = 1.5 }` in bandwidth-delay products (RCCC, default), or `{ packets = 50 }`.
    pub window: Window,
    /// Treatment of the rest of the first window that has not left when the receiver first responds: "lapses" (RCCC,
    /// EQDS; default) or "stays" (NDP).
    pub unused: Unused,
    /// Reduction of grants if the fabric is the bottleneck and not the receiver's link: "off" (default), or
    /// `{ paced = {} }`, which is made for `switch.ecn.last_hop = "leave"`.
    pub fabric: FabricControl,
}

/// Reaction of a receiver to a fabric that cannot carry what it grants.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
pub enum FabricControl {
    /// No reaction.
    #[default]
    Off,
    /// All grants are paced at a share of the link. Marks and trims lower the share, their absence raises it.
    Paced(FabricPace),
}

/// Control of the share of the link at which a receiver grants: uet-htsim's control of oversubscribed trees
/// (`oversubscribed_cc`, 40ccb05), whose values are the defaults.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema))]
#[cfg_attr(feature = "serde", serde(deny_unknown_fields, default))]
pub struct FabricPace {
    /// Interval between changes of the share, in round trips of the idle network, varied at random by up to a
    /// quarter. Default 1.5.
    pub every_rtts: f64,
    /// Smallest share, above 0, at most 1. Default 0.225: 0.9 over the oversubscription of 4:1, as in uet-htsim. A
    /// much smaller value grants too little: at 0.01 a permutation over 4:1 takes twice as long.
    pub least: f64,
    /// Increase of the share if the fraction of marked packets is at most `marked` and no packet was trimmed before
    /// the last hop. Doubles each time in a row while no packet at all is marked. Default 0.01.
    pub increase: f64,
    /// Relative decrease of the share per unit by which the fraction of marked packets exceeds `marked`. Default 0.5.
    pub decrease: f64,
    /// Average fraction of marked packets that is still acceptable. Default 0.3.
    pub marked: f64,
    /// Weight of the newest value in that average. Default 0.5.
    pub gain: f64,
}

impl Default for FabricPace {
    fn default() -> Self {
        FabricPace { every_rtts: 1.5, least: 0.225, increase: 0.01, decrease: 0.5, marked: 0.3, gain: 0.5 }
    }
}

impl FabricPace {
    fn validate(&self) -> Result<(), ConfigError> {
        let FabricPace { every_rtts, least, increase, decrease, marked, gain } = *self;
        check((0.1..=1e3).contains(&every_rtts), "every_rtts", every_rtts, "0.1 to 1000 round trips")?;
        within("least", least, above(0.0, 1.0), "of the link")?;
        within("increase", increase, above(0.0, 1.0), "of the link")?;
        within("decrease", decrease, 0.0..=1.0, "")?;
        within("marked", marked, 0.0..=1.0, "of the packets")?;
        within("gain", gain, above(0.0, 1.0), "")
    }
}

/// Unit of credit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
pub enum Quantum {
    /// Bytes on the wire.
    Bytes(Bytes),
    /// A packet of any size.
    Packet,
}

/// Bytes of the receiver's link that a grant occupies in pacing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
pub enum GrantCost {
    /// The bytes that it grants.
    Granted,
    /// The bytes that it grants, and for the packet that it is meant for its headers, as far as these are not granted, and
    /// these bytes.
    Packet(Bytes),
}

macro_rules! choice {
    ($(#[$doc:meta])* $name:ident { $($(#[$choice_doc:meta])* $choice:ident),* $(,)? }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema))]
        #[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
        pub enum $name { $($(#[$choice_doc])* $choice),* }
    };
}

choice! {
    /// Rule for grants.
    Demand {
        /// The amount missing to the pull target.
        Target,
        /// Full grants while anything is missing; trimmed packets first.
        Full,
        /// One grant for each packet that arrives, up to the pull target.
        Arrivals,
    }
}

choice! {
    /// Grants to senders that want nothing.
    IdleGrants {
        /// Granted while no sender wants anything.
        On,
        /// Never granted.
        Off,
    }
}

choice! {
    /// Request of a sender that has credit from several receivers.
    Ask {
        /// Asks each receiver for its share.
        Shared,
        /// Asks each receiver for all it could use.
        Whole,
    }
}

choice! {
    /// Treatment of the rest of the first window that has not left when the receiver first responds.
    Unused {
        /// The rest may no longer be used.
        Lapses,
        /// The rest may still be used.
        Stays,
    }
}

/// Bytes of the link that an empty grant occupies in pacing (uet-htsim).
const NOTHING_BYTES: u32 = 1_024;
/// Largest window in quanta: credit numbers are exact up to it.
const MOST_QUANTA: u64 = 1 << 28;

impl Default for CreditConfig {
    fn default() -> Self {
        CreditConfig::rccc()
    }
}

impl CreditConfig {
    /// Returns the profile of Ultra Ethernet's receiver-based congestion control (RCCC), as in uet-htsim 40ccb05.
    pub const fn rccc() -> Self {
        CreditConfig {
            quantum: Quantum::Bytes(Bytes::new(256)),
            grant: 64,
            pace: 0.99,
            cost: GrantCost::Granted,
            demand: Demand::Target,
            idle: IdleGrants::On,
            ask: Ask::Shared,
            window: Window::Bdp(1.5),
            unused: Unused::Lapses,
            fabric: FabricControl::Off,
        }
    }

    /// Returns the profile of EQDS (NSDI 2022), as in csg-htsim 841d9e7. A grant of 4,096 bytes is paced as a packet with
    /// this payload and 38 bytes, at 1/0.99 of the link. It is paced so for packets of any size, while csg-htsim paces the
    /// same grant as a packet of the MTU, for which the two must be chosen together. The window there is 50 packets at any rate, a third of the bandwidth-delay
    /// product at 400 Gb/s; here it is that of RCCC.
    pub const fn eqds() -> Self {
        CreditConfig {
            quantum: Quantum::Bytes(Bytes::new(512)),
            grant: 8,
            pace: 1.0 / 0.99,
            cost: GrantCost::Packet(Bytes::new(38)),
            demand: Demand::Full,
            idle: IdleGrants::On,
            ask: Ask::Whole,
            window: Window::Bdp(1.5),
            unused: Unused::Lapses,
            fabric: FabricControl::Off,
        }
    }

    /// Returns the profile of NDP (SIGCOMM 2017), as in csg-htsim 841d9e7. A pull is a packet, paced as one of the
    /// MTU and 64 bytes. The first window there is 15 packets of 9,000 bytes. With smaller packets this would not
    /// fill the bandwidth-delay product, so here it is that of RCCC.
    pub const fn ndp() -> Self {
        CreditConfig {
            quantum: Quantum::Packet,
            grant: 1,
            pace: 0.99,
            cost: GrantCost::Packet(Bytes::new(64)),
            demand: Demand::Arrivals,
            idle: IdleGrants::Off,
            ask: Ask::Whole,
            window: Window::Bdp(1.5),
            unused: Unused::Stays,
            fabric: FabricControl::Off,
        }
    }

    /// Returns an error that names the first invalid field.
    pub fn validate(&self) -> Result<(), ConfigError> {
        if let Quantum::Bytes(bytes) = self.quantum {
            check((64..=65_536).contains(&bytes.get()), "quantum", bytes, "64B to 65536B, or \"packet\"")?;
        }
        check(self.grant > 0, "grant", self.grant, "1 to 65535 quanta")?;
        within("pace", self.pace, above(0.0, 2.0), "of the link")?;
        if let GrantCost::Packet(bytes) = self.cost {
            check(bytes.get() <= 65_536, "cost", bytes, "at most 65536B besides the packet")?;
        }
        if let FabricControl::Paced(pace) = &self.fabric {
            pace.validate().map_err(|error| error.within("fabric.paced"))?;
        }
        match self.window {
            Window::Unlimited => {
                let allowed =
                    "{ bdp = 1.5 } or { packets = 50 }: the bytes sent without a grant have a bound";
                check(false, "window", "\"unlimited\"", allowed)
            }
            Window::Bdp(bdp) => within("window.bdp", bdp, 0.01..=1e3, ""),
            Window::Packets(packets) => {
                check((1..=1 << 20).contains(&packets), "window.packets", packets, "1 to 1048576")
            }
        }
    }

    /// Adapts the window to software hosts.
    pub fn adapt_to_host(&mut self, host: &HostEnv) {
        if let Window::Bdp(bdp) = &mut self.window {
            *bdp = (*bdp * host.max_inflight_bdps).clamp(0.01, 1e3);
        }
    }

    /// Computes the terms of a queue pair whose host's own link has rate `link`.
    pub fn terms(&self, env: &PolicyEnv, link: Rate) -> CreditParams {
        let quantum_bytes = match self.quantum {
            Quantum::Bytes(bytes) => bytes.get() as u32,
            Quantum::Packet => env.mtu_wire_bytes,
        };
        let most = MOST_QUANTA * u64::from(quantum_bytes);
        CreditParams {
            config: *self,
            quantum_bytes,
            // At least one packet, or nothing would ever leave.
            window_bytes: self.window.bytes(env).clamp(u64::from(env.mtu_wire_bytes), most),
            packet_bytes: env.mtu_wire_bytes,
            payload_bytes: env.mtu_payload_bytes,
            base_rtt: env.base_rtt,
            line_rate: env.line_rate,
            byte_ps: 8e12 / (link.as_bps().max(1) as f64 * self.pace),
        }
    }
}

/// Terms of a queue pair, computed from its [`CreditConfig`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CreditParams {
    /// Configuration from which the terms were computed.
    pub config: CreditConfig,
    /// Bytes of a quantum.
    pub quantum_bytes: u32,
    /// Window, bytes.
    pub window_bytes: u64,
    /// Wire bytes of a full packet.
    pub packet_bytes: u32,
    /// Payload of a full packet, bytes.
    pub payload_bytes: u32,
    /// Round-trip time of the idle network.
    pub base_rtt: Duration,
    /// Largest rate at which the queue pair can send.
    pub line_rate: Rate,
    /// Picoseconds that a byte of a grant takes in pacing.
    byte_ps: f64,
}

impl CreditParams {
    /// Returns the time from a grant of `quanta` quanta to the next grant.
    pub fn interval(&self, quanta: u64) -> Duration {
        let granted = match quanta {
            0 => u64::from(NOTHING_BYTES.max(self.quantum_bytes)),
            _ => quanta * u64::from(self.quantum_bytes),
        };
        let bytes = match (self.config.cost, self.config.quantum) {
            (GrantCost::Granted, _) => granted,
            (GrantCost::Packet(more), Quantum::Packet) => granted + more.get(),
            (GrantCost::Packet(more), Quantum::Bytes(_)) => {
                granted + u64::from(self.packet_bytes - self.payload_bytes) + more.get()
            }
        };
        Duration::from_ps(((bytes as f64 * self.byte_ps + 0.5) as u64).max(1))
    }

    /// Returns the number of quanta that hold `bytes` bytes.
    pub const fn quanta(&self, bytes: u64) -> u64 {
        bytes.div_ceil(self.quantum_bytes as u64)
    }

    /// Returns the bytes of credit that a packet of `wire_bytes` bytes costs.
    pub const fn cost_of(&self, wire_bytes: u32) -> i64 {
        match self.config.quantum {
            Quantum::Bytes(_) => wire_bytes as i64,
            Quantum::Packet => self.quantum_bytes as i64,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::MeasuredSection;
    use crate::testing::ENV;
    use std::string::ToString;

    fn env(mtu_wire_bytes: u32) -> PolicyEnv {
        let base_rtt = Duration::from_ps(14_022_700);
        PolicyEnv {
            base_rtt,
            mtu_wire_bytes,
            mtu_payload_bytes: mtu_wire_bytes - 64,
            paths: 64,
            measured: MeasuredSection::with_rtt(base_rtt),
            ..ENV
        }
    }

    fn interval_ns(config: CreditConfig, mtu_wire_bytes: u32, quanta: u64) -> f64 {
        let terms = config.terms(&env(mtu_wire_bytes), Rate::from_gbps(100));
        (terms.interval(quanta).as_ps() / 10) as f64 / 100.0
    }

    /// 16,384 bytes at 99 Gb/s; 4,096, 64 and 38 bytes at 101.01 Gb/s, whatever the packets; 9,064 bytes at 99 Gb/s.
    #[test]
    fn intervals_between_grants_by_hand() {
        let rccc = CreditConfig::rccc();
        assert_eq!(interval_ns(rccc, 4_150, 64), 1_323.96);
        assert_eq!(interval_ns(rccc, 4_150, 1), 20.68);
        assert_eq!(interval_ns(rccc, 4_150, 0), 82.74, "four quanta for nothing");
        for mtu_wire_bytes in [320, 4_160, 9_064] {
            assert_eq!(interval_ns(CreditConfig::eqds(), mtu_wire_bytes, 8), 332.48);
        }
        assert_eq!(interval_ns(CreditConfig::eqds(), 4_160, 16), 656.88);
        assert_eq!(interval_ns(CreditConfig::ndp(), 9_000, 1), 732.44);
    }

    #[test]
    fn windows_and_quanta_by_hand() {
        let gbps = Rate::from_gbps(100);
        let rccc = CreditConfig::rccc().terms(&env(4_150), gbps);
        // 1.5 times 175,283 bytes, which the line sends in 14.0227 us.
        assert_eq!((rccc.window_bytes, rccc.quantum_bytes), (262_925, 256));
        assert_eq!((rccc.quanta(1), rccc.quanta(16_384), rccc.cost_of(4_150)), (1, 64, 4_150));
        let published = CreditConfig { window: Window::Packets(15), ..CreditConfig::ndp() };
        let ndp = published.terms(&env(9_000), gbps);
        assert_eq!((ndp.window_bytes, ndp.cost_of(100)), (15 * 9_000, 9_000));
    }

    #[test]
    fn invalid_values_are_named() {
        let complaint = |config: CreditConfig| config.validate().expect_err("out of range").to_string();
        let rccc = CreditConfig::rccc();
        for config in [rccc, CreditConfig::eqds(), CreditConfig::ndp()] {
            assert_eq!(config.validate(), Ok(()));
        }
        let tiny = CreditConfig { quantum: Quantum::Bytes(Bytes::new(8)), ..rccc };
        assert!(complaint(tiny).starts_with("quantum = 8B is not allowed: 64B to"), "{}", complaint(tiny));
        assert!(complaint(CreditConfig { grant: 0, ..rccc }).starts_with("grant = 0"));
        assert!(complaint(CreditConfig { pace: 0.0, ..rccc }).starts_with("pace = 0"));
        let pace = FabricPace::default();
        for (wrong, named) in [
            (FabricPace { least: 0.0, ..pace }, "fabric.paced.least = 0 is"),
            (FabricPace { every_rtts: f64::NAN, ..pace }, "fabric.paced.every_rtts = NaN is"),
            (FabricPace { gain: 1.5, ..pace }, "fabric.paced.gain = 1.5 is"),
        ] {
            let said = complaint(CreditConfig { fabric: FabricControl::Paced(wrong), ..rccc });
            assert!(said.starts_with(named), "{said}");
        }
        assert!(complaint(CreditConfig { window: Window::Packets(0), ..rccc }).starts_with("window"));
    }
}
