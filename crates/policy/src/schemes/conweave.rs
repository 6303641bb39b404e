//! ConWeave: switches reroute flows and restore their order.

use super::{SchemeInfo, common};
use crate::{Forwarding, Recovery};

pub(super) const CONWEAVE: SchemeInfo = SchemeInfo {
    name: "conweave",
    aliases: &[],
    help: "Leaf switches move flows off slow paths and put them in order again; DCQCN, go-back-N",
    source: "ConWeave (SIGCOMM 2023), parameters of its authors' simulator",
    make: || common::balanced(Forwarding::ConWeave, Recovery::GoBackN),
};
