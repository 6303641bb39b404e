//! Servers as columns and lanes (rails of planes) as rows of a grid, whose cells are the links of NICs.

use std::collections::BTreeMap;

use pathweave_records::{Direction, RunResult};
use serde::Serialize;

use super::fabric::LinkMatrix;
use super::rounded;
use crate::servers::Servers;

/// Largest number of columns.
const COLUMNS: usize = 256;

/// Data of the picture of servers.
#[derive(Debug, Serialize)]
pub(super) struct ServerGrid {
    servers: u32,
    gpus: u32,
    nics: u32,
    nic_ports: u32,
    planes: u32,
    /// Number of nodes after the hosts that are parts of servers.
    parts: u32,
    /// GPUs that one scale-up network joins.
    domain: Option<u32>,
    scale_up_bps: u64,
    /// Number of groups of consecutive servers.
    columns: usize,
    /// Name of each lane.
    lanes: Vec<String>,
    /// Number of lanes of a plane.
    lanes_of_plane: u32,
    /// Row of the picture for each cell, column after column with a cell for each lane: links to the network.
    up: Vec<Option<u32>>,
    /// Likewise, links from the network.
    down: Vec<Option<u32>>,
    /// Name of the leaf of each cell: that of its first link.
    leaves: Vec<String>,
    /// Use of scale-up links, the mean over the GPUs of each column.
    scale_up: Option<Vec<f64>>,
    /// Use of the scale-up links of each GPU; absent if a column is several servers.
    scale_up_of_gpu: Option<Vec<f64>>,
}

/// Groups of consecutive servers.
#[derive(Clone, Copy)]
struct Columns {
    count: usize,
    servers: usize,
}

impl Columns {
    fn of(self, server: u32) -> usize {
        server as usize * self.count / self.servers.max(1)
    }
}

/// Builds the grid of a network whose links are drawn one by one.
pub(super) fn of_links(run: &RunResult, servers: &Servers<'_>) -> ServerGrid {
    let columns = Columns { count: servers.info.servers as usize, servers: servers.info.servers as usize };
    grid(run, servers, columns, |link, _| link as u32)
}

/// Builds the grid of an aggregated network, of at most `cells` cells a direction. Returns it with the matrices that have
/// its cells, of which the first begins at `first_row`. Writes the cell of each link.
pub(super) fn of_cells(
    run: &RunResult,
    servers: &Servers<'_>,
    cells: usize,
    first_row: usize,
    of_link: &mut [u32],
) -> (ServerGrid, Vec<LinkMatrix>) {
    let (lanes, count) = (servers.lanes() as usize, servers.info.servers as usize);
    let columns = Columns { count: count.min(COLUMNS).min((cells / lanes).max(1)), servers: count };
    let size = columns.count * lanes;
    let row = |link: usize, cell: usize| {
        let down = run.links[link].direction == Direction::Down;
        (first_row + cell + if down { size } else { 0 }) as u32
    };
    let grid = grid(run, servers, columns, row);
    let mut matrices = Vec::new();
    for (place, direction) in [Direction::Up, Direction::Down].into_iter().enumerate() {
        let mut links = 0;
        let mut tier = 0;
        for (number, link) in run.links.iter().enumerate().filter(|(_, link)| link.direction == direction) {
            if let Some((server, lane)) = servers.lane_of(number) {
                of_link[number] = row(number, columns.of(server) * lanes + lane as usize);
                (links, tier) = (links + 1, link.tier);
            }
        }
        matrices.push(LinkMatrix {
            tier,
            direction,
            owners: columns.count,
            ports: lanes,
            first_row: first_row + place * size,
            owner_nodes: count,
            links,
            first_owner: Servers::name(0, 0),
            last_owner: Servers::name(count as u32 - 1, count as u32 - 1),
            of_servers: true,
        });
    }
    (grid, matrices)
}

fn grid(
    run: &RunResult,
    servers: &Servers<'_>,
    columns: Columns,
    row: impl Fn(usize, usize) -> u32,
) -> ServerGrid {
    let lanes = servers.lanes() as usize;
    let size = columns.count * lanes;
    let (mut up, mut down, mut leaves) = (vec![None; size], vec![None; size], vec![String::new(); size]);
    for (number, link) in run.links.iter().enumerate() {
        let Some((server, lane)) = servers.lane_of(number) else { continue };
        let cell = columns.of(server) * lanes + lane as usize;
        let is_up = servers.server_of(link.from_node).is_some();
        if is_up && leaves[cell].is_empty() {
            leaves[cell].clone_from(&run.nodes[link.to_node as usize].name);
        }
        let rows = if is_up { &mut up } else { &mut down };
        rows[cell].get_or_insert_with(|| row(number, cell));
    }
    let info = servers.info;
    let each = columns.count == columns.servers;
    let used = servers.scale_up_use(run);
    let mean = |used: &Vec<f64>| {
        let mut sums: BTreeMap<usize, (f64, f64)> = BTreeMap::new();
        for (gpu, used) in used.iter().enumerate() {
            let sum = sums.entry(columns.of(gpu as u32 / info.gpus.max(1))).or_default();
            *sum = (sum.0 + used, sum.1 + 1.0);
        }
        sums.into_values().map(|(sum, gpus)| rounded(sum / gpus)).collect()
    };
    ServerGrid {
        servers: info.servers,
        gpus: info.gpus,
        nics: info.nics,
        nic_ports: info.nic_ports,
        planes: info.planes,
        parts: info.parts,
        domain: info.domain,
        scale_up_bps: info.scale_up_bps,
        columns: columns.count,
        lanes: (0..servers.lanes()).map(|lane| servers.lane_name(lane)).collect(),
        lanes_of_plane: servers.lanes_of_plane(),
        up,
        down,
        leaves,
        scale_up: used.as_ref().map(mean),
        scale_up_of_gpu: used.filter(|_| each).map(|used| used.into_iter().map(rounded).collect()),
    }
}
