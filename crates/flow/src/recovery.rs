//! Rate controls that notifications cut and timers increase. A new connection sends at line rate. If it is limited,
//! its rate is cut below its share, by half its estimate of congestion. The estimate makes the first cut a half, and
//! later cuts smaller after times without congestion. The rate then recovers step by step.

use pathweave_policy::fluid::RateRecovery;
use pathweave_units::{Duration, Time};

use crate::lane::{SendQueue, Service};
use crate::model::Model;
use crate::queue::{QueueConstants, decay};
use pathweave_execution::max_min::{FlowId, ResourceId, Solver};

/// Relative excess of the flows' demand over a port's capacity below which no queue builds that marks.
const LEAST_EXCESS: f64 = 0.1;

/// Smallest interval between steps, which bounds their number.
const LEAST_INTERVAL: Duration = Duration::from_us(1);
/// Growth of the congestion estimate while a queue marks.
const ALPHA_GAIN: f64 = 0.04;
/// Number of cuts of a flow that had the whole line, and the upper bound for any flow.
const CUTS_OF_LINE: f64 = 4.0;
const MOST_CUTS: f64 = 2.0;

/// Rate control of a queue pair.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RateControl {
    /// Largest rate in bytes per picosecond. Infinite until it is first limited.
    pub(crate) limit: f64,
    /// Rate to which it returns.
    target: f64,
    /// Time of the next increase, or [`Time::MAX`] at full rate.
    step_at: Time,
    /// Time of the next cut, or [`Time::MAX`] without congestion.
    cut_at: Time,
    /// Time of the first increase after the next cut.
    next_step: Time,
    /// Estimate of congestion from 0 to 1, and its time. A cut is by half of it.
    alpha: f64,
    alpha_at: Time,
}

impl Default for RateControl {
    fn default() -> Self {
        let infinite = f64::INFINITY;
        RateControl {
            limit: infinite,
            target: infinite,
            step_at: Time::MAX,
            cut_at: Time::MAX,
            next_step: Time::ZERO,
            alpha: 1.0,
            alpha_at: Time::MAX,
        }
    }
}

impl RateControl {
    /// Performs the increases that are due, and returns the rate from `now` on.
    pub(crate) fn advance(&mut self, now: Time, line: f64, recovery: &RateRecovery) -> f64 {
        while self.step_at <= now {
            let step = (self.limit + recovery.step * line).max((self.limit + self.target) / 2.0);
            self.limit = step.min(line);
            let whole = self.limit >= line * (1.0 - 1e-3);
            if whole {
                self.limit = line;
            }
            let interval = recovery.interval.max(LEAST_INTERVAL);
            self.step_at = if whole { Time::MAX } else { self.step_at + interval };
        }
        self.limit.min(line)
    }

    /// Returns the times of the next cut and of the next increase, for a flow limited at a port with `demand` times
    /// its capacity. The cut takes effect when the queue built until then has drained.
    fn congested(
        &self,
        now: Time,
        (demand, share): (f64, f64),
        round_trip: f64,
        (law, recovery): (&QueueConstants, &RateRecovery),
    ) -> (Time, Time) {
        let excess = demand - 1.0;
        let built = law.standing / excess;
        let queue = law.standing + excess * round_trip;
        let drained = queue / (1.0 - rate_after_cuts(self.alpha_by(now, recovery), share)).max(1e-3);
        let after = |span: f64| now + Duration::from_ps(span as u64);
        (after(built + drained), after(built) + recovery.interval)
    }

    /// Returns the estimate of congestion, which decays over time.
    fn alpha_by(&self, now: Time, recovery: &RateRecovery) -> f64 {
        if self.alpha_at == Time::MAX {
            return self.alpha;
        }
        let span = (now.as_ps() - self.alpha_at.as_ps()) as f64;
        self.alpha * decay(span / recovery.estimate_decay.as_ps() as f64)
    }

    /// Cuts the rate, for a flow that is limited to `rate`.
    fn cut(&mut self, now: Time, rate: f64, line: f64, recovery: &RateRecovery) {
        self.alpha = (self.alpha_by(now, recovery) + ALPHA_GAIN).min(1.0);
        self.alpha_at = now;
        self.target = self.limit.min(line);
        self.limit = rate * rate_after_cuts(self.alpha, rate / line);
        self.step_at = self.next_step;
        self.cut_at = Time::MAX;
    }
}

/// Returns the fraction of its rate that cuts leave to a flow with this share of the line. Each cut is by half of the
/// estimate. The number of cuts is the number of marked packets until notifications arrive: at a half of the line,
/// one more than necessary.
fn rate_after_cuts(alpha: f64, share: f64) -> f64 {
    let cuts = (CUTS_OF_LINE * share).min(MOST_CUTS);
    let (first, second) = (cuts.min(1.0), (cuts - 1.0).max(0.0));
    (1.0 - first * alpha / 2.0) * (1.0 - second * alpha / 2.0)
}

/// Flows whose rate control is below full rate.
pub(crate) struct RecoveringFlows {
    flows: Vec<FlowId>,
    /// Time of the next step.
    pub(crate) due: Time,
}

impl Default for RecoveringFlows {
    fn default() -> Self {
        RecoveringFlows { flows: Vec::new(), due: Time::MAX }
    }
}

impl RecoveringFlows {
    /// Records a new rate of a flow that others limit at a switch port.
    pub(crate) fn note(
        &mut self,
        now: Time,
        (flow, service): (FlowId, &Service),
        (lane, recovery): (&mut SendQueue, &RateRecovery),
        (solver, at): (&Solver, ResourceId),
        law: &QueueConstants,
    ) {
        let pace = &mut lane.pace;
        if now < pace.next_step || pace.cut_at != Time::MAX {
            return;
        }
        let demand = solver.demand_now(at);
        if demand < 1.0 + LEAST_EXCESS {
            return;
        }
        let round_trip = 2.0 * service.size.base.as_ps() as f64;
        let (cut_at, step_at) =
            pace.congested(now, (demand, solver.rate(flow) / service.max_rate), round_trip, (law, recovery));
        // If the queue lasts until the next increase, the cut has no visible effect.
        if cut_at < step_at {
            (pace.cut_at, pace.next_step) = (cut_at, step_at);
            self.due = self.due.min(cut_at);
            self.flows.push(flow);
        }
    }

    /// Records the start of a flow on a queue pair that was limited before.
    pub(crate) fn begins(&mut self, flow: FlowId, pace: &mut RateControl) {
        pace.cut_at = Time::MAX;
        if pace.step_at != Time::MAX {
            self.flows.push(flow);
            self.due = self.due.min(pace.step_at);
        }
    }

    /// Performs the due steps of all flows.
    pub(crate) fn tick(
        &mut self,
        now: Time,
        (services, lanes): (&[Option<Service>], &mut [SendQueue]),
        (models, at_switch): (&[Model], &[bool]),
        solver: &mut Solver,
    ) {
        let mut due = Time::MAX;
        self.flows.sort_unstable();
        self.flows.dedup();
        self.flows.retain(|&flow| {
            let Some(service) = &services[flow as usize] else { return false };
            let Some(recovery) = models[usize::from(service.group)].recovery else { return false };
            let pace = &mut lanes[service.lane as usize].pace;
            pace.advance(now, service.max_rate, &recovery);
            if pace.cut_at <= now {
                let congested = |at: ResourceId| solver.demand_now(at) >= 1.0 + LEAST_EXCESS;
                if solver.limiting(flow).is_some_and(|at| at_switch[at as usize] && congested(at)) {
                    pace.cut(now, solver.rate(flow), service.max_rate, &recovery);
                } else {
                    pace.cut_at = Time::MAX;
                }
            }
            solver.set_limit(flow, pace.limit.min(service.max_rate));
            let next = pace.step_at.min(pace.cut_at);
            due = due.min(next);
            next != Time::MAX
        });
        self.due = due;
    }
}

#[cfg(test)]
mod tests {
    use pathweave_policy::fluid::ControlModel;

    use super::*;

    const LINE: f64 = 0.0125;

    /// Two senders at a port of their own rate. The marking threshold of 36 us is reached after 36 us, 10 us more are
    /// queued until notifications arrive, and the queue drains while two cuts by half leave a quarter. One timer
    /// after the cut, the rate is half-way back.
    #[test]
    fn a_cut_by_hand() {
        let (recovery, law) = (RateRecovery::BY_TIMER, QueueConstants::of(&ControlModel::BY_NOTIFICATIONS));
        let us = |us: f64| Time::from_ps((us * 1e6) as u64);
        let mut pace = RateControl::default();
        let (cut_at, step_at) = pace.congested(Time::ZERO, (2.0, 0.5), 10e6, (&law, &recovery));
        assert_eq!(step_at, us(36.0 + 300.0));
        assert!((cut_at.as_ps() as f64 - (36.0 + 46.0 / 0.75) * 1e6).abs() < 2.0, "{cut_at:?}");
        pace.next_step = step_at;
        pace.cut(cut_at, LINE / 2.0, LINE, &recovery);
        assert!((pace.limit / LINE - 0.125).abs() < 1e-9, "{pace:?}");
        assert_eq!(pace.advance(us(335.0), LINE, &recovery), pace.limit);
        assert!((pace.advance(us(336.0), LINE, &recovery) / LINE - 0.5625).abs() < 1e-9, "{pace:?}");
        // The estimate decays by a factor of e per 256 us since the cut.
        let faded = pace.alpha_by(cut_at + recovery.estimate_decay, &recovery);
        assert!((faded - 0.368).abs() < 0.006, "{faded}");
        // It recovers the full rate and stays there.
        assert_eq!(pace.advance(us(9e3), LINE, &recovery), LINE);
        assert_eq!(pace.step_at, Time::MAX);
    }

    /// A flow with a small share has few packets to be marked. If the queue of many flows lasts for a timer's
    /// interval, no link idles.
    #[test]
    fn many_slow_flows_leave_no_room() {
        assert_eq!([0.5, 0.25, 0.125].map(|share| rate_after_cuts(1.0, share)), [0.25, 0.5, 0.75]);
        let (recovery, law) = (RateRecovery::BY_TIMER, QueueConstants::of(&ControlModel::BY_NOTIFICATIONS));
        let (cut_at, step_at) =
            RateControl::default().congested(Time::ZERO, (16.0, 1.0 / 16.0), 10e6, (&law, &recovery));
        assert!(cut_at > step_at);
    }
}
