//! Discrete-event core: a monotone event queue built for one pending event a source.
//!
//! A simulation has a fixed set of *sources* (a link's next arrival, a host's next transmission, a timer), and each
//! has at most one pending event. So an event is no allocation but a slot: its time and a link to the next slot.

mod prefetch;
mod queue;

pub use prefetch::{prefetch, prefetch_all, prefetch_line};
pub use queue::{EventQueue, LOOK_AHEAD, SourceId};
