//! Rate controls that are slow to take what others leave. A new flow sends at line rate. Once it has been limited it may have no
//! more than what it had then, and gets it back step by step.

use pathweave_policy::fluid::Recovery;
use pathweave_units::Time;

use crate::lane::Service;
use crate::model::Model;
use crate::queue::decay;
use crate::solver::{FlowId, Solver};

/// A limited flow may have so much more than it has, in relation: so that it is seen when others leave.
const MARGIN: f64 = 0.02;

/// Flows that get faster.
pub(crate) struct Recovering {
    flows: Vec<FlowId>,
    /// When the next step is due.
    pub(crate) due: Time,
}

impl Default for Recovering {
    fn default() -> Self {
        Recovering { flows: Vec::new(), due: Time::MAX }
    }
}

impl Recovering {
    /// The rate of a flow in service has changed.
    pub(crate) fn note(
        &mut self,
        now: Time,
        (flow, service): (FlowId, &mut Service),
        recovery: &Recovery,
        solver: &mut Solver,
    ) {
        let (rate, limit) = (solver.rate(flow), solver.limit(flow));
        if rate * (1.0 + MARGIN) < limit {
            if service.limited_since == Time::MAX {
                service.remembers = limit;
            } else {
                forget(now, service, rate, recovery);
            }
            service.limited_since = now;
            solver.set_higher_limit(flow, rate * (1.0 + MARGIN));
        } else if rate >= limit * (1.0 - 1e-9) && limit < service.line && service.limited_since != Time::MAX {
            forget(now, service, rate, recovery);
            service.limited_since = Time::MAX;
            if self.due == Time::MAX {
                self.due = now + recovery.interval;
            }
            self.flows.push(flow);
        }
    }

    /// Flows make a step.
    pub(crate) fn tick(
        &mut self,
        now: Time,
        services: &[Option<Service>],
        models: &[Model],
        solver: &mut Solver,
    ) {
        self.due = Time::MAX;
        self.flows.retain(|&flow| {
            let Some(service) = &services[flow as usize] else { return false };
            let Some(recovery) = models[usize::from(service.group)].recovery else { return false };
            let limit = solver.limit(flow);
            // It is limited again, or has all it can have.
            if service.limited_since != Time::MAX || limit >= service.line {
                return false;
            }
            let step = (limit + recovery.step * service.line).max((limit + service.remembers) / 2.0);
            solver.set_limit(flow, step.min(service.line));
            self.due = self.due.min(now + recovery.interval);
            true
        });
    }
}

/// As long as it is limited a flow forgets the rate it had.
fn forget(now: Time, service: &mut Service, rate: f64, recovery: &Recovery) {
    let span = (now.as_ps() - service.limited_since.as_ps()) as f64;
    let kept = decay(span / recovery.forgets.as_ps() as f64);
    service.remembers = rate + (service.remembers - rate).max(0.0) * kept;
}
