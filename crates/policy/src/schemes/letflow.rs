//! LetFlow: switches send flowlets over random paths.

use super::{SchemeInfo, common};
use crate::{Forwarding, Recovery};

pub(super) const LETFLOW: SchemeInfo = SchemeInfo {
    name: "letflow",
    aliases: &[],
    help: "Switches send each flowlet over a random path; DCQCN, go-back-N",
    source: "LetFlow (NSDI 2017); over DCQCN as in the evaluations of ConWeave (SIGCOMM 2023) and LAPS",
    make: || common::balanced(Forwarding::LetFlow, Recovery::GoBackN),
};
