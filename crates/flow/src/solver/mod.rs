//! Rates of flows that share resources: max-min fairness, by relaxation.
//!
//! Each resource has a *level*: the rate that it gives each flow that it limits, or infinity. A flow has the least of its own
//! limit and the levels of its resources. Where something changes, the level of the resources concerned is computed anew from
//! what the other resources allow their flows, and those resources that can notice are looked at next, until nothing moves by
//! more than [`EPSILON`] (the distributed algorithms of Bertsekas and Gallager, and of Charny, with a queue of work). So a
//! change costs what it changes, and not the whole network.
//!
//! Acknowledgements are no users of a resource: they are taken off its capacity. As users they would tie their flow to the
//! level of the way back.

#[cfg(test)]
mod reference;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;

use smallvec::SmallVec;

/// Levels and rates that move by less, in relation to themselves, are left as they are.
pub(crate) const EPSILON: f64 = 0.001;

/// A flow that has less than its limit by more than this, in relation, is limited by others.
const NOTICED: f64 = 0.02;

/// Looks at resources for one solution at most; what is left then is solved with the next.
const MOST_LOOKS: usize = 1_000_000;

/// Load may exceed a capacity by so much, in relation, before anybody looks: rounding.
const ROUNDING: f64 = 1e-9;

/// Index of a resource.
pub(crate) type ResourceId = u32;
/// Index of a flow; used again when a flow has left.
pub(crate) type FlowId = u32;

/// What a flow takes of a resource, for each byte that it sends.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Use {
    pub(crate) resource: ResourceId,
    /// Above 0.
    pub(crate) share: f64,
}

/// A use, with the place of the flow among the resource's users.
#[derive(Clone, Copy, Debug)]
struct Held {
    resource: ResourceId,
    place: u32,
    share: f64,
}

#[derive(Clone, Copy, Debug)]
struct User {
    flow: FlowId,
    /// Which of the flow's uses it is.
    index: u32,
    share: f64,
    /// That of the flow, so that what most flows may have is found without a look at them.
    limit: f64,
    others: Others,
}

/// What else a flow uses.
#[derive(Clone, Copy, Debug)]
enum Others {
    None,
    One(ResourceId),
    Several,
}

impl Others {
    /// Besides the one of this index.
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
    uses: SmallVec<[Held; 4]>,
    rate: f64,
    limit: f64,
    /// Bytes of acknowledgements that come back for a byte.
    acks: f64,
    touched: bool,
}

#[derive(Clone, Debug)]
struct Resource {
    capacity: f64,
    /// The other direction, which carries the acknowledgements of its flows: itself where both are one that stands for them.
    reverse: Option<ResourceId>,
    load: f64,
    acks: f64,
    /// What was left of the capacity when it was last looked at.
    seen: f64,
    users: Vec<User>,
    /// Users that it limits.
    limited: u32,
    /// What all users would take together without it, in relation to the room there is.
    demand: f64,
    queued: bool,
    touched: bool,
}

impl Resource {
    fn room(&self) -> f64 {
        (self.capacity - self.acks).max(0.0)
    }
    fn is_overloaded(&self) -> bool {
        self.load > self.room() * (1.0 + ROUNDING) + ROUNDING * self.capacity
    }
}

/// Flows and the resources they share. Rates are bytes a picosecond, or whatever capacities are.
#[derive(Clone, Debug, Default)]
pub(crate) struct Solver {
    resources: Vec<Resource>,
    /// By resource: the rate that it gives each flow that it limits.
    levels: Vec<f64>,
    flows: Vec<Flow>,
    free: Vec<FlowId>,
    queue: VecDeque<ResourceId>,
    /// Flows whose rate has changed since they were last taken.
    touched_flows: Vec<FlowId>,
    /// Resources whose load or level has.
    touched_resources: Vec<ResourceId>,
    scratch: Vec<(f64, f64)>,
    /// Solutions that were cut short.
    pub(crate) cut_short: u64,
}

impl Solver {
    /// Adds a resource; its other direction is to be named with [`Solver::join`], or is none.
    pub(crate) fn add_resource(&mut self, capacity: f64) -> ResourceId {
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

    /// Two resources are the directions of a link.
    pub(crate) fn join(&mut self, a: ResourceId, b: ResourceId) {
        self.resources[a as usize].reverse = Some(b);
        self.resources[b as usize].reverse = Some(a);
    }

    /// Removes all resources. There must be no flow.
    pub(crate) fn clear(&mut self) {
        self.resources.clear();
        self.levels.clear();
        self.queue.clear();
        self.touched_resources.clear();
    }

    /// A flow begins. Its rate is right after [`Solver::solve`].
    pub(crate) fn add(&mut self, uses: &[Use], limit: f64, acks: f64) -> FlowId {
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

    /// A flow takes other resources from now on.
    pub(crate) fn move_to(&mut self, id: FlowId, uses: &[Use]) {
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
            flow.uses.push(Held { resource, place, share });
        }
        // What limits nobody and has no limit either would be endless.
        self.set_rate(id, limit.min(level));
        for &Use { resource, .. } in uses {
            self.mark_limiting(resource);
        }
    }

    /// A flow ends.
    pub(crate) fn remove(&mut self, id: FlowId) {
        self.leave(id);
        self.free.push(id);
    }

    fn leave(&mut self, id: FlowId) {
        self.set_rate(id, 0.0);
        while let Some(Held { resource, place, .. }) = self.flows[id as usize].uses.pop() {
            let at = &mut self.resources[resource as usize];
            at.users.swap_remove(place as usize);
            if let Some(moved) = at.users.get(place as usize) {
                self.flows[moved.flow as usize].uses[moved.index as usize].place = place;
            }
            self.mark_limiting(resource);
        }
    }

    /// A flow may be no faster than this from now on.
    pub(crate) fn set_limit(&mut self, id: FlowId, limit: f64) {
        let flow = &mut self.flows[id as usize];
        if flow.limit == limit {
            return;
        }
        flow.limit = limit;
        let level = flow.uses.iter().map(|held| self.levels[held.resource as usize]);
        let rate = limit.min(level.fold(f64::INFINITY, f64::min));
        self.tell_limit(id);
        self.set_rate(id, rate);
        for index in 0..self.flows[id as usize].uses.len() {
            self.mark_limiting(self.flows[id as usize].uses[index].resource);
        }
    }

    /// A flow may be no faster than this from now on, which is no slower than it is: nothing changes until others leave.
    pub(crate) fn set_higher_limit(&mut self, id: FlowId, limit: f64) {
        let flow = &mut self.flows[id as usize];
        debug_assert!(limit >= flow.rate);
        flow.limit = limit;
        self.tell_limit(id);
    }

    /// Its resources know the limit of a flow.
    fn tell_limit(&mut self, id: FlowId) {
        let flow = &self.flows[id as usize];
        for &Held { resource, place, .. } in &flow.uses {
            self.resources[resource as usize].users[place as usize].limit = flow.limit;
        }
    }

    /// A resource has another capacity from now on.
    pub(crate) fn set_capacity(&mut self, resource: ResourceId, capacity: f64) {
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
            let Held { resource, share, .. } = self.flows[id as usize].uses[index];
            let at = &mut self.resources[resource as usize];
            // Without users the sum is nothing, whatever rounding has left of it.
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
                if (back.room() - back.seen).abs() > EPSILON * back.capacity {
                    self.look_if_it_matters(reverse);
                }
            }
        }
    }

    /// Finds all rates.
    pub(crate) fn solve(&mut self) {
        for _ in 0..MOST_LOOKS {
            let Some(resource) = self.queue.pop_front() else { return };
            self.resources[resource as usize].queued = false;
            self.look(resource);
        }
        self.cut_short += 1;
    }

    /// Computes the level of a resource from what the others allow its flows.
    fn look(&mut self, resource: ResourceId) {
        let mut allowed = std::mem::take(&mut self.scratch);
        allowed.clear();
        let at = &self.resources[resource as usize];
        let (room, before) = (at.room(), self.levels[resource as usize]);
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

    /// What the other resources of a flow allow it.
    fn level_of_others(&self, user: &User) -> f64 {
        let uses = self.flows[user.flow as usize].uses.iter().enumerate();
        let others = uses.filter(|(index, _)| *index != user.index as usize);
        others.map(|(_, held)| self.levels[held.resource as usize]).fold(f64::INFINITY, f64::min)
    }

    /// The level of a resource has moved: gives its flows their rates, and looks at those of their resources that notice.
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
                Others::One(other) => self.mark_noticing(other, resource, lower),
                Others::Several => {
                    for index in 0..self.flows[id as usize].uses.len() {
                        self.mark_noticing(self.flows[id as usize].uses[index].resource, resource, lower);
                    }
                }
            }
        }
    }

    /// The level of `resource` has moved, from or to `lower`. Another one that its flows use notices if its own level
    /// is higher.
    fn mark_noticing(&mut self, other: ResourceId, resource: ResourceId, lower: f64) {
        let level = self.levels[other as usize];
        if other != resource && level.is_finite() && lower < level {
            self.mark(other);
        }
    }

    /// The rate of a flow.
    pub(crate) fn rate(&self, id: FlowId) -> f64 {
        self.flows[id as usize].rate
    }

    /// What a flow may have at most, whatever it shares.
    pub(crate) fn limit(&self, id: FlowId) -> f64 {
        self.flows[id as usize].limit
    }

    /// The resource that limits a flow by more than a fiftieth of what it may have; `None`: none does.
    pub(crate) fn limiting(&self, id: FlowId) -> Option<ResourceId> {
        let flow = &self.flows[id as usize];
        let levels = flow.uses.iter().map(|held| (held.resource, self.levels[held.resource as usize]));
        let lowest = levels.min_by(|a, b| a.1.total_cmp(&b.1));
        lowest.filter(|(_, level)| *level < flow.limit * (1.0 - NOTICED)).map(|(resource, _)| resource)
    }

    /// The flows of a resource.
    pub(crate) fn users(&self, resource: ResourceId) -> impl Iterator<Item = FlowId> + '_ {
        self.resources[resource as usize].users.iter().map(|user| user.flow)
    }

    /// How many flows a resource limits.
    pub(crate) fn limited(&self, resource: ResourceId) -> u32 {
        self.resources[resource as usize].limited
    }

    /// What the flows of a resource would take together without it, in relation to the room there is.
    pub(crate) fn demand(&self, resource: ResourceId) -> f64 {
        self.resources[resource as usize].demand
    }

    /// The same as of now, whatever has changed since the resource was looked at.
    pub(crate) fn demand_now(&self, resource: ResourceId) -> f64 {
        let at = &self.resources[resource as usize];
        let of = |user: &User| user.share * user.limit.min(self.level_of_others(user));
        at.users.iter().map(of).sum::<f64>() / at.room().max(f64::MIN_POSITIVE)
    }

    /// What its flows send over a resource.
    pub(crate) fn load(&self, resource: ResourceId) -> f64 {
        self.resources[resource as usize].load.max(0.0)
    }

    /// Takes the flows whose rate may have changed since this was last called, those that ended among them.
    pub(crate) fn take_touched_flows(&mut self, into: &mut Vec<FlowId>) {
        into.clear();
        std::mem::swap(into, &mut self.touched_flows);
        into.iter().for_each(|&id| self.flows[id as usize].touched = false);
    }

    /// Takes the resources whose load or level may have changed since.
    pub(crate) fn take_touched_resources(&mut self, into: &mut Vec<ResourceId>) {
        into.clear();
        std::mem::swap(into, &mut self.touched_resources);
        into.iter().for_each(|&id| self.resources[id as usize].touched = false);
    }
}

/// The level at which flows, each with what it may have at most and its share, fill the room; and how many of them it
/// limits. They would overfill it.
fn level_of(allowed: &[(f64, f64)], room: f64) -> (f64, u32) {
    let mut level = 0.0;
    loop {
        // Who may not have the level takes what it may.
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

/// By more than rounding and what does not matter.
fn has_moved(before: f64, after: f64) -> bool {
    if before.is_infinite() || after.is_infinite() {
        return before != after;
    }
    (before - after).abs() > EPSILON * before.min(after)
}
