//! What a scheme is to a model of flows as fluids, which has rates and no packets: how its packets spread over paths, and how
//! its rate control departs from an ideal one. Each picker, congestion control and coupled policy says it in its own file.

use pathweave_units::Duration;
pub use pathweave_units::Spread;

/// A path picker says how it spreads.
pub trait Spreads {
    /// How its packets are spread.
    const SPREAD: Spread;
}

/// How a rate control departs from one that gives every flow its fair rate at once and keeps queues empty.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Control {
    /// The queue that stands at a port where several flows are limited, as the time in which the port sends it.
    pub standing: Duration,
    /// How long a new flow sends at line rate before it hears of a queue.
    pub unaware: Duration,
    /// Time constant with which a queue above `standing`, or of a single flow, drains.
    pub drain: Duration,
    /// How a flow takes the bandwidth that others leave; `None`: within a few round-trip times, which is at once.
    pub recovery: Option<Recovery>,
}

/// How a flow that has been cut gets faster again: at intervals, to half-way between its rate and the one it had, and at least by
/// a fixed step. Cuts are by half of an estimate of congestion, which is whole at first.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Recovery {
    /// Between steps, and from a cut to the first.
    pub interval: Duration,
    /// The least step, in shares of the line rate.
    pub step: f64,
    /// Time constant with which the estimate of congestion fades while nothing is congested.
    pub forgets: Duration,
}

impl Control {
    /// Rate or window by delay or by acknowledgements: short queues, fair rates within a few round-trip times. Fitted to
    /// UDMP, whose target is 3 us a queue.
    pub const BY_DELAY: Control = Control {
        standing: Duration::from_us(12),
        unaware: Duration::from_us(20),
        drain: Duration::from_us(50),
        recovery: None,
    };
    /// Windows by marks: queues up to the marking threshold, fair rates within a few round-trip times.
    pub const BY_MARKS: Control = Control {
        standing: Duration::from_us(36),
        unaware: Duration::from_us(25),
        drain: Duration::from_us(80),
        recovery: None,
    };
    /// Rates by notifications, with timers for increases: DCQCN's preset "hpcc", whose marking begins at 32 us.
    pub const BY_NOTIFICATIONS: Control = Control { recovery: Some(Recovery::BY_TIMER), ..Control::BY_MARKS };
}

impl Recovery {
    /// Of DCQCN's preset "hpcc": a timer of 300 us, 200 Mb/s at 100 Gb/s, and an estimate that loses a 256th each microsecond.
    pub const BY_TIMER: Recovery =
        Recovery { interval: Duration::from_us(300), step: 0.002, forgets: Duration::from_us(256) };
}

/// A configuration of a congestion control says how that departs from an ideal one.
pub trait Controls {
    /// How it departs.
    fn control(&self) -> Control;
}

/// What a policy is to a model of flows as fluids.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Fluid {
    /// How its packets are spread; `None` where a program picks paths, which says nothing of it.
    pub spread: Option<Spread>,
    /// Its rate control.
    pub control: Control,
}

/// A configuration of a policy says what the policy is to a model of flows as fluids.
pub trait AsFluid {
    /// What it is.
    fn as_fluid(&self) -> Fluid;
}
