//! Reports of a receiver about packets that arrive ahead of a gap.

use pathweave_units::{Bytes, Duration};

use crate::error::{above, check, within};
use crate::{ConfigError, Recovery};

/// Reports of the receiver about packets that arrive ahead of a gap, in addition to acknowledgements.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case", tag = "kind"))]
pub enum Reordering {
    /// No reports: the sender detects losses by itself.
    #[default]
    Silent,
    /// The receiver reports the missing packets before the gap as lost, unless a notice of the sender explains the
    /// gap. With selective repeat.
    Reported(ReportPolicy),
}

/// Rules by which a receiver declares a missing packet lost (IRN's selective repeat, with the notices of DLBF,
/// section III-D).
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema))]
#[cfg_attr(feature = "serde", serde(deny_unknown_fields, default))]
pub struct ReportPolicy {
    /// Shortest time after which a packet that is still missing is reported again. Default 4 us (ConWeave simulator,
    /// NACK interval).
    pub repeat: Duration,
    /// theta: time after which a packet that a notice announced as late is lost. Default 100 us, a little above the
    /// time that a queue at ECN's upper threshold takes to drain (3,200 KB at 400 Gb/s: 64 us). The paper gives no
    /// value.
    pub wait: Duration,
    /// Data held ahead of a gap above which the receiver refuses notices. Default 128 KB, about two bandwidth-delay
    /// products of 400 Gb/s and 1.3 us. The paper gives no value.
    pub high: Bytes,
    /// Data held ahead of a gap below which the receiver accepts notices again. Default 64 KB.
    pub low: Bytes,
    /// Effect of an unmarked notice, besides requesting copies. Default "shield".
    pub clean_notice: CleanNotice,
}

impl Default for ReportPolicy {
    fn default() -> Self {
        ReportPolicy {
            repeat: Duration::from_us(4),
            wait: Duration::from_us(100),
            high: Bytes::from_kb(128),
            low: Bytes::from_kb(64),
            clean_notice: CleanNotice::default(),
        }
    }
}

/// Effect of an unmarked notice, besides requesting copies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
pub enum CleanNotice {
    /// The announced packets do not count as lost for `wait`, as with a marked notice. The requested copies are a
    /// round trip away; until then every packet of the new path would indicate a loss.
    #[default]
    Shield,
    /// No effect (DLBF as printed).
    Expose,
}

impl Reordering {
    /// Returns an error that names the first invalid field.
    pub fn validate(&self, recovery: Recovery) -> Result<(), ConfigError> {
        let Reordering::Reported(report) = self else { return Ok(()) };
        let selective = matches!(recovery, Recovery::SelectiveRepeat { .. } | Recovery::Timed { .. });
        check(
            selective,
            "kind",
            "reported",
            "\"silent\", unless recovery is \"selective_repeat\" or \"timed\"",
        )?;
        let time = |name, time| within(name, time, above(Duration::ZERO, Duration::from_ms(1_000)), "");
        time("repeat", report.repeat)?;
        time("wait", report.wait)?;
        check(report.low <= report.high, "low", report.low, "at most `high`")
    }
    /// Returns true if the receiver sends no reports.
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
