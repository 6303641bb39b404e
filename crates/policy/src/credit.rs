//! Credit: a receiver says how much its senders may send, so that what arrives together does not exceed its link.
//!
//! A host paces grants at a share of the rate of its link, over all who send to it in turn. A sender says with each packet how
//! much it wants granted in all (its *pull target*), and sends what it has credit for. Only the first window leaves without
//! being asked. The profiles [`rccc`](CreditConfig::rccc) of Ultra Ethernet, [`eqds`](CreditConfig::eqds) and
//! [`ndp`](CreditConfig::ndp) differ in what is counted, how grants are paced, and who is served first.
//!
//! What is here is data; the endpoint of `transport` grants and spends.

use pathweave_units::{Bytes, Duration, Rate};

use crate::cc::Window;
use crate::error::check;
use crate::{ConfigError, HostEnv, PolicyEnv};

/// Receivers grant credit, and senders send what they have credit for. Default: Ultra Ethernet's receiver-based congestion
/// control (RCCC), as uet-htsim 40ccb05 has it.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(deny_unknown_fields, default))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CreditConfig {
    /// What a quantum is: `{ bytes = "256B" }` so many bytes on the wire, headers included; "packet" a packet of any size.
    pub quantum: Quantum,
    /// Quanta of a grant, 1 to 65535 (RCCC: 64, which are 16 KiB).
    pub grant: u16,
    /// Share of the link at which grants are paced, above 0, at most 2 (RCCC: 0.99).
    pub pace: f64,
    /// What a grant counts for on the link: "granted" (RCCC) what it grants; `{ packet = "38B" }` a full packet and so many
    /// bytes, whatever it grants.
    pub cost: GrantCost,
    /// For what is granted: "target" (RCCC) at most what is missing to the pull target; "full" (EQDS) full grants while
    /// anything is missing, and ahead of all others a packet for each one that was trimmed; "arrivals" (NDP) a grant for each
    /// packet that arrives, whole or trimmed, as far as the target goes.
    pub demand: Demand,
    /// Whether those who want nothing are granted something while nobody else wants it, up to a window beyond their target:
    /// "on" (RCCC, EQDS) or "off".
    pub idle: IdleGrants,
    /// Whether a sender with credit for several receivers asks each for its share only: "shared" (RCCC) or "whole".
    pub ask: Ask,
    /// What leaves unasked when a queue pair is new, the most that is asked for at a time, and the most credit that is kept:
    /// `{ bdp = 1.5 }` in bandwidth-delay products (RCCC), or `{ packets = 50 }`.
    pub window: Window,
    /// What of the first window has not left when the receiver is first heard of: "lapses" (RCCC, EQDS), or "stays" (NDP).
    pub unused: Unused,
    /// Whether grants slow down where the fabric, not the receiver's link, is short: "off", or `{ paced = {} }`, which
    /// is made for `switch.ecn.last_hop = "leave"`.
    pub fabric: FabricControl,
}

/// What a receiver does about a fabric that cannot carry what it grants.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum FabricControl {
    /// Nothing.
    #[default]
    Off,
    /// All it grants is paced at a share of its link, which marks and trims lower and their absence raises.
    Paced(FabricPace),
}

/// How the share of its link follows from what a receiver sees: uet-htsim's control of oversubscribed trees
/// (`oversubscribed_cc`, 40ccb05), whose numbers are the defaults.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(deny_unknown_fields, default))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FabricPace {
    /// Round trips of the idle network from one change to the next, give or take a quarter at random (1.5).
    pub every_rtts: f64,
    /// The least share, above 0, at most 1: 0.9 over the oversubscription, as uet-htsim takes it (0.225, for 4:1). Far below that
    /// receivers grant too little: at 0.01 a permutation over 4:1 takes twice as long.
    pub least: f64,
    /// Added to the share when there was neither too much marked nor anything trimmed before the last hop (0.01); twice as much
    /// each time in a row while nothing at all is marked.
    pub increase: f64,
    /// Of the share, for each marked packet in one above `marked` (0.5).
    pub decrease: f64,
    /// Share of marked packets that is still good, averaged (0.3).
    pub marked: f64,
    /// Weight of the newest in that average (0.5).
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
        check(least > 0.0 && least <= 1.0, "least", least, "above 0, at most 1 (of the link)")?;
        check(increase > 0.0 && increase <= 1.0, "increase", increase, "above 0, at most 1 (of the link)")?;
        check((0.0..=1.0).contains(&decrease), "decrease", decrease, "0 to 1")?;
        check((0.0..=1.0).contains(&marked), "marked", marked, "0 to 1 (of the packets)")?;
        check(gain > 0.0 && gain <= 1.0, "gain", gain, "above 0, at most 1")
    }
}

/// What credit counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Quantum {
    /// So many bytes on the wire.
    Bytes(Bytes),
    /// A packet of any size.
    Packet,
}

/// What a grant counts for on the link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum GrantCost {
    /// What it grants.
    Granted,
    /// A full packet and so many bytes.
    Packet(Bytes),
}

macro_rules! choice {
    ($(#[$doc:meta])* $name:ident { $($(#[$choice_doc:meta])* $choice:ident),* $(,)? }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
        #[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
        #[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
        pub enum $name { $($(#[$choice_doc])* $choice),* }
    };
}

choice! {
    /// For what is granted.
    Demand {
        /// What is missing to the pull target.
        Target,
        /// Full grants while anything is missing; what was trimmed first.
        Full,
        /// One grant for each packet that arrives, as far as the target goes.
        Arrivals,
    }
}

choice! {
    /// Whether those who want nothing are granted something.
    IdleGrants {
        /// While nobody wants anything.
        On,
        /// Never.
        Off,
    }
}

choice! {
    /// How much a sender with credit for several receivers asks for.
    Ask {
        /// Of each its share.
        Shared,
        /// Of each all it could use.
        Whole,
    }
}

choice! {
    /// What of the first window has not left when the receiver is first heard of.
    Unused {
        /// It may not be used any more.
        Lapses,
        /// It may.
        Stays,
    }
}

/// Bytes for which a grant of nothing counts on the link (uet-htsim).
const NOTHING_BYTES: u32 = 1_024;
/// Most quanta of a window: numbers of credit are exact over so many.
const MOST_QUANTA: u64 = 1 << 28;

impl Default for CreditConfig {
    fn default() -> Self {
        CreditConfig::rccc()
    }
}

impl CreditConfig {
    /// Ultra Ethernet's receiver-based congestion control (RCCC), as uet-htsim 40ccb05 has it.
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

    /// EQDS (NSDI 2022), as csg-htsim 841d9e7 has it: a grant is paced as a packet of the MTU and 38 bytes, at 1/0.99 of the
    /// link. Its window is 50 packets there at any rate, which are a third of the pipe at 400 Gb/s; here it is what is usual.
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

    /// NDP (SIGCOMM 2017), as csg-htsim 841d9e7 has it: a pull is a packet, paced as one of the MTU and 64 bytes. Its first window
    /// is 15 packets of 9,000 bytes there; with smaller packets so few would not fill the pipe, so here it is what is usual.
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

    /// Names the first field that is wrong.
    pub fn validate(&self) -> Result<(), ConfigError> {
        if let Quantum::Bytes(bytes) = self.quantum {
            check((64..=65_536).contains(&bytes.get()), "quantum", bytes, "64B to 65536B, or \"packet\"")?;
        }
        check(self.grant > 0, "grant", self.grant, "1 to 65535 quanta")?;
        let pace = self.pace > 0.0 && self.pace <= 2.0;
        check(pace, "pace", self.pace, "above 0, at most 2 (of the link)")?;
        if let GrantCost::Packet(bytes) = self.cost {
            check(bytes.get() <= 65_536, "cost", bytes, "at most 65536B besides the packet")?;
        }
        if let FabricControl::Paced(pace) = &self.fabric {
            pace.validate().map_err(|error| error.within("fabric.paced"))?;
        }
        match self.window {
            Window::Unlimited => {
                let allowed = "{ bdp = 1.5 } or { packets = 50 }: what leaves unasked has a bound";
                check(false, "window", "\"unlimited\"", allowed)
            }
            Window::Bdp(bdp) => check((0.01..=1e3).contains(&bdp), "window.bdp", bdp, "0.01 to 1000"),
            Window::Packets(packets) => {
                check((1..=1 << 20).contains(&packets), "window.packets", packets, "1 to 1048576")
            }
        }
    }

    /// Makes it as hosts of software need it.
    pub fn adapt_to_host(&mut self, host: &HostEnv) {
        if let Window::Bdp(bdp) = &mut self.window {
            *bdp = (*bdp * host.held_bdps).clamp(0.01, 1e3);
        }
    }

    /// What it means for a queue pair, whose end's own link has this rate.
    pub fn terms(&self, env: &PolicyEnv, link: Rate) -> CreditTerms {
        let quantum_bytes = match self.quantum {
            Quantum::Bytes(bytes) => bytes.get() as u32,
            Quantum::Packet => env.mtu_wire_bytes,
        };
        let most = MOST_QUANTA * u64::from(quantum_bytes);
        CreditTerms {
            config: *self,
            quantum_bytes,
            // One packet at least, or nothing would ever leave.
            window_bytes: self.window.bytes(env).clamp(u64::from(env.mtu_wire_bytes), most),
            packet_bytes: env.mtu_wire_bytes,
            payload_bytes: env.mtu_payload_bytes,
            base_rtt: env.base_rtt,
            line_rate: env.line_rate,
            byte_ps: 8e12 / (link.as_bps().max(1) as f64 * self.pace),
        }
    }
}

/// What a [`CreditConfig`] means for a queue pair.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CreditTerms {
    /// What it was made from.
    pub config: CreditConfig,
    /// Bytes of a quantum.
    pub quantum_bytes: u32,
    /// The window, in bytes.
    pub window_bytes: u64,
    /// Wire bytes of a full packet.
    pub packet_bytes: u32,
    /// Its payload.
    pub payload_bytes: u32,
    /// Round-trip time of the idle network.
    pub base_rtt: Duration,
    /// Most that the queue pair can send.
    pub line_rate: Rate,
    /// Picoseconds that a byte of a grant counts for.
    byte_ps: f64,
}

impl CreditTerms {
    /// From a grant of so many quanta to the next.
    pub fn interval(&self, quanta: u64) -> Duration {
        let bytes = match self.config.cost {
            GrantCost::Packet(more) => u64::from(self.packet_bytes) + more.get(),
            GrantCost::Granted if quanta == 0 => u64::from(NOTHING_BYTES.max(self.quantum_bytes)),
            GrantCost::Granted => quanta * u64::from(self.quantum_bytes),
        };
        Duration::from_ps(((bytes as f64 * self.byte_ps + 0.5) as u64).max(1))
    }

    /// Quanta that hold so many bytes.
    pub const fn quanta(&self, bytes: u64) -> u64 {
        bytes.div_ceil(self.quantum_bytes as u64)
    }

    /// Bytes of credit that a packet of so many bytes costs.
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
    use crate::Leg;
    use std::string::ToString;

    fn env(mtu_wire_bytes: u32) -> PolicyEnv {
        let base_rtt = Duration::from_ps(14_022_700);
        PolicyEnv {
            line_rate: Rate::from_gbps(100),
            base_rtt,
            mtu_wire_bytes,
            mtu_payload_bytes: mtu_wire_bytes - 64,
            paths: 64,
            measured: Leg::with_rtt(base_rtt),
            edge: None,
        }
    }

    fn interval_ns(config: CreditConfig, mtu_wire_bytes: u32, quanta: u64) -> f64 {
        let terms = config.terms(&env(mtu_wire_bytes), Rate::from_gbps(100));
        (terms.interval(quanta).as_ps() / 10) as f64 / 100.0
    }

    /// 16,384 bytes at 99 Gb/s; 4,188 bytes at 101.01 Gb/s; 9,064 bytes at 99 Gb/s.
    #[test]
    fn intervals_between_grants_by_hand() {
        let rccc = CreditConfig::rccc();
        assert_eq!(interval_ns(rccc, 4_150, 64), 1_323.96);
        assert_eq!(interval_ns(rccc, 4_150, 1), 20.68);
        assert_eq!(interval_ns(rccc, 4_150, 0), 82.74, "four quanta for nothing");
        assert_eq!(interval_ns(CreditConfig::eqds(), 4_150, 8), 331.69);
        assert_eq!(interval_ns(CreditConfig::ndp(), 9_000, 1), 732.44);
    }

    #[test]
    fn windows_and_quanta_by_hand() {
        let gbps = Rate::from_gbps(100);
        let rccc = CreditConfig::rccc().terms(&env(4_150), gbps);
        // 1.5 of 175,283 bytes, which the line sends in 14.0227 us.
        assert_eq!((rccc.window_bytes, rccc.quantum_bytes), (262_925, 256));
        assert_eq!((rccc.quanta(1), rccc.quanta(16_384), rccc.cost_of(4_150)), (1, 64, 4_150));
        let published = CreditConfig { window: Window::Packets(15), ..CreditConfig::ndp() };
        let ndp = published.terms(&env(9_000), gbps);
        assert_eq!((ndp.window_bytes, ndp.cost_of(100)), (15 * 9_000, 9_000));
    }

    #[test]
    fn what_is_wrong_is_named() {
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
