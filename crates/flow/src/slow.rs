//! Rate controls by timers where messages begin at random and many share each port: in the mean they are slow to take what others
//! leave. A new flow sends at line rate. Once it has been limited it may have no more than what it had then, and gets it back
//! step by step. Elsewhere [`recovery`](crate::recovery) follows their cuts one by one.

use pathweave_units::{Duration, Time};

use crate::lane::Service;
use crate::queue::decay;
use crate::solver::{FlowId, Solver};

/// Between steps. This and what follows is fitted to DCQCN's preset "hpcc" at 100 Gb/s under random messages.
const INTERVAL: Duration = Duration::from_us(50);
/// The least step, in shares of the line rate.
const STEP: f64 = 0.005;
/// Time constant with which a flow forgets the rate it had, as long as it is limited.
const FORGETS: Duration = Duration::from_us(100);
/// A limited flow may have so much more than it has, in relation: so that it is seen when others leave.
const MARGIN: f64 = 0.02;

/// Flows that get faster.
pub(crate) struct Slow {
    flows: Vec<FlowId>,
    /// When the next step is due.
    pub(crate) due: Time,
}

impl Default for Slow {
    fn default() -> Self {
        Slow { flows: Vec::new(), due: Time::MAX }
    }
}

impl Slow {
    /// The rate of a flow in service has changed.
    pub(crate) fn note(&mut self, now: Time, (flow, service): (FlowId, &mut Service), solver: &mut Solver) {
        let (rate, limit) = (solver.rate(flow), solver.limit(flow));
        if rate * (1.0 + MARGIN) < limit {
            if service.limited_since == Time::MAX {
                service.remembers = limit;
            } else {
                forget(now, service, rate);
            }
            service.limited_since = now;
            solver.set_higher_limit(flow, rate * (1.0 + MARGIN));
        } else if rate >= limit * (1.0 - 1e-9) && limit < service.line && service.limited_since != Time::MAX {
            forget(now, service, rate);
            service.limited_since = Time::MAX;
            if self.due == Time::MAX {
                self.due = now + INTERVAL;
            }
            self.flows.push(flow);
        }
    }

    /// Flows make a step.
    pub(crate) fn tick(&mut self, now: Time, services: &[Option<Service>], solver: &mut Solver) {
        self.due = Time::MAX;
        self.flows.retain(|&flow| {
            let Some(service) = &services[flow as usize] else { return false };
            let limit = solver.limit(flow);
            // It is limited again, or has all it can have.
            if service.limited_since != Time::MAX || limit >= service.line {
                return false;
            }
            let step = (limit + STEP * service.line).max((limit + service.remembers) / 2.0);
            solver.set_limit(flow, step.min(service.line));
            self.due = self.due.min(now + INTERVAL);
            true
        });
    }
}

/// As long as it is limited a flow forgets the rate it had.
fn forget(now: Time, service: &mut Service, rate: f64) {
    let span = (now.as_ps() - service.limited_since.as_ps()) as f64;
    let kept = decay(span / FORGETS.as_ps() as f64);
    service.remembers = rate + (service.remembers - rate).max(0.0) * kept;
}
