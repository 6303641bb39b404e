//! Everything that is registered, each as a scheme that can run, so that no test has to list names.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::iter::successors;

use pathweave_units::Duration;

use crate::cc::{CcConfig, NsccConfig, UnlimitedConfig};
use crate::picker::PickerConfig;
use crate::{
    Forwarding, PathRto, PolicyConfig, Recovery, RingScope, Scheme, SplitConfig, find_scheme, schemes,
};

/// A scheme that must pass the tests.
#[derive(Clone, Debug)]
pub struct Subject {
    /// Name of a scheme; for a part of a scheme its kind and name: "cc swift", "picker plb", "recovery path_order",
    /// "forwarding conga". Names are those of scenarios.
    pub label: String,
    /// The scheme; for a part, a scheme that contains it and otherwise interferes as little as possible.
    pub scheme: Scheme,
}

/// Returns the subjects that need no network: every scheme, every congestion control, every picker.
pub fn policies() -> Vec<Subject> {
    let split = |cc, picker| PolicyConfig::Split(SplitConfig { cc, picker });
    let mut all: Vec<Subject> = schemes()
        .iter()
        .map(|info| Subject { label: info.name.to_string(), scheme: (info.make)() })
        .collect();
    all.extend(CcConfig::every().into_iter().map(|(name, cc)| Subject {
        label: format!("cc {}", snake_case(name)),
        scheme: Scheme { policy: split(cc, PickerConfig::Rps), ..preset("rps") },
    }));
    all.extend(PickerConfig::every().into_iter().map(|(name, picker)| {
        let unlimited = CcConfig::None(UnlimitedConfig::default());
        Subject {
            label: format!("picker {}", snake_case(name)),
            scheme: Scheme { policy: split(unlimited, picker), ..preset("rps-nocc") },
        }
    }));
    all
}

/// Returns [`policies`], and the subjects that need a network: every loss recovery, all load balancing of switches.
pub fn subjects() -> Vec<Subject> {
    let mut all = policies();
    all.extend(successors(Some(Recovery::GoBackN), after_recovery).map(|recovery| {
        let name = match recovery {
            Recovery::GoBackN => "go_back_n",
            Recovery::GoBackNRepeated { .. } => "go_back_n_repeated",
            Recovery::SelectiveRepeat { .. } => "selective_repeat",
            Recovery::Timed { .. } => "timed",
            Recovery::Sleek { .. } => "sleek",
            Recovery::Timeouts { .. } => "timeouts",
            Recovery::PathOrder { .. } => "path_order",
        };
        // SLEEK requires a window.
        let cc = match recovery {
            Recovery::Sleek { .. } => CcConfig::Nscc(NsccConfig::default()),
            _ => CcConfig::None(UnlimitedConfig::default()),
        };
        // One path for each message: go-back-N drops out-of-order packets.
        let one_path = SplitConfig { cc, picker: PickerConfig::PerMessage };
        let scheme = Scheme { policy: PolicyConfig::Split(one_path), recovery, ..preset("rps-nocc") };
        Subject { label: format!("recovery {name}"), scheme }
    }));
    all.extend(Forwarding::ALL.iter().map(|&forwarding| {
        let scheme = Scheme { forwarding: Some(forwarding), ..preset("switch-rps") };
        Subject { label: format!("forwarding {}", forwarding.name()), scheme }
    }));
    all
}

/// Returns the recovery after this one. Has no wildcard, so that a new one does not compile before it has a place
/// here.
fn after_recovery(recovery: &Recovery) -> Option<Recovery> {
    Some(match recovery {
        Recovery::GoBackN => Recovery::GoBackNRepeated { repeat: Duration::from_us(4) },
        Recovery::GoBackNRepeated { .. } => Recovery::SelectiveRepeat {
            reorder_packets: 0,
            window_packets: Some(4_096),
            sender_window_packets: None,
        },
        Recovery::SelectiveRepeat { .. } => {
            Recovery::Timed { reorder_packets: 0, window_packets: Some(4_096) }
        }
        Recovery::Timed { .. } => Recovery::PathOrder {
            window_packets: Some(4_096),
            scope: RingScope::default(),
            rto: PathRto::default(),
            rto_min: Duration::from_us(100),
            rto_slack: Duration::from_us(5),
        },
        Recovery::PathOrder { .. } => Recovery::sleek(),
        Recovery::Sleek { .. } => {
            Recovery::Timeouts { window_packets: Some(1_024), exponent: None, alike: 7, retries: 14 }
        }
        Recovery::Timeouts { .. } => return None,
    })
}

fn preset(name: &str) -> Scheme {
    (find_scheme(name).expect("a scheme of this crate").make)()
}

/// Converts a Rust name into that of a scenario: `DctcpRate` to `dctcp_rate`.
fn snake_case(name: &str) -> String {
    let mut snake = String::new();
    for letter in name.chars() {
        if letter.is_ascii_uppercase() && !snake.is_empty() {
            snake.push('_');
        }
        snake.push(letter.to_ascii_lowercase());
    }
    snake
}
