//! What a receiver says of packets that arrive ahead of a gap.

use pathweave_units::{Bytes, Duration};

use crate::error::check;
use crate::{ConfigError, Recovery};

/// What the receiver says of packets that arrive ahead of a gap, beyond acknowledging them.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case", tag = "kind"))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Reordering {
    /// Nothing: the sender finds losses by itself.
    #[default]
    Silent,
    /// It names what is missing before them, as lost, unless a notice of the sender explains it. With selective repeat.
    Reported(ReportPolicy),
}

/// When a receiver takes a missing packet for lost (IRN's selective repeat, with the notices of DLBF, section III-D).
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(deny_unknown_fields, default))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ReportPolicy {
    /// A packet still missing is named again after this time, at the earliest. Default 4 us (ConWeave simulator, NACK
    /// interval).
    pub repeat: Duration,
    /// theta: what a notice announced to be late is lost after this time. Default 100 us, a little above the time a
    /// queue at ECN's upper threshold takes to drain (3,200 KB at 400 Gb/s: 64 us); the paper gives none.
    pub wait: Duration,
    /// Notices are no longer welcome when more than this is held ahead of a gap. Default 128 KB, about two
    /// bandwidth-delay products of 400 Gb/s and 1.3 us; the paper gives none.
    pub high: Bytes,
    /// And welcome again when less than this is. Default 64 KB.
    pub low: Bytes,
    /// What an unmarked notice does besides asking for copies.
    pub clean_notice: CleanNotice,
    /// Whether a marked packet that had arrived before makes a congestion notification.
    pub copy_marks: CopyMarks,
}

impl Default for ReportPolicy {
    fn default() -> Self {
        ReportPolicy {
            repeat: Duration::from_us(4),
            wait: Duration::from_us(100),
            high: Bytes::from_kb(128),
            low: Bytes::from_kb(64),
            clean_notice: CleanNotice::default(),
            copy_marks: CopyMarks::default(),
        }
    }
}

/// What an unmarked notice does besides asking for copies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum CleanNotice {
    /// What it announced does not count as lost for `wait`, as with a marked one: the copies asked for are a round trip
    /// away, and until then every packet of the new path would seem to prove a loss.
    #[default]
    Shield,
    /// Nothing (DLBF as printed).
    Expose,
}

/// Whether a marked packet that had arrived before makes a congestion notification.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum CopyMarks {
    /// No: copies shall not cost rate.
    #[default]
    Ignore,
    /// Yes, as any marked packet (ConWeave simulator).
    Notify,
}

impl Reordering {
    /// Names the first field that is wrong.
    pub fn validate(&self, recovery: Recovery) -> Result<(), ConfigError> {
        let Reordering::Reported(report) = self else { return Ok(()) };
        let selective = matches!(recovery, Recovery::SelectiveRepeat { .. } | Recovery::Timed { .. });
        check(
            selective,
            "kind",
            "reported",
            "\"silent\", unless recovery is \"selective_repeat\" or \"timed\"",
        )?;
        let time = |name, time: Duration| {
            let allowed = time > Duration::ZERO && time <= Duration::from_ms(1_000);
            check(allowed, name, time, "more than 0s, at most 1s")
        };
        time("repeat", report.repeat)?;
        time("wait", report.wait)?;
        check(report.low <= report.high, "low", report.low, "at most `high`")
    }
    /// Whether it says nothing.
    pub fn is_silent(&self) -> bool {
        *self == Reordering::Silent
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;

    #[test]
    fn a_low_mark_above_the_high_one_is_refused() {
        let selective = Recovery::SelectiveRepeat {
            reorder_packets: 0,
            window_packets: Some(4_096),
            sender_window_packets: None,
        };
        let of = |low, high| {
            let report = ReportPolicy {
                low: Bytes::from_kb(low),
                high: Bytes::from_kb(high),
                ..ReportPolicy::default()
            };
            Reordering::Reported(report).validate(selective)
        };
        assert_eq!((of(64, 128), of(128, 128)), (Ok(()), Ok(())));
        let error = of(129, 128).expect_err("notices would never be welcome again").to_string();
        assert!(
            error.contains("low") && error.contains("129KB") && error.contains("at most `high`"),
            "{error}"
        );
    }
}
