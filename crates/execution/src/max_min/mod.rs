//! Max-min fair rates of flows that share resources, computed by relaxation.
//!
//! Each resource has a *level*: the rate that it grants each flow that it limits, or infinity. The rate of a flow is
//! the minimum of its own limit and the levels of its resources. After a change, the levels of the affected resources
//! are recomputed from what other resources allow their flows. The resources that this can affect are queued next,
//! until no level moves by more than [`EPSILON`]. This is the distributed algorithm of Bertsekas and Gallager, and of
//! Charny, with a work queue. The cost of a change depends on what it affects and not on the size of the network.
//!
//! Acknowledgements are not users of a resource. They are subtracted from its capacity. As users they would tie their
//! flow to the level of the reverse direction.

#[cfg(test)]
mod reference;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;

use pathweave_units::Rate;
use smallvec::SmallVec;

/// Relative change of a level or rate below which it is not updated.
pub const EPSILON: f64 = 0.001;

/// Relative gap below its limit beyond which a flow counts as limited by others.
const NOTICED: f64 = 0.02;

/// Largest number of resources processed per solution. The rest is processed with the next one.
const MOST_LOOKS: usize = 1_000_000;

/// Relative excess of the load over a capacity that is ignored as rounding error.
const ROUNDING: f64 = 1e-9;

/// Returns a rate as a capacity in bytes per picosecond.
pub fn bytes_per_ps(rate: Rate) -> f64 {
    rate.as_bps() as f64 / 8e12
}

/// Index of a resource.
pub type ResourceId = u32;
/// Index of a flow. It is reused after the flow has been removed.
pub type FlowId = u32;

/// Use of a resource by a flow.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Use {
    /// The resource.
    pub resource: ResourceId,
    /// Bytes over the resource for each byte of the flow. Above 0.
    pub share: f64,
}

/// Use of a resource, with the index of the flow among the resource's users.
#[derive(Clone, Copy, Debug)]
struct UseSlot {
    resource: ResourceId,
    place: u32,
    share: f64,
}

#[derive(Clone, Copy, Debug)]
struct User {
    flow: FlowId,
    /// Index of this use among those of the flow.
    index: u32,
    share: f64,
    /// Copy of the flow's limit, so that most flows need not be accessed.
    limit: f64,
    others: Others,
}

/// Other resources of a flow.
#[derive(Clone, Copy, Debug)]
enum Others {
    None,
    One(ResourceId),
    Several,
}

impl Others {
    /// Returns the resources other than the one at this index.
    fn of(uses: &[Use], index: usize) -> Self {
        match uses {
            [_] => Others::None,
            [a, b] => Others::One(if index == 0 { b.resource } else { a.resource }),
            _ => Others::Several,
        }
    }
}

#[derive(Clone, Debug, Default)]
struct Flow {
    uses: SmallVec<[UseSlot; 4]>,
    rate: f64,
    limit: f64,
    /// Bytes of acknowledgements per byte.
    acks: f64,
    touched: bool,
}

#[derive(Clone, Debug)]
struct Resource {
    capacity: f64,
    /// Resource of the reverse direction, which carries the acknowledgements. It is the resource itself if both
    /// directions share one.
    reverse: Option<ResourceId>,
    load: f64,
    acks: f64,
    /// Capacity without acknowledgements at the last recomputation.
    seen: f64,
    users: Vec<User>,
    /// Number of users that the resource limits.
    limited: u32,
    /// Rate of all users without this resource, relative to the available capacity.
    demand: f64,
    queued: bool,
    touched: bool,
}

impl Resource {
    fn available_capacity(&self) -> f64 {
        (self.capacity - self.acks).max(0.0)
    }
    fn is_overloaded(&self) -> bool {
        self.load > self.available_capacity() * (1.0 + ROUNDING) + ROUNDING * self.capacity
    }
}

/// Flows and the resources they share. Rates are in the unit of capacities, usually bytes per picosecond.
#[derive(Clone, Debug, Default)]
pub struct Solver {
    resources: Vec<Resource>,
    /// Rate that a resource grants each flow that it limits, by resource.
    levels: Vec<f64>,
    flows: Vec<Flow>,
    free: Vec<FlowId>,
    queue: VecDeque<ResourceId>,
    /// Flows whose rate has changed since the last call of `take_touched_flows`.
    touched_flows: Vec<FlowId>,
    /// Resources whose load or level has changed since the last call of `take_touched_resources`.
    touched_resources: Vec<ResourceId>,
    scratch: Vec<(f64, f64)>,
    /// Number of solutions that were cut short.
    pub cut_short: u64,
}

impl Solver {
    /// Adds a resource. Its reverse direction, if any, is set with [`Solver::join`].
    pub fn add_resource(&mut self, capacity: f64) -> ResourceId {
        let id = self.resources.len() as ResourceId;
        self.resources.push(Resource {
            capacity,
            reverse: None,
            load: 0.0,
            acks: 0.0,
            seen: capacity,
            users: Vec::new(),
            limited: 0,
            demand: 0.0,
            queued: false,
            touched: false,
        });
        self.levels.push(f64::INFINITY);
        id
    }

    /// Makes two resources the two directions of a link.
    pub fn join(&mut self, a: ResourceId, b: ResourceId) {
        self.resources[a as usize].reverse = Some(b);
        self.resources[b as usize].reverse = Some(a);
    }

    /// Removes all resources. There must be no flow with a resource.
    pub fn clear(&mut self) {
        self.resources.clear();
        self.levels.clear();
        self.queue.clear();
        self.touched_resources.clear();
    }

    /// Adds a flow. Its rate is valid after [`Solver::solve`].
    pub fn add(&mut self, uses: &[Use], limit: f64, acks: f64) -> FlowId {
        let id = self.free.pop().unwrap_or_else(|| {
            self.flows.push(Flow::default());
            self.flows.len() as FlowId - 1
        });
        let flow = &mut self.flows[id as usize];
        flow.limit = limit;
        flow.acks = acks;
        flow.rate = 0.0;
        flow.uses.clear();
        self.enter(id, uses);
        id
    }

    /// Moves a flow to other resources.
    pub fn move_to(&mut self, id: FlowId, uses: &[Use]) {
        self.leave(id);
        self.enter(id, uses);
    }

    fn enter(&mut self, id: FlowId, uses: &[Use]) {
        let mut level = f64::INFINITY;
        let flow = &mut self.flows[id as usize];
        let limit = flow.limit;
        for (index, &Use { resource, share }) in uses.iter().enumerate() {
            level = level.min(self.levels[resource as usize]);
            let at = &mut self.resources[resource as usize];
            let place = at.users.len() as u32;
            let others = Others::of(uses, index);
            at.users.push(User { flow: id, index: index as u32, share, limit, others });
            flow.uses.push(UseSlot { resource, place, share });
        }
        // A flow without limiting resources has the rate of its own limit, which must be finite.
        self.set_rate(id, limit.min(level));
        for &Use { resource, .. } in uses {
            self.mark_limiting(resource);
        }
    }

    /// Removes a flow.
    pub fn remove(&mut self, id: FlowId) {
        self.leave(id);
        self.free.push(id);
    }

    fn leave(&mut self, id: FlowId) {
        self.set_rate(id, 0.0);
        while let Some(UseSlot { resource, place, .. }) = self.flows[id as usize].uses.pop() {
            let at = &mut self.resources[resource as usize];
            at.users.swap_remove(place as usize);
            if let Some(moved) = at.users.get(place as usize) {
                self.flows[moved.flow as usize].uses[moved.index as usize].place = place;
            }
            self.mark_limiting(resource);
        }
    }

    /// Sets the largest rate of a flow.
    pub fn set_limit(&mut self, id: FlowId, limit: f64) {
        let flow = &mut self.flows[id as usize];
        if flow.limit == limit {
            return;
        }
        flow.limit = limit;
        let level = flow.uses.iter().map(|held| self.levels[held.resource as usize]);
        let rate = limit.min(level.fold(f64::INFINITY, f64::min));
        self.copy_limit(id);
        self.set_rate(id, rate);
        for index in 0..self.flows[id as usize].uses.len() {
            self.mark_limiting(self.flows[id as usize].uses[index].resource);
        }
    }

    /// Raises the limit of a flow, to at least its rate. Rates stay as they are until other flows leave.
    pub fn set_higher_limit(&mut self, id: FlowId, limit: f64) {
        let flow = &mut self.flows[id as usize];
        debug_assert!(limit >= flow.rate);
        flow.limit = limit;
        self.copy_limit(id);
    }

    /// Copies a flow's limit to its resources.
    fn copy_limit(&mut self, id: FlowId) {
        let flow = &self.flows[id as usize];
        for &UseSlot { resource, place, .. } in &flow.uses {
            self.resources[resource as usize].users[place as usize].limit = flow.limit;
        }
    }

    /// Sets the capacity of a resource.
    pub fn set_capacity(&mut self, resource: ResourceId, capacity: f64) {
        let at = &mut self.resources[resource as usize];
        if at.capacity != capacity {
            at.capacity = capacity;
            self.look_if_it_matters(resource);
        }
    }

    fn look_if_it_matters(&mut self, resource: ResourceId) {
        let at = &self.resources[resource as usize];
        if self.levels[resource as usize].is_finite() || at.is_overloaded() {
            self.mark(resource);
        }
    }

    fn mark_limiting(&mut self, resource: ResourceId) {
        if self.levels[resource as usize].is_finite() {
            self.mark(resource);
        }
    }

    fn mark(&mut self, resource: ResourceId) {
        let at = &mut self.resources[resource as usize];
        if !at.queued {
            at.queued = true;
            self.queue.push_back(resource);
        }
    }

    fn set_rate(&mut self, id: FlowId, rate: f64) {
        let flow = &mut self.flows[id as usize];
        let change = rate - flow.rate;
        if change == 0.0 {
            return;
        }
        flow.rate = rate;
        if !flow.touched {
            flow.touched = true;
            self.touched_flows.push(id);
        }
        let acks = flow.acks;
        for index in 0..flow.uses.len() {
            let UseSlot { resource, share, .. } = self.flows[id as usize].uses[index];
            let at = &mut self.resources[resource as usize];
            // Without users the load is exactly 0, regardless of rounding errors.
            at.load = if at.users.len() == 1 && rate == 0.0 { 0.0 } else { at.load + share * change };
            if !at.touched {
                at.touched = true;
                self.touched_resources.push(resource);
            }
            let (overloaded, reverse) = (at.is_overloaded(), at.reverse);
            if overloaded && self.levels[resource as usize].is_infinite() {
                self.mark(resource);
            }
            if let Some(reverse) = reverse.filter(|_| acks > 0.0) {
                let back = &mut self.resources[reverse as usize];
                back.acks = (back.acks + share * change * acks).max(0.0);
                if (back.available_capacity() - back.seen).abs() > EPSILON * back.capacity {
                    self.look_if_it_matters(reverse);
                }
            }
        }
    }

    /// Solves for all rates.
    pub fn solve(&mut self) {
        for _ in 0..MOST_LOOKS {
            let Some(resource) = self.queue.pop_front() else { return };
            self.resources[resource as usize].queued = false;
            self.recompute_level(resource);
        }
        self.cut_short += 1;
    }

    /// Recomputes the level of a resource from what the others allow its flows.
    fn recompute_level(&mut self, resource: ResourceId) {
        let mut allowed = std::mem::take(&mut self.scratch);
        allowed.clear();
        let at = &self.resources[resource as usize];
        let (room, before) = (at.available_capacity(), self.levels[resource as usize]);
        let mut sum = 0.0;
        allowed.extend(at.users.iter().map(|user| {
            let most = user.limit.min(match user.others {
                Others::None => f64::INFINITY,
                Others::One(other) => self.levels[other as usize],
                Others::Several => self.level_of_others(user),
            });
            sum += user.share * most;
            (most, user.share)
        }));
        let (level, limited) =
            if sum <= room * (1.0 + ROUNDING) { (f64::INFINITY, 0) } else { level_of(&allowed, room) };
        let at = &mut self.resources[resource as usize];
        at.seen = room;
        at.limited = limited;
        at.demand = sum / room.max(f64::MIN_POSITIVE);
        if !at.touched {
            at.touched = true;
            self.touched_resources.push(resource);
        }
        if has_moved(before, level) {
            self.levels[resource as usize] = level;
            self.spread(resource, before.min(level), &allowed);
        }
        self.scratch = allowed;
    }

    /// Returns the smallest level of the flow's other resources.
    fn level_of_others(&self, user: &User) -> f64 {
        let uses = self.flows[user.flow as usize].uses.iter().enumerate();
        let others = uses.filter(|(index, _)| *index != user.index as usize);
        others.map(|(_, held)| self.levels[held.resource as usize]).fold(f64::INFINITY, f64::min)
    }

    /// Propagates a moved level: updates the rates of the resource's flows, and queues their other resources that it
    /// affects.
    fn spread(&mut self, resource: ResourceId, lower: f64, allowed: &[(f64, f64)]) {
        let level = self.levels[resource as usize];
        for (place, &(most, _)) in allowed.iter().enumerate() {
            let User { flow: id, others, .. } = self.resources[resource as usize].users[place];
            let rate = most.min(level);
            if has_moved(self.flows[id as usize].rate, rate) {
                self.set_rate(id, rate);
            }
            match others {
                Others::None => {}
                Others::One(other) => self.queue_if_affected(other, resource, lower),
                Others::Several => {
                    for index in 0..self.flows[id as usize].uses.len() {
                        self.queue_if_affected(self.flows[id as usize].uses[index].resource, resource, lower);
                    }
                }
            }
        }
    }

    /// Queues `other` if the move of the level of `resource`, whose smaller value is `lower`, affects it. That is the
    /// case if its own level is higher.
    fn queue_if_affected(&mut self, other: ResourceId, resource: ResourceId, lower: f64) {
        let level = self.levels[other as usize];
        if other != resource && level.is_finite() && lower < level {
            self.mark(other);
        }
    }

    /// Returns the rate of a flow.
    pub fn rate(&self, id: FlowId) -> f64 {
        self.flows[id as usize].rate
    }

    /// Returns the largest rate of a flow, independent of shared resources.
    pub fn limit(&self, id: FlowId) -> f64 {
        self.flows[id as usize].limit
    }

    /// Returns the resource that limits a flow to less than 98 % of its own limit, if any.
    pub fn limiting(&self, id: FlowId) -> Option<ResourceId> {
        let flow = &self.flows[id as usize];
        let levels = flow.uses.iter().map(|held| (held.resource, self.levels[held.resource as usize]));
        let lowest = levels.min_by(|a, b| a.1.total_cmp(&b.1));
        lowest.filter(|(_, level)| *level < flow.limit * (1.0 - NOTICED)).map(|(resource, _)| resource)
    }

    /// Returns the flows of a resource.
    pub fn users(&self, resource: ResourceId) -> impl Iterator<Item = FlowId> + '_ {
        self.resources[resource as usize].users.iter().map(|user| user.flow)
    }

    /// Returns the number of flows that a resource limits.
    pub fn limited(&self, resource: ResourceId) -> u32 {
        self.resources[resource as usize].limited
    }

    /// Returns the rate that the flows of a resource would have without it, relative to the available capacity. As of
    /// the last recomputation.
    pub fn demand(&self, resource: ResourceId) -> f64 {
        self.resources[resource as usize].demand
    }

    /// Returns the same ratio with the current rates.
    pub fn demand_now(&self, resource: ResourceId) -> f64 {
        let at = &self.resources[resource as usize];
        let of = |user: &User| user.share * user.limit.min(self.level_of_others(user));
        at.users.iter().map(of).sum::<f64>() / at.available_capacity().max(f64::MIN_POSITIVE)
    }

    /// Returns the rate at which flows send over a resource.
    pub fn load(&self, resource: ResourceId) -> f64 {
        self.resources[resource as usize].load.max(0.0)
    }

    /// Takes the flows whose rate may have changed since the last call, including removed ones.
    pub fn take_touched_flows(&mut self, into: &mut Vec<FlowId>) {
        into.clear();
        std::mem::swap(into, &mut self.touched_flows);
        into.iter().for_each(|&id| self.flows[id as usize].touched = false);
    }

    /// Takes the resources whose load or level may have changed since the last call.
    pub fn take_touched_resources(&mut self, into: &mut Vec<ResourceId>) {
        into.clear();
        std::mem::swap(into, &mut self.touched_resources);
        into.iter().for_each(|&id| self.resources[id as usize].touched = false);
    }
}

/// Returns the level at which flows fill the room, and the number of flows that it limits. `allowed` has the largest
/// rate and the share of each flow. Without the level, the flows must exceed the room.
fn level_of(allowed: &[(f64, f64)], room: f64) -> (f64, u32) {
    let mut level = 0.0;
    loop {
        // Flows that cannot use the level take their largest rate.
        let (mut taken, mut sharing, mut limited) = (0.0, 0.0, 0);
        for &(most, share) in allowed {
            if most < level {
                taken += share * most;
            } else {
                sharing += share;
                limited += 1;
            }
        }
        if sharing == 0.0 {
            return (level, limited);
        }
        let next = ((room - taken) / sharing).max(0.0);
        if next <= level * (1.0 + 1e-12) {
            return (next, limited);
        }
        level = next;
    }
}

/// Returns true if the change exceeds rounding errors and [`EPSILON`].
fn has_moved(before: f64, after: f64) -> bool {
    if before.is_infinite() || after.is_infinite() {
        return before != after;
    }
    (before - after).abs() > EPSILON * before.min(after)
}
