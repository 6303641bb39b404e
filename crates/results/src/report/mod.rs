//! `report.html`: one file with everything in it, for one run or for several side by side.
//!
//! Tables are made here, from the same metrics as the terminal's. Pictures are drawn in the browser by the viewer
//! (`web/`, whose built page is embedded) from data thinned out here, so that the file stays small and the page quick
//! however long the run was.

mod collectives;
mod curves;
mod fabric;
mod faults;
mod first;
mod flows;
mod frames;
mod hosts;
mod index;
mod intervals;
mod jobs;
mod page;
mod pauses;
mod plane;
mod series;
mod tables;
mod timeline;

use crate::figures::PICKED;

pub use page::html;

/// Bounds on what a report holds. They are for all runs together: more runs, less of each.
#[derive(Clone, Copy, Debug)]
struct Budget {
    /// Points a curve.
    points: usize,
    /// Curves a chart, the aggregate not counted.
    curves: usize,
    /// Workload groups.
    groups: usize,
    /// Links drawn one by one; where there are more, neighbours share a cell of a matrix.
    links: usize,
    /// Links that can be found by name where they are not drawn one by one.
    named_links: usize,
    /// Values in the pictures over time of a run: links and hosts, times instants, times what is shown of them.
    cells: usize,
    /// Flows picked at random.
    flows: usize,
    /// Jobs.
    jobs: usize,
    /// Hosts in the timeline.
    hosts: usize,
    /// Bars in the timeline.
    bars: usize,
    /// Collectives.
    collectives: usize,
    /// Steps of critical paths.
    steps: usize,
    /// Links in the account of pauses.
    pauses: usize,
    /// Bytes of scenario text.
    scenario_bytes: usize,
}

impl Budget {
    fn for_runs(runs: usize) -> Self {
        let runs = runs.max(1);
        Budget {
            points: (3_000 / runs).clamp(50, 500),
            curves: if runs <= 8 { 6 } else { 2 },
            groups: if runs <= 8 { 12 } else { 2 },
            links: (16_000 / runs).min(4_000),
            named_links: (40_000 / runs).min(20_000),
            cells: 1_600_000 / runs,
            flows: (6_000 / runs).clamp(50, PICKED),
            jobs: (1_600 / runs).clamp(20, 400),
            hosts: (512 / runs).clamp(8, 64),
            bars: (32_000 / runs).clamp(400, 16_000),
            collectives: (4_000 / runs).clamp(50, 2_000),
            steps: (6_000 / runs).clamp(100, 3_000),
            pauses: (1_600 / runs).clamp(20, 400),
            scenario_bytes: (800_000 / runs).min(300_000),
        }
    }

    fn halved(self) -> Self {
        Budget {
            points: self.points / 2,
            curves: (self.curves / 2).max(1),
            groups: self.groups / 2,
            links: self.links / 2,
            named_links: self.named_links / 2,
            cells: self.cells / 2,
            flows: self.flows / 2,
            jobs: self.jobs / 2,
            hosts: (self.hosts / 2).max(2),
            bars: self.bars / 2,
            collectives: self.collectives / 2,
            steps: self.steps / 2,
            pauses: self.pauses / 2,
            scenario_bytes: self.scenario_bytes / 2,
        }
    }
}

/// Five significant digits: more than a picture shows, half the bytes of a full double.
fn rounded(value: f64) -> f64 {
    format!("{value:.4e}").parse().expect("a formatted number parses")
}
