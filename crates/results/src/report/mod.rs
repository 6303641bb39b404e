//! `report.html`: one file with everything in it, for one run or for several side by side.
//!
//! Tables are made here, from the same metrics as the terminal's. Pictures are drawn in the browser from data
//! thinned out here, so that the file stays small however long the run was.

mod curves;
mod frame;
mod page;
mod series;
mod tables;
mod timeline;
mod topology;

pub use frame::Page;
pub use page::html;
pub use tables::escape;

/// Bounds on what a report holds. They are for all runs together: more runs, less of each.
#[derive(Clone, Copy, Debug)]
struct Budget {
    /// Points a curve.
    points: usize,
    /// Curves a chart, the aggregate not counted.
    curves: usize,
    /// Workload groups.
    groups: usize,
    /// Cells of the link heat maps of a run.
    cells: usize,
    /// Bytes of scenario text.
    scenario_bytes: usize,
}

impl Budget {
    fn for_runs(runs: usize) -> Self {
        let runs = runs.max(1);
        Budget {
            points: (6_000 / runs).clamp(50, 1_000),
            curves: if runs <= 8 { 6 } else { 2 },
            groups: if runs <= 8 { 12 } else { 2 },
            cells: (120_000 / runs).clamp(500, 20_000),
            scenario_bytes: (800_000 / runs).min(300_000),
        }
    }

    fn halved(self) -> Self {
        Budget {
            points: self.points / 2,
            curves: (self.curves / 2).max(1),
            groups: self.groups / 2,
            cells: self.cells / 2,
            scenario_bytes: self.scenario_bytes / 2,
        }
    }
}

/// Five significant digits: more than a picture shows, half the bytes of a full double.
fn rounded(value: f64) -> f64 {
    format!("{value:.4e}").parse().expect("a formatted number parses")
}
