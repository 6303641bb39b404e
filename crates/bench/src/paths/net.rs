//! Lab of two hosts with several paths between them.

use pathweave_lab::{Lab, LabName, LinkState, Plan, RateScale, Settings};
use pathweave_topo::{NodeId, parse_topology_file};
use pathweave_units::Rate;

use super::stream::{MTU_BYTES, Stream, payload_rate};

const HOST_GBPS: u64 = 1_000;
const SCALE: f64 = 1e-3;
/// Queue in front of each path, in bytes: 12 ms of the fastest, 120 ms of the slowest.
const QUEUE_BYTES: u64 = 150_000;

/// Two hosts with several paths between them. The lab is removed on drop.
pub(crate) struct Net {
    pub(crate) lab: Lab,
    pub(crate) hosts: [NodeId; 2],
    rates: Vec<Rate>,
}

impl Net {
    pub(crate) fn make(gbps: &[u64]) -> Result<Net, String> {
        let text = |why: &dyn std::fmt::Display| why.to_string();
        let topology = parse_topology_file("paths", &file(gbps)).map_err(|why| text(&why))?;
        let scale = RateScale::new(SCALE).map_err(|why| text(&why))?;
        let settings = Settings { mtu_bytes: MTU_BYTES, queue_bytes: QUEUE_BYTES, ..Settings::new(scale) };
        let name: LabName = format!("bench{}", std::process::id()).parse().map_err(|why| text(&why))?;
        let plan = Plan::new(name, topology, settings).map_err(|why| text(&why))?;
        let lab = Lab::create(plan, &|| false).map_err(|why| text(&why))?;
        let host = |name| lab.node(name).map_err(|why| text(&why));
        let hosts = [host("host0")?, host("host1")?];
        Ok(Net { hosts, lab, rates: gbps.iter().map(|gbps| scale.apply(Rate::from_gbps(*gbps))).collect() })
    }

    /// Returns the rate of the hosts' own links.
    pub(crate) fn line_rate() -> Rate {
        Rate::from_bps((Rate::from_gbps(HOST_GBPS).as_bps() as f64 * SCALE) as u64)
    }

    /// Returns the MTU of all links.
    pub(crate) fn mtu_bytes() -> u32 {
        MTU_BYTES
    }

    pub(super) fn stream(&self, scheme: &str, ports: u16) -> Result<Stream, String> {
        Stream::open(&self.lab, self.hosts, scheme, ports, Net::line_rate())
    }

    /// Returns the payload rate of the first `paths` paths together.
    pub(crate) fn payload_rate(&self, paths: usize) -> f64 {
        self.payload_rate_of(0..paths)
    }

    /// Returns the payload rate of the given paths together.
    pub(crate) fn payload_rate_of(&self, paths: impl IntoIterator<Item = usize>) -> f64 {
        paths.into_iter().map(|path| payload_rate(self.rates[path])).sum()
    }

    /// Cuts or repairs a path. Routes stay as they are.
    pub(crate) fn set(&mut self, spine: usize, state: LinkState) -> Result<(), String> {
        let text = |why: &dyn std::fmt::Display| why.to_string();
        let link = self.lab.link(&format!("leaf0-spine{spine}")).map_err(|why| text(&why))?;
        self.lab.set_link(link, state).map_err(|why| text(&why))
    }
}

impl Drop for Net {
    fn drop(&mut self) {
        // `pathweave lab list` shows what could not be removed.
        let _ = Lab::remove(self.lab.plan().lab());
    }
}

pub(super) fn file(gbps: &[u64]) -> String {
    let mut text = format!("hosts = 2\nrate = \"{HOST_GBPS}Gbps\"\ndelay = \"1us\"\n");
    let link =
        |a: &str, b: &str, gbps: u64| format!("[[link]]\na = \"{a}\"\nb = \"{b}\"\nrate = \"{gbps}Gbps\"\n");
    let spines = (0..gbps.len()).map(|spine| format!("spine{spine}"));
    let names = ["leaf0".to_owned(), "leaf1".to_owned()].into_iter().chain(spines);
    names.for_each(|name| text += &format!("[[switch]]\nname = \"{name}\"\n"));
    text += &(link("host0", "leaf0", HOST_GBPS) + &link("host1", "leaf1", HOST_GBPS));
    for (spine, gbps) in gbps.iter().copied().enumerate() {
        for leaf in ["leaf0", "leaf1"] {
            text += &link(leaf, &format!("spine{spine}"), gbps);
        }
    }
    text
}
