//! Import of `network.yml`, the network of ASTRA-sim's analytical backend.
//!
//! The file has four lists with an entry for each dimension of NPUs, the innermost first: `topology` (`Ring`,
//! `FullyConnected` or `Switch`), `npus_count`, `bandwidth` of a link in each direction (GB/s, of 2^30 bytes, as
//! ASTRA-sim computes) and `latency` of a link (ns). NPU n is host n. In ASTRA-sim, NPUs forward messages for others.
//! Hosts here do not forward, so each has its own switch, and the link between them is as fast as all other links of
//! the NPU together. If the only dimension is a switch, hosts are attached directly to it.

use std::path::{Path, PathBuf};

use pathweave_units::{Duration, Rate};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_saphyr::Spanned;

use super::Build;
use crate::error::{Location, TopoError};
use crate::graph::{Link, MAX_LINKS, MAX_NODES, NodeId, Switch, Topology};
use crate::import::ParsedTopology;
use crate::read::read_text;

/// The `network.yml` of ASTRA-sim's analytical backend: rings, full meshes and switches in several dimensions.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AstraNetwork {
    /// The file, relative to the scenario file.
    pub path: PathBuf,
}

impl Build for AstraNetwork {
    fn build(&self, base_dir: &Path) -> Result<Topology, TopoError> {
        let (file, text) = read_text(base_dir, &self.path)?;
        parse_astra_network(&file, &text)
    }

    fn file(&mut self) -> Option<&mut PathBuf> {
        Some(&mut self.path)
    }
}

/// Content of the file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct NetworkFile {
    topology: Spanned<Vec<Spanned<String>>>,
    npus_count: Spanned<Vec<Spanned<u32>>>,
    bandwidth: Spanned<Vec<Spanned<f64>>>,
    latency: Spanned<Vec<Spanned<f64>>>,
}

/// Links between NPUs that differ only in one dimension.
#[derive(Clone, Copy, PartialEq)]
enum Shape {
    Ring,
    FullyConnected,
    Switch,
}

const SHAPES: [(&str, Shape); 3] =
    [("Ring", Shape::Ring), ("FullyConnected", Shape::FullyConnected), ("Switch", Shape::Switch)];

#[derive(Clone, Copy)]
struct Dimension {
    shape: Shape,
    npus: u32,
    rate: Rate,
    delay: Duration,
}

impl Dimension {
    /// Number of links of an NPU in this dimension.
    fn links_of_npu(&self) -> u64 {
        match self.shape {
            Shape::Ring => u64::from(self.npus.min(3)) - 1,
            Shape::FullyConnected => u64::from(self.npus) - 1,
            Shape::Switch => 1,
        }
    }
}

/// Bytes in a GB of the file.
const GIB: f64 = (1u64 << 30) as f64;

/// Parses the text of a `network.yml`. `file` is its name in errors.
pub fn parse_astra_network(file: &str, text: &str) -> Result<Topology, TopoError> {
    let dimensions = dimensions(file, text)?;
    let refuse = |what| TopoError::File { at: Location { file: file.to_owned(), line: 0, column: 0 }, what };
    let most = u64::from(MAX_NODES) / 2;
    let npus = dimensions.iter().fold(1u64, |all, dimension| all.saturating_mul(dimension.npus.into()));
    let links: u64 =
        dimensions.iter().map(|d| npus.saturating_mul(d.links_of_npu())).fold(npus, u64::saturating_add);
    if npus > most || links > MAX_LINKS as u64 {
        return Err(refuse(format!(
            "{npus} NPUs with {links} links; at most {most} NPUs and {MAX_LINKS} links are allowed"
        )));
    }
    let mut network = Network { hosts: npus as u32, switches: Vec::new(), links: Vec::new() };
    if let [Dimension { shape: Shape::Switch, rate, delay, .. }] = dimensions[..] {
        let switch = network.switch("switch".to_owned());
        (0..network.hosts).for_each(|host| network.link(NodeId(host), switch, rate, delay));
    } else {
        // Sum of all links, so that an NPU can send on all of them at once.
        let bps = dimensions
            .iter()
            .map(|d| d.rate.as_bps().saturating_mul(d.links_of_npu()))
            .fold(0, u64::saturating_add);
        for host in 0..network.hosts {
            let own = network.switch(format!("npu{host}"));
            network.link(NodeId(host), own, Rate::from_bps(bps), Duration::ZERO);
        }
        let mut stride = 1;
        for (number, dimension) in dimensions.iter().enumerate() {
            network.dimension(number, stride, *dimension);
            stride *= dimension.npus;
        }
    }
    let Network { hosts, switches, links } = network;
    let tiers = vec![None; switches.len()];
    ParsedTopology {
        file,
        name: format!("network of {hosts} NPUs"),
        hosts,
        host_names: None,
        switches,
        tiers,
        links,
    }
    .finish()
}

struct Network {
    hosts: u32,
    switches: Vec<Switch>,
    links: Vec<Link>,
}

impl Network {
    fn switch(&mut self, name: String) -> NodeId {
        self.switches.push(Switch { name, tier: 0, group: None });
        NodeId(self.hosts + self.switches.len() as u32 - 1)
    }

    fn link(&mut self, a: NodeId, b: NodeId, rate: Rate, delay: Duration) {
        self.links.push(Link { a, b, rate, delay, error_rate: 0.0 });
    }

    /// Adds the links of a dimension in which adjacent NPUs have numbers `stride` apart. The switch of NPU n is node
    /// `hosts` + n.
    fn dimension(&mut self, number: usize, stride: u32, dimension: Dimension) {
        let Dimension { shape, npus, rate, delay } = dimension;
        let firsts = (0..self.hosts).filter(|npu| (npu / stride).is_multiple_of(npus));
        for (group, first) in firsts.enumerate() {
            let hosts = self.hosts;
            let npu = |at: u32| NodeId(hosts + first + at * stride);
            match shape {
                Shape::Switch => {
                    let switch = self.switch(format!("dim{number}.{group}"));
                    (0..npus).for_each(|at| self.link(npu(at), switch, rate, delay));
                }
                Shape::Ring => {
                    // Two NPUs have a single link.
                    let links = if npus == 2 { 1 } else { npus };
                    (0..links).for_each(|at| self.link(npu(at), npu((at + 1) % npus), rate, delay));
                }
                Shape::FullyConnected => {
                    let pairs = (0..npus).flat_map(|a| (a + 1..npus).map(move |b| (a, b)));
                    pairs.for_each(|(a, b)| self.link(npu(a), npu(b), rate, delay));
                }
            }
        }
    }
}

fn dimensions(file: &str, text: &str) -> Result<Vec<Dimension>, TopoError> {
    let refuse = |line: u64, column: u64, what: String| {
        let at = Location { file: file.to_owned(), line: line as u32, column: column as u32 };
        Err(TopoError::File { at, what })
    };
    let read: NetworkFile = match serde_saphyr::from_str(text) {
        Ok(read) => read,
        Err(why) => {
            let place = why.location().map_or((0, 0), |at| (at.line(), at.column()));
            let why = why.without_snippet().to_string();
            let what = "expected the lists topology, npus_count, bandwidth and latency, an entry a dimension";
            return refuse(place.0, place.1, format!("{}: {what}", short(&why)));
        }
    };
    let NetworkFile { topology, npus_count, bandwidth, latency } = read;
    let dims = topology.value.len();
    for (name, line, has) in [
        ("npus_count", npus_count.referenced.line(), npus_count.value.len()),
        ("bandwidth", bandwidth.referenced.line(), bandwidth.value.len()),
        ("latency", latency.referenced.line(), latency.value.len()),
    ] {
        if has != dims {
            return refuse(
                line,
                0,
                format!("{name} has {has} entries, topology {dims}; expected one a dimension"),
            );
        }
    }
    if dims == 0 {
        return refuse(
            topology.referenced.line(),
            0,
            "topology has no entry; expected one a dimension".to_owned(),
        );
    }
    let mut dimensions = Vec::with_capacity(dims);
    for (((shape, npus), rate), delay) in
        topology.value.iter().zip(&npus_count.value).zip(&bandwidth.value).zip(&latency.value)
    {
        let Some(&(_, shape)) = SHAPES.iter().find(|(name, _)| *name == shape.value) else {
            let (at, shown) = (&shape.referenced, short(&shape.value));
            return refuse(
                at.line(),
                at.column(),
                format!("topology = {shown}: expected Ring, FullyConnected or Switch"),
            );
        };
        if npus.value < 2 {
            let at = &npus.referenced;
            return refuse(
                at.line(),
                at.column(),
                format!("npus_count = {}: expected 2 or more", npus.value),
            );
        }
        let bps = rate.value * GIB * 8.0;
        if !(1.0..1e15).contains(&bps) {
            let at = &rate.referenced;
            return refuse(
                at.line(),
                at.column(),
                format!("bandwidth = {}: expected GB/s above 0", rate.value),
            );
        }
        let ps = delay.value * 1e3;
        if !(0.0..1e15).contains(&ps) {
            let at = &delay.referenced;
            return refuse(
                at.line(),
                at.column(),
                format!("latency = {}: expected ns, 0 or more", delay.value),
            );
        }
        let (rate, delay) = (Rate::from_bps(bps as u64), Duration::from_ps(ps as u64));
        dimensions.push(Dimension { shape, npus: npus.value, rate, delay });
    }
    Ok(dimensions)
}

fn short(text: &str) -> String {
    text.lines().next().unwrap_or_default().chars().take(200).collect()
}
