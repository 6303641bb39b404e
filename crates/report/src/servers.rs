//! Servers of a run, whose GPUs are its hosts: the links between their NICs and the network, and their scale-up
//! networks.
//!
//! A *lane* is one port of one NIC number, over all servers. In a network of rails and planes it is one rail of one
//! plane.

use pathweave_records::{RunResult, ScaleUpBytes, ServersInfo};

/// Mark of a link that does not connect a NIC with the network.
const NONE: u32 = u32::MAX;

/// Servers and their links to the network.
pub(crate) struct Servers<'a> {
    pub(crate) info: &'a ServersInfo,
    /// For each directed link: server * lanes + lane, or [`NONE`].
    of_link: Vec<u32>,
    /// True if no leaf has two NICs of a server.
    has_rails: bool,
}

impl<'a> Servers<'a> {
    /// Returns the servers of a run, if it has any.
    pub(crate) fn of(run: &'a RunResult) -> Option<Self> {
        let info = run.info.servers.as_ref()?;
        let mut servers = Servers { info, of_link: Vec::with_capacity(run.links.len()), has_rails: false };
        let mut used = vec![[0u32; 2]; servers.inside() as usize];
        for link in &run.links {
            let (up, down) = (servers.server_of(link.from_node), servers.server_of(link.to_node));
            let (node, direction) = match (up, down) {
                (Some(_), None) => (link.from_node, 0),
                (None, Some(_)) => (link.to_node, 1),
                _ => {
                    servers.of_link.push(NONE);
                    continue;
                }
            };
            let port = &mut used[node as usize][direction];
            let place = servers.place(node, *port);
            *port += 1;
            servers.of_link.push(place);
        }
        servers.has_rails = servers.finds_rails(run);
        Some(servers)
    }

    /// Returns the number of nodes that belong to servers. They precede all others.
    fn inside(&self) -> u32 {
        self.gpus() + self.info.parts
    }

    fn gpus(&self) -> u32 {
        self.info.servers * self.info.gpus
    }

    /// Returns the number of lanes.
    pub(crate) fn lanes(&self) -> u32 {
        (self.info.nics * self.info.nic_ports).max(1)
    }

    /// Returns the number of lanes of a plane.
    pub(crate) fn lanes_of_plane(&self) -> u32 {
        self.lanes() / self.info.planes.max(1)
    }

    /// Returns the server of a GPU, or of a part of a server.
    pub(crate) fn server_of(&self, node: u32) -> Option<u32> {
        let (gpus, parts) = (self.gpus(), self.info.parts);
        match node {
            _ if node < gpus => Some(node / self.info.gpus.max(1)),
            _ if node < gpus + parts => Some((node - gpus) / (parts / self.info.servers.max(1)).max(1)),
            _ => None,
        }
    }

    /// Returns the place of the port-th link to the network at a node of a server: server * lanes + lane.
    fn place(&self, node: u32, port: u32) -> u32 {
        let ServersInfo { servers, gpus, nics, nic_ports, planes, parts, .. } = *self.info;
        let (number, of_server) = match self.gpus() {
            all if node < all => (node, gpus),
            all => (node - all, parts / servers.max(1)),
        };
        let of_server = of_server.max(1);
        // NICs of the node, and the first of them.
        let own = (nics / of_server).max(1);
        let first = number % of_server * own;
        let lane = match planes > 1 {
            true => port / own * nics + first + port % own,
            false => first * nic_ports + port,
        };
        if lane < self.lanes() { number / of_server * self.lanes() + lane } else { NONE }
    }

    /// Returns the server and the lane of a link between a NIC and the network.
    pub(crate) fn lane_of(&self, link: usize) -> Option<(u32, u32)> {
        let place = *self.of_link.get(link).filter(|place| **place != NONE)?;
        Some((place / self.lanes(), place % self.lanes()))
    }

    /// Returns the number of the NIC of a lane.
    pub(crate) fn nic(&self, lane: u32) -> u32 {
        if self.info.planes > 1 { lane % self.info.nics.max(1) } else { lane / self.info.nic_ports.max(1) }
    }

    /// Returns the plane of a lane.
    pub(crate) fn plane(&self, lane: u32) -> u32 {
        if self.info.planes > 1 { lane / self.info.nics.max(1) } else { 0 }
    }

    /// Returns true if no leaf has two NICs of a server.
    pub(crate) fn has_rails(&self) -> bool {
        self.has_rails
    }

    fn finds_rails(&self, run: &RunResult) -> bool {
        let mut nic_of = std::collections::BTreeMap::new();
        let mut ends = (0..run.links.len()).filter_map(|link| {
            let (server, lane) = self.lane_of(link)?;
            let (from, to) = (run.links[link].from_node, run.links[link].to_node);
            let leaf = if self.server_of(from).is_some() { to } else { from };
            (server == 0).then(|| (leaf, self.nic(lane)))
        });
        self.info.nics > 1 && ends.all(|(leaf, nic)| *nic_of.entry(leaf).or_insert(nic) == nic)
    }

    /// Returns the name of a lane: "plane 0, rail 3".
    pub(crate) fn lane_name(&self, lane: u32) -> String {
        let ServersInfo { nics, nic_ports, planes, .. } = *self.info;
        let mut parts = Vec::new();
        if planes > 1 {
            parts.push(format!("plane {}", self.plane(lane)));
        }
        if nics > 1 || planes <= 1 {
            let word = if self.has_rails { "rail" } else { "NIC" };
            parts.push(format!("{word} {}", self.nic(lane)));
        }
        if planes <= 1 && nic_ports > 1 {
            parts.push(format!("port {}", lane % nic_ports));
        }
        parts.join(", ")
    }

    /// Returns the name of consecutive servers.
    pub(crate) fn name(first: u32, last: u32) -> String {
        if first == last { format!("srv{first}") } else { format!("srv{first} to srv{last}") }
    }

    /// Returns the use of the scale-up links of each GPU: the bytes it sent over them, divided by what they could have
    /// carried. `None` if there are no such links.
    pub(crate) fn scale_up_use(&self, run: &RunResult) -> Option<Vec<f64>> {
        let could = self.info.scale_up_bps as f64 / 8.0 * run.info.simulated_ps as f64 / 1e12;
        let of = |sums: &ScaleUpBytes| {
            sums.sent_by_hosts(&run.info).into_iter().map(|sent| sent as f64 / could).collect()
        };
        if could <= 0.0 {
            return None;
        }
        if let Some(streamed) = &run.streamed {
            return streamed.scale_up().map(of);
        }
        let mut sums = ScaleUpBytes::new(Some(self.info))?;
        run.flows.iter().for_each(|flow| sums.add(flow));
        Some(of(&sums))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pathweave_records::{FlowRecord, LinkTotals};

    fn info(servers: u32, gpus: u32, nics: u32, nic_ports: u32, planes: u32) -> ServersInfo {
        let parts = if nics < gpus { servers * nics } else { 0 };
        let (domain, scale_up_bps) = (Some(gpus), 8_000_000_000_000);
        ServersInfo { servers, gpus, nics, nic_ports, planes, parts, domain, scale_up_bps }
    }

    /// Creates a run with links up from `(node, leaf)`.
    fn run(info: ServersInfo, up: &[(u32, u32)]) -> RunResult {
        let mut run = RunResult::default();
        run.info.servers = Some(info);
        let link =
            |(link, &(from_node, to_node))| LinkTotals { link, from_node, to_node, ..LinkTotals::default() };
        run.links = (0..).zip(up).map(link).collect();
        run
    }

    fn lanes(run: &RunResult) -> Vec<Option<(u32, u32)>> {
        let servers = Servers::of(run).unwrap();
        (0..run.links.len()).map(|link| servers.lane_of(link)).collect()
    }

    /// Two servers of two GPUs and two planes: links come plane after plane.
    #[test]
    fn a_lane_is_a_rail_of_a_plane() {
        let run = run(info(2, 2, 2, 2, 2), &[(0, 4), (2, 4), (1, 5), (3, 5), (0, 6), (2, 6), (1, 7), (3, 7)]);
        let found = lanes(&run);
        assert_eq!(found[..4], [Some((0, 0)), Some((1, 0)), Some((0, 1)), Some((1, 1))]);
        assert_eq!(found[4..], [Some((0, 2)), Some((1, 2)), Some((0, 3)), Some((1, 3))]);
        let servers = Servers::of(&run).unwrap();
        assert_eq!((servers.lanes(), servers.lanes_of_plane()), (4, 2));
        assert!(servers.has_rails());
        assert_eq!(servers.lane_name(3), "plane 1, rail 1");
    }

    /// Two ports of a NIC in one network, at one leaf: no rails.
    #[test]
    fn without_planes_a_lane_is_a_port_of_a_nic() {
        let run = run(info(1, 2, 2, 2, 1), &[(0, 2), (0, 2), (1, 2), (1, 2)]);
        assert_eq!(lanes(&run), [Some((0, 0)), Some((0, 1)), Some((0, 2)), Some((0, 3))]);
        let servers = Servers::of(&run).unwrap();
        assert!(!servers.has_rails());
        assert_eq!(servers.lane_name(3), "NIC 1, port 1");
    }

    /// Four GPUs share two NICs, which are nodes 4 and 5: their links are lanes, those of the GPUs are not.
    #[test]
    fn shared_nics_have_the_lanes() {
        let run = run(info(1, 4, 2, 1, 1), &[(0, 4), (3, 5), (4, 6), (5, 7)]);
        assert_eq!(lanes(&run), [None, None, Some((0, 0)), Some((0, 1))]);
        let servers = Servers::of(&run).unwrap();
        assert_eq!((servers.server_of(5), servers.server_of(6)), (Some(0), None));
        assert_eq!(servers.lane_name(1), "rail 1");
    }

    /// 1 MB in 1 us over links of 8 Tb/s is all that they could have carried; a flow to another server does not count.
    #[test]
    fn scale_up_is_used_by_flows_inside_a_domain() {
        let mut run = run(info(2, 2, 2, 1, 1), &[]);
        run.info.simulated_ps = 1_000_000;
        let flow = |src_host, dst_host, size_bytes| FlowRecord {
            src_host,
            dst_host,
            size_bytes,
            finish_ps: Some(1),
            ..FlowRecord::default()
        };
        run.flows = vec![flow(0, 1, 1_000_000), flow(1, 2, 1_000_000), flow(3, 2, 500_000)];
        assert_eq!(Servers::of(&run).unwrap().scale_up_use(&run), Some(vec![1.0, 0.0, 0.0, 0.5]));
        // The same where records were written as they became known.
        let groups = [(pathweave_records::Role::Foreground, 3)];
        let mut sums = pathweave_records::FlowStats::new(groups, Default::default(), &[]).of_run(&run.info);
        run.flows.iter().for_each(|flow| sums.add(flow));
        run.flows.clear();
        run.streamed = Some(Box::new(sums));
        assert_eq!(Servers::of(&run).unwrap().scale_up_use(&run), Some(vec![1.0, 0.0, 0.0, 0.5]));
    }
}
