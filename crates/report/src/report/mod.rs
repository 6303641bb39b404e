//! `report.html`: a single self-contained file for one run, or for several side by side.
//!
//! Tables are made here, from the same metrics as the terminal's. The viewer (`web/`, whose built page is embedded)
//! draws pictures in the browser. Their data is thinned out here, so that the size of the file and the speed of the
//! page do not depend on the length of the run.

mod beside;
mod collectives;
mod curves;
mod fabric;
mod faults;
mod flows;
mod frames;
mod hosts;
mod index;
mod intervals;
mod jobs;
mod overview;
mod page;
mod pauses;
mod plane;
mod series;
mod server_grid;
mod tables;
mod thin;
mod timeline;

use pathweave_records::figures::PICKED;

pub use beside::beside;
pub use overview::run_in_words;
pub use page::html;

/// Bounds on the size of a report. They apply to all runs together: with more runs, each gets less.
#[derive(Clone, Copy, Debug)]
struct Budget {
    /// Number of points of a curve.
    points: usize,
    /// Number of curves of a chart, without the aggregate.
    curves: usize,
    /// Number of workload groups.
    groups: usize,
    /// Number of links drawn one by one. With more links, adjacent ones share a cell of a matrix.
    links: usize,
    /// Number of links that can be found by name if they are not drawn one by one.
    named_links: usize,
    /// Number of values in the pictures over time of a run: links and hosts, times instants, times quantities.
    cells: usize,
    /// Number of flows drawn at random.
    flows: usize,
    /// Number of jobs.
    jobs: usize,
    /// Number of hosts in the timeline.
    hosts: usize,
    /// Number of bars in the timeline.
    bars: usize,
    /// Number of collectives.
    collectives: usize,
    /// Number of steps of critical paths.
    steps: usize,
    /// Number of links in the analysis of pauses.
    pauses: usize,
    /// Number of bytes of scenario text.
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

/// Rounds to five significant digits: more than a picture shows, and half the bytes of a full double.
fn rounded(value: f64) -> f64 {
    format!("{value:.4e}").parse().expect("a formatted number parses")
}
