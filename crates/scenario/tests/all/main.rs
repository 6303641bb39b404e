//! All integration tests of this crate in one binary, which is linked once.

mod alone;
mod any_text;
mod attribution;
mod clusters;
mod credit;
mod effects;
mod estimate;
mod flow;
mod flow_extremes;
mod hostile_files;
mod in_use;
mod iterations;
mod jobs;
mod least_times;
mod limits;
mod link_rates;
mod maps;
mod marks;
mod names;
mod planted;
mod reference;
mod registered;
mod sections;
mod supplied;
mod switches;
mod training;
