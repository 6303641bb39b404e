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

/// How a flow that has been slowed down gets faster again: at intervals, to half-way between its rate and the one it
/// remembers, and at least by a fixed step.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Recovery {
    /// Between steps.
    pub interval: Duration,
    /// The least step, in shares of the line rate.
    pub step: f64,
    /// Time constant with which it forgets the rate it had, as long as it is limited.
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
    /// Rates by notifications, with timers for increases. Fitted to DCQCN's preset "hpcc", whose marking begins at 32 us.
    pub const BY_NOTIFICATIONS: Control = Control { recovery: Some(Recovery::BY_TIMER), ..Control::BY_MARKS };
}

impl Recovery {
    /// Of rates that timers increase. Fitted to DCQCN's preset "hpcc" at 100 Gb/s: 10 Gb/s a millisecond.
    pub const BY_TIMER: Recovery =
        Recovery { interval: Duration::from_us(50), step: 0.005, forgets: Duration::from_us(100) };
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
