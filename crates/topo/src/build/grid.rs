//! Grid of switches, shared by tori and full meshes of several dimensions.

use std::fmt;

use super::{LinkSpec, TopologyBuilder, refuse};
use crate::error::TopoError;
use crate::graph::{MAX_NODES, NodeId};

/// Grid of switches. In the numbering of switches the last coordinate varies fastest.
#[derive(Clone, Debug)]
pub(super) struct Grid {
    pub(super) size: Vec<u32>,
}

/// Formats the size, such as "4x4x2".
impl fmt::Display for Grid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sizes: Vec<String> = self.size.iter().map(ToString::to_string).collect();
        f.write_str(&sizes.join("x"))
    }
}

impl Grid {
    /// Creates a grid. Returns an error unless it has one to three dimensions, at least two switches, and at most
    /// `MAX_NODES`.
    pub(super) fn new(size: &[u32]) -> Result<Self, TopoError> {
        let product = size.iter().fold(1u64, |product, &n| product.saturating_mul(u64::from(n)));
        if !(1..=3).contains(&size.len()) || !(2..=u64::from(MAX_NODES)).contains(&product) {
            let allowed =
                format!("must be one to three numbers above 0, from 2 to {MAX_NODES} switches together");
            return Err(refuse("size", format!("{size:?}"), allowed));
        }
        Ok(Grid { size: size.to_vec() })
    }
    pub(super) fn len(&self) -> u32 {
        self.size.iter().product()
    }
    pub(super) fn coordinates(&self, mut index: u32) -> Vec<u32> {
        let mut at = vec![0; self.size.len()];
        for (d, &size) in self.size.iter().enumerate().rev() {
            at[d] = index % size;
            index /= size;
        }
        at
    }
    pub(super) fn index(&self, at: &[u32]) -> u32 {
        self.size.iter().zip(at).fold(0, |index, (size, at)| index * size + at)
    }

    /// Adds the switches with their hosts. Returns the node of each switch.
    pub(super) fn add(
        &self,
        parts: &mut TopologyBuilder,
        per_switch: u32,
        link: LinkSpec,
    ) -> impl Fn(u32) -> NodeId + use<> {
        let hosts = self.len() * per_switch;
        for switch in 0..self.len() {
            let at = self.coordinates(switch);
            let name: Vec<String> = at.iter().map(ToString::to_string).collect();
            parts.switch(format!("sw{}", name.join(".")), 0, Some(at[0]));
        }
        let node = move |switch: u32| NodeId(hosts + switch);
        for host in 0..hosts {
            parts.links(NodeId(host), node(host / per_switch), link, 1);
        }
        node
    }
}

/// Calls `each` with every permutation of `items`, in lexicographic order.
pub(super) fn orders(items: &[usize], each: &mut dyn FnMut(&[usize])) {
    fn go(chosen: &mut Vec<usize>, left: &[usize], each: &mut dyn FnMut(&[usize])) {
        if left.is_empty() {
            return each(chosen);
        }
        for (i, &item) in left.iter().enumerate() {
            let rest: Vec<usize> = left[..i].iter().chain(&left[i + 1..]).copied().collect();
            chosen.push(item);
            go(chosen, &rest, each);
            chosen.pop();
        }
    }
    go(&mut Vec::new(), items, each);
}
