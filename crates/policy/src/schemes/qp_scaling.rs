//! QP scaling: many queue pairs, each on a path of its own.

use super::{SchemeInfo, common};
use crate::picker::PickerConfig;
use crate::{Recovery, Scheme};

pub(super) const QP_SCALING: SchemeInfo = SchemeInfo {
    name: "qp-scaling",
    aliases: &["qp16"],
    help: "A message split evenly over 16 queue pairs, each as ecmp",
    source: "Common practice of collective libraries; UDMP, section V-B, as QP-Scaling-16",
    make: || scaled(16),
};

pub(super) const QP32: SchemeInfo = SchemeInfo {
    name: "qp32",
    aliases: &[],
    help: "As qp-scaling with 32 queue pairs",
    source: "UDMP, section V-B, as QP-Scaling-32",
    make: || scaled(32),
};

fn scaled(queue_pairs: u16) -> Scheme {
    Scheme { queue_pairs, ..common::dcqcn(PickerConfig::Ecmp, Recovery::GoBackN) }
}
