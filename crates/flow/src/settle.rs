//! The end of an instant: rates are found, and everything that depends on them is brought up to date.

use pathweave_units::Time;

use crate::engine::Engine;

impl Engine<'_> {
    /// Finds all rates, and when flows end with them.
    pub(crate) fn settle(&mut self, now: Time) {
        self.solver.solve();
        let mut flows = std::mem::take(&mut self.touched_flows);
        self.solver.take_touched_flows(&mut flows);
        for &flow in &flows {
            // Those that ended are gone.
            let Some(Some(mut service)) = self.services.get(flow as usize).copied() else { continue };
            service.advance(now);
            let rate = self.solver.rate(flow);
            if rate != service.rate
                && let Some((from, to)) = self.network.pairs[service.pair as usize].gauges
            {
                self.levels[from as usize][0].change(now, rate - service.rate);
                self.levels[to as usize][1].change(now, rate - service.rate);
            }
            service.rate = rate;
            if let Some(recovery) = self.models[usize::from(service.group)].recovery {
                self.recovering.note(now, (flow, &mut service), &recovery, &mut self.solver);
            }
            self.services[flow as usize] = Some(service);
            match service.ends() {
                Some(end) => self.completions.set(flow, end),
                None => self.completions.remove(flow),
            }
        }
        self.touched_flows = flows;
        let mut resources = std::mem::take(&mut self.touched_resources);
        self.solver.take_touched_resources(&mut resources);
        for &resource in &resources {
            let at = resource as usize;
            let (limited, load) = (self.solver.limited(resource), self.solver.load(resource));
            self.queues[at].advance(now, self.network.capacity[at], &self.law);
            self.queues[at].note(limited, load);
            if self.network.at_switch[at] {
                self.marks.look(now, resource, limited, self.solver.demand(resource));
            }
        }
        self.touched_resources = resources;
    }
}
