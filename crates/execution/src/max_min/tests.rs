use pathweave_units::Rng;

use super::reference::{Demand, water_filling};
use super::*;

fn uses(resources: &[u32]) -> Vec<Use> {
    resources.iter().map(|&resource| Use { resource, share: 1.0 }).collect()
}

/// Host 1 of a star sends to two hosts, each at half of its link's rate. Host 0 takes the rest at the second
/// receiver.
#[test]
fn three_flows_by_hand() {
    let mut solver = Solver::default();
    let [up0, up1, down2, down3] = [10.0, 10.0, 10.0, 10.0].map(|capacity| solver.add_resource(capacity));
    let a = solver.add(&uses(&[up0, down2]), 10.0, 0.0);
    let b = solver.add(&uses(&[up1, down2]), 10.0, 0.0);
    let c = solver.add(&uses(&[up1, down3]), 10.0, 0.0);
    solver.solve();
    assert_eq!([a, b, c].map(|flow| solver.rate(flow)), [5.0, 5.0, 5.0]);
    solver.remove(b);
    solver.solve();
    assert_eq!([a, c].map(|flow| solver.rate(flow)), [10.0, 10.0]);
    let d = solver.add(&uses(&[up0, down3]), 2.0, 0.0);
    solver.solve();
    assert_eq!([a, c, d].map(|flow| solver.rate(flow)), [8.0, 8.0, 2.0]);
    solver.set_capacity(down3, 1.0);
    solver.solve();
    assert_eq!([a, c, d].map(|flow| solver.rate(flow)), [9.5, 0.5, 0.5]);
}

/// Two leaves with uplinks of 100 and 25, and two senders of 100. Sprayed evenly, the slow link limits the total to
/// 50. Sprayed in proportion, 125 get through.
#[test]
fn a_slow_link_binds_what_is_sprayed_over_it_evenly() {
    for (shares, all) in [([0.5, 0.5], 50.0), ([0.8, 0.2], 125.0)] {
        let mut solver = Solver::default();
        let links = [100.0, 25.0].map(|capacity| solver.add_resource(capacity));
        let hosts = [100.0, 100.0].map(|capacity| solver.add_resource(capacity));
        let flows = hosts.map(|host| {
            let mut uses = uses(&[host]);
            uses.extend(links.iter().zip(shares).map(|(&resource, share)| Use { resource, share }));
            solver.add(&uses, 100.0, 0.0)
        });
        solver.solve();
        let sum: f64 = flows.iter().map(|&flow| solver.rate(flow)).sum();
        assert!((sum - all).abs() < 1e-9, "{sum}");
    }
}

/// Two flows in opposite directions on one link. Each leaves room for the acknowledgements of the other.
#[test]
fn acknowledgements_are_taken_off_the_way_back() {
    let mut solver = Solver::default();
    let [there, back] = [10.0, 10.0].map(|capacity| solver.add_resource(capacity));
    solver.join(there, back);
    let flows = [there, back].map(|link| solver.add(&uses(&[link]), 10.0, 0.02));
    solver.solve();
    for flow in flows {
        assert!((solver.rate(flow) - 10.0 / 1.02).abs() < 10.0 * EPSILON, "{}", solver.rate(flow));
    }
}

/// Flows start, end, and change their limits and capacities, on a network of hosts and links with all kinds of
/// shares. After each change every rate must equal that of water filling from scratch.
#[test]
fn random_changes_against_water_filling() {
    // Links with two resources, and links with one resource for both directions.
    for (seed, acks, directions) in [(1, 0.0, 2), (2, 0.0, 2), (3, 0.02, 2), (4, 0.02, 2), (5, 0.02, 1)] {
        let way_back = |id: ResourceId| id ^ (directions - 1);
        let mut rng = Rng::for_component(seed, "solver", 0);
        let mut solver = Solver::default();
        let mut capacities: Vec<f64> = (0..24).map(|_| 1.0 + 9.0 * rng.unit_f64()).collect();
        let ids: Vec<_> = capacities.iter().map(|&capacity| solver.add_resource(capacity)).collect();
        let reverse: Vec<_> = ids.iter().map(|&id| Some(way_back(id))).collect();
        ids.iter().for_each(|&id| solver.join(id, way_back(id)));
        let mut flows: Vec<(FlowId, Demand)> = Vec::new();
        let mut worst = 0.0f64;
        for _ in 0..1_500 {
            match rng.below(8) {
                0..4 if flows.len() < 40 => {
                    let mut own = ids.clone();
                    rng.shuffle(&mut own);
                    own.truncate(1 + rng.below(5) as usize);
                    let share =
                        |rng: &mut Rng| if rng.below(2) == 0 { 1.0 } else { 0.1 + 0.9 * rng.unit_f64() };
                    let uses: Vec<_> =
                        own.iter().map(|&resource| Use { resource, share: share(&mut rng) }).collect();
                    let limit = if rng.below(3) == 0 { rng.unit_f64() + 0.01 } else { 10.0 };
                    let id = solver.add(&uses, limit, acks);
                    flows.push((id, Demand { uses, limit, acks }));
                }
                4..6 if !flows.is_empty() => {
                    let (id, _) = flows.swap_remove(rng.below(flows.len() as u32) as usize);
                    solver.remove(id);
                }
                6 if !flows.is_empty() => {
                    let which = rng.below(flows.len() as u32) as usize;
                    let limit = 0.01 + 3.0 * rng.unit_f64();
                    flows[which].1.limit = limit;
                    solver.set_limit(flows[which].0, limit);
                }
                _ => {
                    let which = rng.below(24) as usize;
                    capacities[which] = 1.0 + 9.0 * rng.unit_f64();
                    solver.set_capacity(ids[which], capacities[which]);
                }
            }
            solver.solve();
            let demands: Vec<_> = flows.iter().map(|(_, demand)| demand.clone()).collect();
            let exact = water_filling(&demands, &capacities, &reverse);
            for ((id, demand), exact) in flows.iter().zip(&exact) {
                let error = (solver.rate(*id) - exact).abs() / exact;
                worst = worst.max(error);
                assert!(error < 20.0 * EPSILON, "{} for {exact} of {demand:?}", solver.rate(*id));
            }
            for (&id, &capacity) in ids.iter().zip(&capacities) {
                assert!(
                    solver.load(id) <= capacity * (1.0 + 2.0 * EPSILON),
                    "{} of {capacity}",
                    solver.load(id)
                );
            }
        }
        assert_eq!(solver.cut_short, 0);
        assert!(worst > 0.0, "relaxation stops short of the last bit");
    }
}
