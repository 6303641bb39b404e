//! Conversion of the simulator's switch configuration to settings of a lab.

use pathweave_fabric::config::{EcnConfig, SwitchConfig, Thresholds};

use crate::settings::{Marking, QUEUE_BYTES, RateScale, Settings};

impl Settings {
    /// Creates settings with the marking and queues of the simulator's switches. The queue size is the share of a
    /// switch's memory that one lossy egress queue may take when it is the only one: `alpha / (1 + alpha)` (Choudhury
    /// and Hahne, 1998).
    pub fn from_switch_config(switch: &SwitchConfig, rate_scale: RateScale) -> Settings {
        let share = switch.egress_alpha / (1.0 + switch.egress_alpha);
        let queue_bytes = (switch.buffer.get() as f64 * share) as u64;
        Settings {
            queue_bytes: queue_bytes.clamp(*QUEUE_BYTES.start(), *QUEUE_BYTES.end()),
            marking: Marking::of(&switch.ecn),
            ..Settings::new(rate_scale)
        }
    }
}

impl Marking {
    /// Returns the simulator's marking, or `None` if it is off.
    pub fn of(ecn: &EcnConfig) -> Option<Marking> {
        ecn.enabled.then(|| Marking {
            kmin_bytes: ecn.kmin.get(),
            kmax_bytes: ecn.kmax.get(),
            // The value is a validated probability.
            pmax_ppm: (ecn.pmax.clamp(0.0, 1.0) * 1e6).round() as u32,
            reference: match ecn.thresholds {
                Thresholds::ByRate => Some(ecn.reference_rate),
                Thresholds::Fixed => None,
            },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pathweave_units::Rate;

    #[test]
    fn the_simulators_defaults() {
        let settings = Settings::from_switch_config(&SwitchConfig::default(), RateScale::FULL);
        assert_eq!(settings.queue_bytes, Settings::DEFAULT_QUEUE_BYTES);
        let reference = Some(Rate::from_gbps(100));
        let marking = Marking { kmin_bytes: 400_000, kmax_bytes: 1_600_000, pmax_ppm: 200_000, reference };
        assert_eq!(settings.marking, Some(marking));
        let off =
            SwitchConfig { ecn: EcnConfig { enabled: false, ..Default::default() }, ..Default::default() };
        assert_eq!(Settings::from_switch_config(&off, RateScale::FULL).marking, None);
    }
}
