//! Description of a scheme for fluid models of flows, which have rates and no packets: the spreading of its packets
//! over paths, and the deviation of its rate control from an ideal one. Each picker, congestion control and coupled
//! policy states it in its own file.

use pathweave_units::Duration;
pub use pathweave_units::Spread;

/// The spreading of a path picker.
pub trait HasSpread {
    /// Spreading of the picker's packets.
    const SPREAD: Spread;
}

/// Deviation of a rate control from an ideal one, which gives every flow its fair rate at once and keeps queues
/// empty.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ControlModel {
    /// Standing queue at a port where several flows are limited, as the time in which the port sends it.
    pub standing: Duration,
    /// Time for which a new flow sends at line rate before it receives feedback of a queue.
    pub feedback_delay: Duration,
    /// Time constant with which a queue drains that is above `standing` or of a single flow.
    pub drain: Duration,
    /// Increase of a flow into free bandwidth; `None` if it takes only a few round-trip times, which counts as
    /// immediate.
    pub recovery: Option<RateRecovery>,
    /// Use of a port that one flow has alone.
    pub alone: AloneAtPort,
    /// Response to packets of unlike delays.
    pub over_unequal_paths: OverUnequalPaths,
}

/// Use of a port that is slower than its sender, and that one flow has alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AloneAtPort {
    /// The port stays full, unless the rate is cut and recovers slowly.
    FillsIt,
    /// The rate is a part of that of the port.
    LeavesRoom,
}

/// Response of a rate control to sprayed packets of unlike delays.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OverUnequalPaths {
    /// The rate does not depend on delays.
    KeepsRate,
    /// Windows or choices of paths depend on delays.
    IsDisturbed,
}

/// Increase of a flow's rate after a cut. At intervals the rate moves half-way to its value before the cut, and at
/// least by a fixed step. A cut halves the rate in proportion to an estimate of congestion, which is 1 at first.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RateRecovery {
    /// Interval between steps, and from a cut to the first step.
    pub interval: Duration,
    /// Smallest step, as a fraction of the line rate.
    pub step: f64,
    /// Time constant with which the estimate of congestion decays without congestion.
    pub estimate_decay: Duration,
}

impl ControlModel {
    /// Rate or window controlled by delay or by acknowledgements: short queues, fair rates within a few round-trip
    /// times. Fitted to UDMP, whose target is 3 us per queue.
    pub const BY_DELAY: ControlModel = ControlModel {
        standing: Duration::from_us(12),
        feedback_delay: Duration::from_us(20),
        drain: Duration::from_us(50),
        recovery: None,
        alone: AloneAtPort::FillsIt,
        over_unequal_paths: OverUnequalPaths::IsDisturbed,
    };
    /// Window controlled by marks: queues up to the marking threshold, fair rates within a few round-trip times.
    pub const BY_MARKS: ControlModel = ControlModel {
        standing: Duration::from_us(36),
        feedback_delay: Duration::from_us(25),
        drain: Duration::from_us(80),
        ..ControlModel::BY_DELAY
    };
    /// Rate controlled by notifications, with timers for increases: DCQCN's preset "hpcc", whose marking begins at 32
    /// us.
    pub const BY_NOTIFICATIONS: ControlModel =
        ControlModel { recovery: Some(RateRecovery::BY_TIMER), ..ControlModel::BY_MARKS };
}

impl RateRecovery {
    /// Recovery of DCQCN's preset "hpcc": a timer of 300 us, steps of 200 Mb/s at 100 Gb/s, and an estimate that
    /// loses a 256th per microsecond.
    pub const BY_TIMER: RateRecovery = RateRecovery {
        interval: Duration::from_us(300),
        step: 0.002,
        estimate_decay: Duration::from_us(256),
    };
}

/// The rate control of a congestion control's configuration.
pub trait HasControlModel {
    /// Returns the deviation of the rate control from an ideal one.
    fn control(&self) -> ControlModel;
}

/// Description of a policy for fluid models.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Fluid {
    /// Spreading of the policy's packets; `None` if a program picks paths, whose spreading is unknown.
    pub spread: Option<Spread>,
    /// Rate control of the policy.
    pub control: ControlModel,
}

/// The description of a policy's configuration for fluid models.
pub trait AsFluid {
    /// Returns the description.
    fn as_fluid(&self) -> Fluid;
}
