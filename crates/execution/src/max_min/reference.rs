//! Rates by water filling from scratch: the reference for the relaxation.

use super::{ResourceId, Use};

/// Flow to be solved.
#[derive(Clone, Debug)]
pub(crate) struct Demand {
    pub(crate) uses: Vec<Use>,
    pub(crate) limit: f64,
    pub(crate) acks: f64,
}

/// Returns the max-min fair rates of flows. All rates grow alike until a limit or a full resource stops some of them,
/// and so on. Acknowledgements are subtracted from the capacity of the `reverse` resource. Rates and acknowledgements
/// depend on each other, so the filling is repeated until nothing moves.
pub(crate) fn water_filling(
    demands: &[Demand],
    capacities: &[f64],
    reverse: &[Option<ResourceId>],
) -> Vec<f64> {
    let mut rates = vec![0.0; demands.len()];
    for _ in 0..200 {
        let mut room = capacities.to_vec();
        for (demand, rate) in demands.iter().zip(&rates) {
            for used in &demand.uses {
                if let Some(back) = reverse[used.resource as usize] {
                    room[back as usize] -= used.share * rate * demand.acks;
                }
            }
        }
        let next = fill(demands, &room);
        let moved = rates.iter().zip(&next).map(|(a, b): (&f64, &f64)| (a - b).abs()).fold(0.0, f64::max);
        rates = next;
        if moved < 1e-13 {
            break;
        }
    }
    rates
}

fn fill(demands: &[Demand], room: &[f64]) -> Vec<f64> {
    let mut rates = vec![None; demands.len()];
    while rates.contains(&None) {
        let mut left = room.to_vec();
        let mut growing = vec![0.0; room.len()];
        for (demand, rate) in demands.iter().zip(&rates) {
            for used in &demand.uses {
                match rate {
                    Some(rate) => left[used.resource as usize] -= used.share * rate,
                    None => growing[used.resource as usize] += used.share,
                }
            }
        }
        let levels = left.iter().zip(&growing).map(|(left, growing)| (left / growing).max(0.0));
        let levels: Vec<f64> = levels.collect();
        let of = |demand: &Demand| {
            let of_uses = demand.uses.iter().map(|used| levels[used.resource as usize]);
            of_uses.fold(demand.limit, f64::min)
        };
        let open = |(_, rate): &(&Demand, &Option<f64>)| rate.is_none();
        let least = demands.iter().zip(&rates).filter(open).map(|(demand, _)| of(demand));
        let least = least.fold(f64::INFINITY, f64::min);
        let stopped: Vec<bool> = demands.iter().map(|demand| of(demand) <= least * (1.0 + 1e-12)).collect();
        for (rate, stopped) in rates.iter_mut().zip(stopped) {
            if rate.is_none() && stopped {
                *rate = Some(least);
            }
        }
    }
    rates.into_iter().map(|rate| rate.expect("all have stopped")).collect()
}
