//! Rate controls that are cut by notifications and get faster by timers. A new connection sends at line rate. Where it is limited
//! its rate is cut to less than its share, by what its estimate of congestion says: by half at first, and by less the longer
//! nothing was congested. It gets back what it had step by step.

use pathweave_policy::fluid::Recovery;
use pathweave_units::{Duration, Time};

use crate::lane::{Lane, Service};
use crate::model::Model;
use crate::queue::{Law, decay};
use crate::solver::{FlowId, ResourceId, Solver};

/// A port whose flows would take less than this beyond what it has, in relation, builds no queue that marks.
const LEAST_EXCESS: f64 = 0.1;

/// Of timers that expire all the time as many steps are made.
const LEAST_INTERVAL: Duration = Duration::from_us(1);
/// Growth of the estimate of congestion while a queue marks.
const GROWN: f64 = 0.04;
/// Cuts of a flow that had the whole line, and of any.
const CUTS_OF_LINE: f64 = 4.0;
const MOST_CUTS: f64 = 2.0;

/// The rate control of a queue pair.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pace {
    /// The most it sends, bytes a picosecond; infinite before it was ever limited.
    pub(crate) limit: f64,
    /// The rate that it returns to.
    target: f64,
    /// The time of the next increase; never where it has all there is.
    step_at: Time,
    /// The time of the next cut; never where nothing is congested.
    cut_at: Time,
    /// After that it gets faster at this time.
    next_step: Time,
    /// Estimate of congestion, 0 to 1, and of when. The next cut is by half of it.
    alpha: f64,
    alpha_at: Time,
}

impl Default for Pace {
    fn default() -> Self {
        let infinite = f64::INFINITY;
        Pace {
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

impl Pace {
    /// Makes the steps that are due, and returns the rate from `now` on.
    pub(crate) fn advance(&mut self, now: Time, line: f64, recovery: &Recovery) -> f64 {
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

    /// It is limited at a port whose flows would take so many times what it has: when its cut tells there, which is when the
    /// queue that they had built by then has drained, and when it gets faster again.
    fn congested(
        &self,
        now: Time,
        (demand, share): (f64, f64),
        round_trip: f64,
        (law, recovery): (&Law, &Recovery),
    ) -> (Time, Time) {
        let excess = demand - 1.0;
        let built = law.standing / excess;
        let queue = law.standing + excess * round_trip;
        let drained = queue / (1.0 - kept(self.alpha_by(now, recovery), share)).max(1e-3);
        let after = |span: f64| now + Duration::from_ps(span as u64);
        (after(built + drained), after(built) + recovery.interval)
    }

    /// The estimate of congestion, which fades.
    fn alpha_by(&self, now: Time, recovery: &Recovery) -> f64 {
        if self.alpha_at == Time::MAX {
            return self.alpha;
        }
        let span = (now.as_ps() - self.alpha_at.as_ps()) as f64;
        self.alpha * decay(span / recovery.forgets.as_ps() as f64)
    }

    /// It is limited to this share.
    fn cut(&mut self, now: Time, rate: f64, line: f64, recovery: &Recovery) {
        self.alpha = (self.alpha_by(now, recovery) + GROWN).min(1.0);
        self.alpha_at = now;
        self.target = self.limit.min(line);
        self.limit = rate * kept(self.alpha, rate / line);
        self.step_at = self.next_step;
        self.cut_at = Time::MAX;
    }
}

/// The part of its rate that cuts leave to a flow with such a share of the line: each is by half of the estimate. There are as many as it has
/// marked packets until its notifications tell, one more than needed where it has half of the line.
fn kept(alpha: f64, share: f64) -> f64 {
    let cuts = (CUTS_OF_LINE * share).min(MOST_CUTS);
    let (first, second) = (cuts.min(1.0), (cuts - 1.0).max(0.0));
    (1.0 - first * alpha / 2.0) * (1.0 - second * alpha / 2.0)
}

/// Flows that get faster.
pub(crate) struct Recovering {
    flows: Vec<FlowId>,
    /// The time of the next step.
    pub(crate) due: Time,
}

impl Default for Recovering {
    fn default() -> Self {
        Recovering { flows: Vec::new(), due: Time::MAX }
    }
}

impl Recovering {
    /// The rate of a flow in service has changed, and others limit it at the port of a switch.
    pub(crate) fn note(
        &mut self,
        now: Time,
        (flow, service): (FlowId, &Service),
        (lane, recovery): (&mut Lane, &Recovery),
        (solver, at): (&Solver, ResourceId),
        law: &Law,
    ) {
        let pace = &mut lane.pace;
        if now < pace.next_step || pace.cut_at != Time::MAX {
            return;
        }
        let demand = solver.demand_now(at);
        if demand < 1.0 + LEAST_EXCESS {
            return;
        }
        let round_trip = 2.0 * service.base.as_ps() as f64;
        let (cut_at, step_at) =
            pace.congested(now, (demand, solver.rate(flow) / service.line), round_trip, (law, recovery));
        // Where the queue lasts until it gets faster, nobody notices.
        if cut_at < step_at {
            (pace.cut_at, pace.next_step) = (cut_at, step_at);
            self.due = self.due.min(cut_at);
            self.flows.push(flow);
        }
    }

    /// A flow begins whose queue pair was limited before.
    pub(crate) fn begins(&mut self, flow: FlowId, pace: &mut Pace) {
        pace.cut_at = Time::MAX;
        if pace.step_at != Time::MAX {
            self.flows.push(flow);
            self.due = self.due.min(pace.step_at);
        }
    }

    /// Flows make their steps.
    pub(crate) fn tick(
        &mut self,
        now: Time,
        (services, lanes): (&[Option<Service>], &mut [Lane]),
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
            pace.advance(now, service.line, &recovery);
            if pace.cut_at <= now {
                let congested = |at: ResourceId| solver.demand_now(at) >= 1.0 + LEAST_EXCESS;
                if solver.limiting(flow).is_some_and(|at| at_switch[at as usize] && congested(at)) {
                    pace.cut(now, solver.rate(flow), service.line, &recovery);
                } else {
                    pace.cut_at = Time::MAX;
                }
            }
            solver.set_limit(flow, pace.limit.min(service.line));
            let next = pace.step_at.min(pace.cut_at);
            due = due.min(next);
            next != Time::MAX
        });
        self.due = due;
    }
}

#[cfg(test)]
mod tests {
    use pathweave_policy::fluid::Control;

    use super::*;

    const LINE: f64 = 0.0125;

    /// Two senders at a port of their own rate: the marking threshold of 36 us is reached after as long, 10 us more come until
    /// notifications tell, and that queue drains while two cuts by half leave a quarter. A timer after the cut it is half-way back.
    #[test]
    fn a_cut_by_hand() {
        let (recovery, law) = (Recovery::BY_TIMER, Law::of(&Control::BY_NOTIFICATIONS));
        let us = |us: f64| Time::from_ps((us * 1e6) as u64);
        let mut pace = Pace::default();
        let (cut_at, step_at) = pace.congested(Time::ZERO, (2.0, 0.5), 10e6, (&law, &recovery));
        assert_eq!(step_at, us(36.0 + 300.0));
        assert!((cut_at.as_ps() as f64 - (36.0 + 46.0 / 0.75) * 1e6).abs() < 2.0, "{cut_at:?}");
        pace.next_step = step_at;
        pace.cut(cut_at, LINE / 2.0, LINE, &recovery);
        assert!((pace.limit / LINE - 0.125).abs() < 1e-9, "{pace:?}");
        assert_eq!(pace.advance(us(335.0), LINE, &recovery), pace.limit);
        assert!((pace.advance(us(336.0), LINE, &recovery) / LINE - 0.5625).abs() < 1e-9, "{pace:?}");
        // The estimate has faded by an e-th each 256 us since the cut.
        let faded = pace.alpha_by(cut_at + recovery.forgets, &recovery);
        assert!((faded - 0.368).abs() < 0.006, "{faded}");
        // It gets all of it back and stays there.
        assert_eq!(pace.advance(us(9e3), LINE, &recovery), LINE);
        assert_eq!(pace.step_at, Time::MAX);
    }

    /// A flow of a small share has few packets to be marked; where the queue of many lasts a timer's time, no link idles.
    #[test]
    fn many_slow_flows_leave_no_room() {
        assert_eq!([0.5, 0.25, 0.125].map(|share| kept(1.0, share)), [0.25, 0.5, 0.75]);
        let (recovery, law) = (Recovery::BY_TIMER, Law::of(&Control::BY_NOTIFICATIONS));
        let (cut_at, step_at) =
            Pace::default().congested(Time::ZERO, (16.0, 1.0 / 16.0), 10e6, (&law, &recovery));
        assert!(cut_at > step_at);
    }
}
