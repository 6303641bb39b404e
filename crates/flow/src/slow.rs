//! Rate controls by timers, if messages begin at random and many share each port. In the mean they are slow to use
//! bandwidth that others release. A new flow sends at line rate. Once limited, it keeps that rate as its limit and
//! recovers step by step. In other runs [`recovery`](crate::recovery) models each cut.

use pathweave_units::{Duration, Time};

use crate::lane::Service;
use crate::queue::decay;
use pathweave_execution::max_min::{FlowId, Solver};

/// Interval between steps. This constant and the next ones are fitted to DCQCN's preset "hpcc" at 100 Gb/s under
/// random messages.
const INTERVAL: Duration = Duration::from_us(50);
/// Smallest step, as a share of the line rate.
const STEP: f64 = 0.005;
/// Time constant with which a limited flow forgets the rate it had.
const FORGETS: Duration = Duration::from_us(100);
/// Relative margin of a limited flow's limit over its rate. It reveals when other flows release bandwidth.
const MARGIN: f64 = 0.02;

/// Flows that recover.
pub(crate) struct SlowRecovery {
    flows: Vec<FlowId>,
    /// Time of the next step.
    pub(crate) due: Time,
}

impl Default for SlowRecovery {
    fn default() -> Self {
        SlowRecovery { flows: Vec::new(), due: Time::MAX }
    }
}

impl SlowRecovery {
    /// Records a new rate of a flow in service.
    pub(crate) fn note(&mut self, now: Time, (flow, service): (FlowId, &mut Service), solver: &mut Solver) {
        let (rate, limit) = (solver.rate(flow), solver.limit(flow));
        if rate * (1.0 + MARGIN) < limit {
            if service.limited_since == Time::MAX {
                service.remembered_rate = limit;
            } else {
                forget(now, service, rate);
            }
            service.limited_since = now;
            solver.set_higher_limit(flow, rate * (1.0 + MARGIN));
        } else if rate >= limit * (1.0 - 1e-9)
            && limit < service.max_rate
            && service.limited_since != Time::MAX
        {
            forget(now, service, rate);
            service.limited_since = Time::MAX;
            if self.due == Time::MAX {
                self.due = now + INTERVAL;
            }
            self.flows.push(flow);
        }
    }

    /// Performs a step of all flows.
    pub(crate) fn tick(&mut self, now: Time, services: &[Option<Service>], solver: &mut Solver) {
        self.due = Time::MAX;
        self.flows.retain(|&flow| {
            let Some(service) = &services[flow as usize] else { return false };
            let limit = solver.limit(flow);
            // The flow is limited again, or has its full rate.
            if service.limited_since != Time::MAX || limit >= service.max_rate {
                return false;
            }
            let step = (limit + STEP * service.max_rate).max((limit + service.remembered_rate) / 2.0);
            solver.set_limit(flow, step.min(service.max_rate));
            self.due = self.due.min(now + INTERVAL);
            true
        });
    }
}

/// Decays the remembered rate of a limited flow towards its current rate.
fn forget(now: Time, service: &mut Service, rate: f64) {
    let span = (now.as_ps() - service.limited_since.as_ps()) as f64;
    let kept = decay(span / FORGETS.as_ps() as f64);
    service.remembered_rate = rate + (service.remembered_rate - rate).max(0.0) * kept;
}
