//! Scaling of DCQCN for software hosts, whose packets and round trips take longer.
//!
//! The clocks and steps of the presets are made for line rates of 25 Gb/s and more and round trips of some
//! microseconds. The algorithm does not count packets. Its clocks are right if enough data is sent, and enough of a
//! round trip passes, between two ticks. At 100 Mb/s a packet takes 120 us: between two notifications alpha decays to
//! nothing and the rate is back at its old value. All clocks therefore run slower, by the factor of the packet time
//! or of the round-trip time, whichever is larger. Steps are the same fractions of the line rate. If the packet time
//! decides, the rate is the same function of the bytes sent as at 25 Gb/s.

use pathweave_units::{Duration, Rate};

use super::DcqcnConfig;
use crate::cc::host_scaling::HostScaling;
use crate::fluid::{ControlModel, HasControlModel, OverUnequalPaths, RateRecovery};
use crate::{Adapt, HostEnv, MarkUse};

/// Lowest line rate for which the presets are given (HPCC, `simulation/run.py`; those of DCQCN and ASTRA-sim are for
/// 40 Gb/s and more).
const LINE: Rate = Rate::from_gbps(25);
/// Longest idle round-trip time of the network in which HPCC's values were simulated (SIGCOMM 2019, section 5.1).
const ROUND_TRIP: Duration = Duration::from_us(12);

impl HasControlModel for DcqcnConfig {
    fn control(&self) -> ControlModel {
        let p = self.params();
        let forgets = Duration::from_ps((p.alpha_timer.as_ps() as f64 / p.gain) as u64);
        let recovery =
            RateRecovery { interval: p.rate_timer, estimate_decay: forgets, ..RateRecovery::BY_TIMER };
        ControlModel {
            recovery: Some(recovery),
            over_unequal_paths: OverUnequalPaths::KeepsRate,
            ..ControlModel::BY_NOTIFICATIONS
        }
    }
}

/// The clocks are made for line rates of 25 Gb/s and more: on a slower line they must not tick between two packets.
impl Adapt for DcqcnConfig {
    fn marks(&self) -> MarkUse {
        MarkUse::Alone
    }
    fn adapt_to_host(&mut self, host: &HostEnv) {
        *self = self.scaled_to(host.line_rate, host.network_rtt);
    }
}

impl DcqcnConfig {
    /// Returns the configuration scaled to hosts with this line rate and this round-trip time, which includes the
    /// delay of their software. Hosts at least as fast as those of the preset keep its values.
    pub fn scaled_to(&self, line: Rate, round_trip: Duration) -> DcqcnConfig {
        let p = self.params();
        let scaling = HostScaling::new((line, round_trip), (LINE, ROUND_TRIP));
        DcqcnConfig {
            alpha_timer: scaling.duration(p.alpha_timer),
            decrease_interval: scaling.duration(p.decrease_interval),
            rate_timer: scaling.duration(p.rate_timer),
            increase_scale: scaling.increase_scale(p.increase_scale),
            min_rate: scaling.min_rate(p.min_rate),
            ..self.clone()
        }
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use pathweave_units::Time;

    use super::super::tests::notify;
    use super::super::{Dcqcn, DcqcnPreset, presets};
    use super::*;
    use crate::cc::{CongestionControl, Permit};
    use crate::testing::{Host, REQUEST, SENT};
    use crate::{MeasuredSection, PolicyEnv, SendRequest, Sent};

    const PACKET: u32 = 1_500;

    fn env(line_rate: Rate) -> PolicyEnv {
        let base_rtt = Duration::from_us(12);
        PolicyEnv {
            line_rate,
            base_rtt,
            mtu_wire_bytes: PACKET,
            mtu_payload_bytes: 1_400,
            paths: 1,
            measured: MeasuredSection::with_rtt(base_rtt),
            edge: None,
        }
    }

    #[test]
    fn clocks_by_hand() {
        let clocks = |config: &DcqcnConfig| {
            let p = config.params();
            [p.alpha_timer, p.decrease_interval, p.rate_timer]
        };
        let hpcc = DcqcnConfig::default();
        let of = |mbps, us| hpcc.scaled_to(Rate::from_mbps(mbps), Duration::from_us(us));
        // Hosts as fast as those of the preset keep its values.
        assert_eq!(clocks(&of(100_000, 12)), clocks(&hpcc));
        // A packet takes 250 times as long as at 25 Gb/s.
        assert_eq!(clocks(&of(100, 50)), [250, 1_000, 75_000].map(Duration::from_us));
        // A fast line, and hosts that take 1.2 ms: a hundred times the round-trip time.
        assert_eq!(clocks(&of(100_000, 1_200)), [100, 400, 30_000].map(Duration::from_us));
        // 5 and 50 Mb/s for each 25 Gb/s; a minimum of a hundredth of the line rate.
        let params = of(100, 50).params();
        let steps = params.increases(&env(Rate::from_mbps(100)));
        assert_eq!(steps, (Rate::from_bps(20_000), Rate::from_bps(200_000)));
        assert_eq!(params.min_rate, Rate::from_mbps(1));
    }

    /// An absolute step of 50 Mb/s would be half of a line rate of 100 Mb/s.
    #[test]
    fn absolute_steps_are_shares_of_a_slow_line() {
        let astra = DcqcnConfig::preset(DcqcnPreset::Astra);
        let steps = |gbps_tenths: u64| {
            let line = Rate::from_mbps(gbps_tenths * 100);
            astra.scaled_to(line, Duration::ZERO).params().increases(&env(line))
        };
        assert_eq!(steps(1), (Rate::from_bps(200_000), Rate::from_bps(400_000)));
        assert_eq!(steps(4_000), (Rate::from_mbps(50), Rate::from_mbps(100)));
    }

    #[test]
    fn every_preset_stays_valid() {
        for info in presets() {
            for mbps in [1, 100, 10_000, 400_000] {
                let config = DcqcnConfig::preset(info.preset);
                let scaled = config.scaled_to(Rate::from_mbps(mbps), Duration::from_us(1_050));
                assert_eq!(scaled.validate(), Ok(()), "{} at {mbps} Mb/s", info.name);
                assert!(scaled.params().min_rate < Rate::from_mbps(mbps), "it can slow down");
            }
        }
    }

    /// Returns rates as fractions of the line rate, one per packet, behind a link of a tenth of the line rate. The
    /// link marks packets that wait behind more than 20 others, and has room for 130.
    fn shares(config: &DcqcnConfig, line: Rate) -> Vec<f64> {
        let mut cc = Dcqcn::new(config, &env(line));
        let (sends, takes) = (line.time_for(PACKET.into()), line.scale(0.1).time_for(PACKET.into()));
        let want = SendRequest { payload_bytes: 1_400, wire_bytes: PACKET, ..REQUEST };
        let sent = Sent { payload_bytes: 1_400, wire_bytes: PACKET, inflight_packets: 0, ..SENT };
        let mut host = Host::new(1);
        let (mut now, mut busy_until, mut notify_at) = (Time::ZERO, Time::ZERO, Vec::new());
        let mut shares = Vec::new();
        for _ in 0..4_000 {
            if let Permit::At(when) = cc.permit(now, &want, &mut host.cx()) {
                now = when;
            }
            while notify_at.first().is_some_and(|at| *at <= now) {
                notify(&mut cc, notify_at.remove(0));
            }
            cc.on_sent(now, &sent, &mut host.cx());
            let waits = busy_until.saturating_since(now);
            // Packets that find no room are dropped.
            if waits < takes * 130 {
                busy_until = now.max(busy_until) + takes;
                if waits > takes * 20 {
                    notify_at.push(busy_until);
                }
            }
            shares.push(cc.rate(now).map_or(0.0, |rate| rate.as_bps() as f64 / line.as_bps() as f64));
            now += sends;
        }
        shares
    }

    /// Regression test of a finding on real hosts: at 100 Mb/s the published clocks return to line rate between two
    /// notifications. The scaled clocks behave as at 25 Gb/s.
    #[test]
    fn a_slow_line_is_controlled_as_a_fast_one() {
        let (fast, slow) = (Rate::from_gbps(25), Rate::from_mbps(100));
        let hpcc = DcqcnConfig { min_rate: Some(Rate::from_mbps(250)), ..DcqcnConfig::default() };
        let mean = |shares: &[f64]| shares[1_000..].iter().sum::<f64>() / (shares.len() - 1_000) as f64;
        let (there, here) = (shares(&hpcc, fast), shares(&hpcc.scaled_to(slow, Duration::from_us(12)), slow));
        assert!(mean(&there) < 0.15, "{}", mean(&there));
        let apart = there.iter().zip(&here).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
        assert!(apart < 1e-3, "{apart}");
        let unscaled = DcqcnConfig { min_rate: Some(Rate::from_mbps(1)), ..DcqcnConfig::default() };
        let fault = shares(&unscaled, slow);
        assert!(mean(&fault) > 0.5, "{}", mean(&fault));
    }
}
