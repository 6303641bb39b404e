//! Channels that NCCL's search finds, by arithmetic.
//!
//! NCCL searches rings over a graph of GPUs, switches and NICs, from the fastest speed of a list downwards. On servers
//! whose GPUs are all alike the search ends where bandwidth ends: each GPU sends each ring once, and each NIC carries
//! whole rings.

use serde::Serialize;

use super::error::NcclError;
use super::gpu::Generation;
use super::mesh;
use super::system::System;
use super::tables::{inter_speeds_gbs, intra_speeds_gbs};

/// Largest number of channels that the search tries.
const MOST_SEARCHED: u32 = 32;
/// Largest number of channels of a communicator.
const MOST_USED: u32 = 64;

/// Part of the speed of the channels found below which the search ends.
const LEAST_PART: f64 = 0.49;

/// Channels of an algorithm.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Graph {
    /// Number of channels.
    pub channels: u32,
    /// Speed of a channel inside a server, in GB/s.
    pub intra_gbs: f64,
    /// Speed of a channel between servers, in GB/s.
    pub inter_gbs: f64,
}

/// Channels of a system.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Channels {
    /// Rings. Trees between the servers are taken to have the same channels.
    pub ring: Graph,
    /// Channels of the scale-up switches, if they reduce.
    pub nvls: Option<Graph>,
    /// Channels that the communicator opens for rings and trees.
    pub used: u32,
}

impl Channels {
    /// Computes the channels of a system.
    ///
    /// # Errors
    /// If a number of the system is out of range.
    pub fn of(system: &System) -> Result<Self, NcclError> {
        system.check()?;
        if system.gpu.generation() == Generation::Cdna3 {
            let ring = mesh(system);
            return Ok(Channels { ring, nvls: None, used: ring.channels });
        }
        let ring = doubled(ring(system), system.gpu.generation());
        Ok(Channels { ring, nvls: nvls(system), used: (2 * ring.channels).min(MOST_USED) })
    }
}

/// Returns the number of channels of a speed that fit into a bandwidth.
fn fit(total_gbs: f64, speed_gbs: f64) -> u32 {
    // A sum such as 12 x 20 must hold its part of 12 although a quotient is rounded.
    (total_gbs / speed_gbs + 1e-9).floor().min(f64::from(MOST_SEARCHED)) as u32
}

fn ring(system: &System) -> Graph {
    let generation = system.gpu.generation();
    let alone = system.servers == 1;
    let speeds = if alone { intra_speeds_gbs(generation) } else { inter_speeds_gbs(generation) };
    let channels = |speed_gbs: f64| {
        let scale_up = if system.gpus > 1 { fit(system.scale_up_gbs, speed_gbs) } else { MOST_SEARCHED };
        // A GPU alone in its server drives one NIC.
        let nics = if system.gpus == 1 { 1 } else { system.nics };
        let scale_out = if alone { MOST_SEARCHED } else { nics * fit(system.nic_gbs(), speed_gbs) };
        scale_up.min(scale_out)
    };
    let mut best = Graph { channels: 0, intra_gbs: 0.0, inter_gbs: 0.0 };
    for &speed_gbs in speeds {
        if speed_gbs < LEAST_PART * best.intra_gbs {
            break;
        }
        let found = channels(speed_gbs);
        if f64::from(found) * speed_gbs > f64::from(best.channels) * best.intra_gbs + 1e-9 {
            best = Graph { channels: found, intra_gbs: speed_gbs, inter_gbs: speed_gbs };
        }
    }
    best
}

/// Divides fast channels in two, which hides latencies.
fn doubled(graph: Graph, generation: Generation) -> Graph {
    let few = graph.intra_gbs >= 50.0 || graph.channels <= 4;
    let doubles = graph.intra_gbs >= 25.0 && (generation <= Generation::Ampere || few);
    if !doubles {
        return graph;
    }
    Graph {
        channels: (2 * graph.channels).min(MOST_SEARCHED),
        intra_gbs: graph.intra_gbs / 2.0,
        inter_gbs: graph.inter_gbs / 2.0,
    }
}

/// Returns a channel for each GPU. A GPU sends its part to the switch once more than a ring does, as the head of a
/// channel, so that it has gpus + 1 streams.
fn nvls(system: &System) -> Option<Graph> {
    let generation = system.gpu.generation();
    if !matches!(generation, Generation::Hopper | Generation::Blackwell) || system.gpus < 2 {
        return None;
    }
    let alone = system.servers == 1;
    let speeds = if alone { intra_speeds_gbs(generation) } else { inter_speeds_gbs(generation) };
    let at_most = |limit_gbs: f64| speeds.iter().copied().find(|&speed| speed <= limit_gbs + 1e-9);
    let heads = f64::from(system.gpus);
    let intra_gbs = at_most(system.scale_up_gbs / (heads + 1.0))?;
    let nic_gbs = if alone { f64::INFINITY } else { f64::from(system.nics) * system.nic_gbs() / heads };
    let inter_gbs = at_most(nic_gbs.min(2.0 * intra_gbs))?;
    Some(Graph { channels: system.gpus, intra_gbs, inter_gbs })
}

/// Returns the rings of a full mesh, of which no two share a link. With NICs they are paths through each server.
fn mesh(system: &System) -> Graph {
    let (gpus, link_gbs) = (system.gpus as usize, system.link_gbs());
    if system.servers == 1 {
        return Graph { channels: mesh::rings(gpus).len() as u32, intra_gbs: link_gbs, inter_gbs: link_gbs };
    }
    let channels = system.nics.min(mesh::paths(gpus).len() as u32);
    let speed_gbs = if system.gpus > 1 { link_gbs.min(system.nic_gbs()) } else { system.nic_gbs() };
    Graph { channels, intra_gbs: speed_gbs, inter_gbs: speed_gbs }
}

#[cfg(test)]
mod tests {
    use pathweave_units::Rate;

    use super::super::gpu::Gpu;
    use super::*;

    fn of(gpu: Gpu, servers: u32) -> Channels {
        Channels::of(&System::new(gpu, servers, 8)).unwrap()
    }

    fn graph(channels: u32, intra_gbs: f64, inter_gbs: f64) -> Graph {
        Graph { channels, intra_gbs, inter_gbs }
    }

    /// A100: 12 links of 20 GB/s hold six rings of 40, which become twelve of 20. NICs of 25 GB/s hold a ring of 24.
    #[test]
    fn channels_of_dgx_a100() {
        assert_eq!(of(Gpu::A100, 1), Channels { ring: graph(12, 20.0, 20.0), nvls: None, used: 24 });
        assert_eq!(of(Gpu::A100, 2), Channels { ring: graph(8, 24.0, 24.0), nvls: None, used: 16 });
    }

    /// H100: 370.8 GB/s hold six rings of 60, but only seven of 48 with NICs, so eight of 45. A ninth of 370.8 is 41.2.
    #[test]
    fn channels_of_dgx_h100() {
        let one = Channels { ring: graph(12, 30.0, 30.0), nvls: Some(graph(8, 40.0, 60.0)), used: 24 };
        assert_eq!(of(Gpu::H100, 1), one);
        let more = Channels { ring: graph(8, 45.0, 45.0), nvls: Some(graph(8, 40.0, 48.0)), used: 16 };
        assert_eq!(of(Gpu::H100, 16), more);
    }

    /// B200: 721.8 GB/s hold eight rings of 90, which become sixteen of 45. NICs of 50 GB/s hold a ring of 48.
    #[test]
    fn channels_of_dgx_b200() {
        let one = Channels { ring: graph(16, 45.0, 45.0), nvls: Some(graph(8, 80.0, 90.0)), used: 32 };
        assert_eq!(of(Gpu::B200, 1), one);
        let more = Channels { ring: graph(8, 48.0, 48.0), nvls: Some(graph(8, 80.0, 48.0)), used: 16 };
        assert_eq!(of(Gpu::B200, 4), more);
    }

    /// Four NICs of 25 GB/s hold four rings of 24 GB/s; sixteen of 25 more than NVLink does: fifteen of 24.
    #[test]
    fn nics_need_not_be_as_many_as_gpus() {
        let four = System { nics: 4, ..System::new(Gpu::A100, 2, 8) };
        assert_eq!(Channels::of(&four).unwrap().ring, graph(4, 24.0, 24.0));
        let sixteen = System { nics: 16, nic_rate: Rate::from_gbps(200), ..System::new(Gpu::H200, 4, 8) };
        assert_eq!(Channels::of(&sixteen).unwrap().ring, graph(15, 24.0, 24.0));
        // A GPU alone in its server has the ring of its NIC in two halves.
        assert_eq!(Channels::of(&System::new(Gpu::H100, 2, 1)).unwrap().ring, graph(2, 24.0, 24.0));
    }

    /// Two MI300X have one link; eight have seven rings; with NICs, an eighth ring. Four have two rings without a common
    /// link, and six have four.
    #[test]
    fn rings_of_a_full_mesh() {
        let ring = |servers, gpus| Channels::of(&System::new(Gpu::Mi300x, servers, gpus)).unwrap().ring;
        assert_eq!(ring(1, 2), graph(1, 48.0, 48.0));
        assert_eq!(ring(1, 4), graph(2, 48.0, 48.0));
        assert_eq!(ring(1, 6), graph(4, 48.0, 48.0));
        assert_eq!(ring(1, 8), graph(7, 48.0, 48.0));
        assert_eq!(ring(2, 8), graph(8, 48.0, 48.0));
    }

    /// No speed of the list fits into a part of 73 of a GPU's links, so racks of 72 have no such channels.
    #[test]
    fn racks_have_no_channels_of_reducing_switches() {
        assert_eq!(Channels::of(&System::new(Gpu::Gb200, 1, 72)).unwrap().nvls, None);
    }
}
