//! End of an event time: solves for the rates and updates everything that depends on them.

use pathweave_units::Time;

use crate::engine::Engine;

impl Engine<'_> {
    /// Solves for all rates and updates the end times of flows.
    pub(crate) fn settle(&mut self, now: Time) {
        let Engine { solver, services, network, levels, levels_of_pairs, models, .. } = self;
        let Engine { recovering, slow, completions, lanes, .. } = self;
        solver.solve();
        solver.take_touched_flows(&mut self.touched_flows);
        for &flow in &self.touched_flows {
            // Skips flows that have ended.
            let Some(Some(service)) = services.get_mut(flow as usize) else { continue };
            service.advance(now);
            let rate = solver.rate(flow);
            if rate != service.rate
                && let Some((from, to)) = service.gauges
            {
                levels[from as usize][0].change(now, rate - service.rate);
                levels[to as usize][1].change(now, rate - service.rate);
                levels_of_pairs[service.pair as usize].change(now, rate - service.rate);
            }
            service.rate = rate;
            if let Some(recovery) = models[usize::from(service.group)].recovery {
                let limiting = || solver.limiting(flow).filter(|&at| network.at_switch[at as usize]);
                if self.validity.open {
                    slow.note(now, (flow, service), solver);
                } else if let Some(at) = limiting() {
                    let lane = &mut lanes[service.lane as usize];
                    recovering.note(now, (flow, service), (lane, &recovery), (solver, at), &self.law);
                }
            }
            match service.end_time() {
                Some(end) => completions.set(flow, end),
                None => completions.remove(flow),
            }
        }
        solver.take_touched_resources(&mut self.touched_resources);
        for &resource in &self.touched_resources {
            let at = resource as usize;
            let limited = solver.limited(resource);
            self.queues[at].advance(now, network.capacity[at], &self.law);
            self.queues[at].note(limited, solver.load(resource));
            if network.at_switch[at] {
                self.validity.record_port(now, resource, limited, solver.demand(resource));
                if limited >= 2 && self.validity.compares_paths() {
                    let services = solver.users(resource).filter_map(|flow| services[flow as usize].as_ref());
                    self.validity.paths(services.map(|service| service.size.base.as_ps()));
                }
            }
        }
    }
}
