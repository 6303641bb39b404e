//! Validation: the same flows over the same network with the same parameters, in this simulator and in others, and in
//! this simulator and by exact laws. Cases are data (`validation/`): a scenario, the measurement of a peer, and the
//! allowed band of the ratio. One case compares models with measurements of hardware.

mod catalogue;
mod cluster_law;
mod error;
mod figures;
mod judge;
mod law;
mod md1;
mod measured;
mod model;
mod packets;
mod page;
mod pair;
mod picture;
mod ports;
mod run;

pub use catalogue::{Case, Catalogue, HARDWARE, ONE_PORT, PACKETS, load_all};
pub use cluster_law::{Confined, LostUnaware};
pub use error::{RunError, ValidateError};
pub use figures::{Curve, Figures, flows_digest};
pub use judge::{CaseRuns, Outcome, Row};
pub use law::Law;
pub use measured::{
    Estimated, FittedEfficiency, GenerationFit, MeasuredReport, MeasuredRow, Role, RowState, Share,
    TrainingReport, TrainingRow, measured_markdown, measured_text, training_markdown, training_text,
};
pub use model::{
    Band, Bands, CaseFile, Cause, Experiment, KnownMiss, Measure, Measured, MeasuredTable, Packets, Peer,
    PeerMeasurement, Stat,
};
pub use packets::{ValidityCounts, markdown, table_cell};
pub use page::{Settings, html};
pub use run::runs;
