//! Classes of switches, as `pathweave check` shows them.

use pathweave_fabric::config::{EcmpHash, PfcThreshold, SwitchConfig, SwitchRole, Thresholds};
use pathweave_sim::{switch_classes, switch_role};
use pathweave_topo::Topology;
use pathweave_units::Duration;
use serde::Serialize;

/// Switches with equal settings.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SwitchClassSize {
    /// Number of switches of the class.
    pub switches: u32,
    /// Name of the first of them.
    pub first: String,
    /// Size of the packet memory of each in bytes.
    pub buffer_bytes: u64,
    /// Latency behind each in nanoseconds.
    pub latency_ns: f64,
    /// Settings of these switches that others may not share, in words.
    pub settings: Vec<String>,
}

/// Returns the classes in the order of their first switches, or none if no table gives switches settings.
pub(crate) fn switch_class_sizes(topology: &Topology, config: &SwitchConfig) -> Vec<SwitchClassSize> {
    if config.tables.is_empty() {
        return Vec::new();
    }
    let Ok(classes) = switch_classes(topology, config) else { return Vec::new() };
    let of_hosts = topology.switches_of_hosts();
    let mut sizes: Vec<((u16, bool), SwitchClassSize)> = Vec::new();
    for (number, switch) in (0u32..).zip(topology.switches()) {
        let is_of_host = of_hosts.contains(&topology.switch_node(number as usize));
        let class = (classes.class_of(number), is_of_host);
        if let Some((_, size)) = sizes.iter_mut().find(|(known, _)| *known == class) {
            size.switches += 1;
            continue;
        }
        let mut own = classes.of(number).clone();
        // NICs mark none.
        own.ecn.enabled &= !is_of_host;
        let buffer = match switch_role(topology, number as usize) {
            SwitchRole::Local => own.buffer,
            SwitchRole::External => own.external.buffer,
        };
        let size = SwitchClassSize {
            switches: 1,
            first: switch.name.clone(),
            buffer_bytes: buffer.get(),
            latency_ns: own.latency.as_ps() as f64 / 1e3,
            settings: [vec![format!("buffer {buffer}")], settings(&own)].concat(),
        };
        sizes.push((class, size));
    }
    sizes.into_iter().map(|(_, size)| size).collect()
}

fn settings(own: &SwitchConfig) -> Vec<String> {
    let mut settings = Vec::new();
    if own.trim.enabled {
        settings.push(format!("trims beyond {} at {}", own.trim.queue, own.trim.reference_rate));
    } else if own.pfc.enabled {
        settings.push(match own.pfc.threshold {
            PfcThreshold::Dynamic => format!("pauses above {} of the free buffer", own.pfc.alpha),
            PfcThreshold::Static => "pauses above an equal part for each port".to_owned(),
        });
    } else {
        settings.push(format!("drops above {} of the free buffer", own.egress_alpha));
    }
    settings.push(match (own.ecn.enabled, own.ecn.thresholds) {
        (false, _) => "marks nothing".to_owned(),
        (true, Thresholds::Fixed) => format!("marks from {} to {}", own.ecn.kmin, own.ecn.kmax),
        (true, Thresholds::ByRate) => {
            format!("marks from {} to {} at {}", own.ecn.kmin, own.ecn.kmax, own.ecn.reference_rate)
        }
    });
    if own.hash == EcmpHash::Polarised {
        settings.push("hash polarised".to_owned());
    }
    if own.latency > Duration::ZERO {
        settings.push(format!("latency {}", own.latency));
    }
    settings
}
