//! Division of GPUs into groups: order of the axes of parallelism, and the members of each group.

use std::collections::BTreeMap;

use crate::graph::Parallelism;

/// Axis along which GPUs are numbered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Axis {
    Tensor,
    Context,
    Expert,
    Data,
    Pipeline,
}

/// Order of the axes, fastest first.
pub(super) type Order = [Axis; 5];

/// Order without a setting, that of Megatron-LM.
pub(super) const ORDER: &str = "tp-cp-ep-dp-pp";

/// Parses an order such as "tp-cp-ep-dp-pp". The error says what is allowed.
pub(super) fn parse_order(text: &str) -> Result<Order, String> {
    let axis = |name: &str| match name {
        "tp" => Some(Axis::Tensor),
        "cp" => Some(Axis::Context),
        "ep" => Some(Axis::Expert),
        "dp" => Some(Axis::Data),
        "pp" => Some(Axis::Pipeline),
        _ => None,
    };
    let axes: Option<Vec<Axis>> = text.split('-').map(axis).collect();
    let order: Option<Order> = axes.and_then(|axes| axes.try_into().ok());
    let distinct = |order: &Order| order.iter().enumerate().all(|(i, axis)| !order[..i].contains(axis));
    order
        .filter(distinct)
        .ok_or_else(|| format!("expected tp, cp, ep, dp and pp once each, such as \"{ORDER}\""))
}

/// Group that communicates.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Span {
    /// Ranks that share the matrices of a layer.
    Tensor,
    /// Ranks that share a sequence.
    Context,
    /// Ranks that share the experts of a layer.
    Expert,
    /// Ranks that share the matrices of an expert.
    ExpertTensor,
    /// Ranks with the same weights outside of experts: data-parallel ranks and those that share their sequences.
    Data,
    /// Ranks with the same experts.
    ExpertData,
    /// Ranks of the first and the last stage with the same part of a matrix that both use.
    Ends,
}

impl Span {
    pub(super) const ALL: [Span; 7] = [
        Span::Tensor,
        Span::Context,
        Span::Expert,
        Span::ExpertTensor,
        Span::Data,
        Span::ExpertData,
        Span::Ends,
    ];

    pub(super) const fn parallelism(self) -> Parallelism {
        match self {
            Span::Tensor | Span::ExpertTensor => Parallelism::Tensor,
            Span::Context => Parallelism::Context,
            Span::Expert => Parallelism::Expert,
            Span::Data => Parallelism::Data,
            Span::ExpertData => Parallelism::ExpertData,
            Span::Ends => Parallelism::Pipeline,
        }
    }
}

/// Sizes of the axes. Outside of experts, a stage has TP x CP x DP GPUs; for its experts, the same GPUs are divided
/// into ETP x EP x EDP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Axes {
    pub(super) tp: usize,
    pub(super) cp: usize,
    pub(super) dp: usize,
    pub(super) pp: usize,
    pub(super) etp: usize,
    pub(super) ep: usize,
    pub(super) edp: usize,
    pub(super) order: Order,
}

/// Ranks of a GPU along the axes, 0 along an axis that does not exist.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Place {
    pub(super) tensor: usize,
    pub(super) context: usize,
    pub(super) expert: usize,
    pub(super) data: usize,
    pub(super) stage: usize,
}

impl Place {
    fn along(&mut self, axis: Axis) -> &mut usize {
        match axis {
            Axis::Tensor => &mut self.tensor,
            Axis::Context => &mut self.context,
            Axis::Expert => &mut self.expert,
            Axis::Data => &mut self.data,
            Axis::Pipeline => &mut self.stage,
        }
    }
}

impl Axes {
    pub(super) const fn gpus(&self) -> usize {
        self.tp * self.cp * self.dp * self.pp
    }

    /// Returns the division of the same GPUs into another number of stages, with more or fewer replicas.
    pub(super) fn with_stages(&self, pp: usize) -> Option<Axes> {
        let (tensors, experts) = (self.tp * self.cp, self.etp * self.ep);
        let divides = |part: usize| part > 0 && self.gpus().is_multiple_of(part);
        (divides(pp * tensors) && divides(pp * experts)).then(|| {
            let stage = self.gpus() / pp;
            Axes { pp, dp: stage / tensors, edp: stage / experts, ..*self }
        })
    }

    fn place(&self, sizes: Place, mut gpu: usize) -> Place {
        let mut place = Place::default();
        for axis in self.order {
            let size = *{ sizes }.along(axis);
            *place.along(axis) = gpu % size;
            gpu /= size;
        }
        place
    }

    /// Returns the ranks of a GPU outside of experts.
    pub(super) fn outside(&self, gpu: usize) -> Place {
        let Axes { tp, cp, dp, pp, .. } = *self;
        self.place(Place { tensor: tp, context: cp, expert: 1, data: dp, stage: pp }, gpu)
    }

    /// Returns the ranks of a GPU for experts.
    pub(super) fn of_experts(&self, gpu: usize) -> Place {
        let Axes { etp, ep, edp, pp, .. } = *self;
        self.place(Place { tensor: etp, context: 1, expert: ep, data: edp, stage: pp }, gpu)
    }

    /// Returns the GPU with these ranks outside of experts.
    pub(super) fn gpu(&self, mut place: Place) -> usize {
        let Axes { tp, cp, dp, pp, .. } = *self;
        let mut sizes = Place { tensor: tp, context: cp, expert: 1, data: dp, stage: pp };
        let (mut gpu, mut step) = (0, 1);
        for axis in self.order {
            gpu += step * *place.along(axis);
            step *= *sizes.along(axis);
        }
        gpu
    }

    /// Returns true if a GPU has the same stage for its experts as outside of them.
    pub(super) fn stages_agree(&self) -> bool {
        (0..self.gpus()).all(|gpu| self.outside(gpu).stage == self.of_experts(gpu).stage)
    }

    /// Returns the number of ranks in a group.
    pub(super) const fn ranks(&self, span: Span) -> usize {
        match span {
            Span::Tensor => self.tp,
            Span::Context => self.cp,
            Span::Expert => self.ep,
            Span::ExpertTensor => self.etp,
            Span::Data => self.cp * self.dp,
            Span::ExpertData => self.edp,
            Span::Ends => {
                if self.pp > 1 {
                    2
                } else {
                    1
                }
            }
        }
    }

    /// Returns the groups by stage, in the order of their first members. Members ascend. Groups of both ends are at the
    /// first stage.
    pub(super) fn groups(&self, span: Span) -> Vec<Vec<Vec<usize>>> {
        let mut found: BTreeMap<Place, Vec<usize>> = BTreeMap::new();
        for gpu in 0..self.gpus() {
            let (outside, experts) = (self.outside(gpu), self.of_experts(gpu));
            let key = match span {
                Span::Tensor => Place { tensor: 0, ..outside },
                Span::Context => Place { context: 0, ..outside },
                Span::Data => Place { context: 0, data: 0, ..outside },
                Span::Expert => Place { expert: 0, ..experts },
                Span::ExpertTensor => Place { tensor: 0, ..experts },
                Span::ExpertData => Place { data: 0, ..experts },
                Span::Ends if (1..self.pp.saturating_sub(1)).contains(&outside.stage) => continue,
                Span::Ends => Place { stage: 0, ..outside },
            };
            found.entry(key).or_default().push(gpu);
        }
        let mut groups = vec![Vec::new(); self.pp];
        for (key, members) in found {
            groups[key.stage].push(members);
        }
        groups.iter_mut().for_each(|stage| stage.sort_unstable());
        groups
    }

    /// Returns the GPUs of a stage.
    pub(super) fn stage(&self, stage: usize) -> Vec<usize> {
        (0..self.gpus()).filter(|&gpu| self.outside(gpu).stage == stage).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn axes(order: &str) -> Axes {
        let order = parse_order(order).unwrap();
        Axes { tp: 2, cp: 2, dp: 2, pp: 2, etp: 1, ep: 4, edp: 2, order }
    }

    #[test]
    fn sixteen_gpus_by_hand() {
        let axes = axes(ORDER);
        assert!(axes.stages_agree());
        assert_eq!(axes.stage(1), (8..16).collect::<Vec<_>>());
        assert_eq!(axes.groups(Span::Tensor)[0], [[0, 1], [2, 3], [4, 5], [6, 7]]);
        assert_eq!(axes.groups(Span::Context)[0], [[0, 2], [1, 3], [4, 6], [5, 7]]);
        // Ranks with the same tensor rank have the same weights.
        assert_eq!(axes.groups(Span::Data)[1], [[8, 10, 12, 14], [9, 11, 13, 15]]);
        // Experts: no tensor parallelism, so that four neighbours share them.
        assert_eq!(axes.groups(Span::Expert)[0], [[0, 1, 2, 3], [4, 5, 6, 7]]);
        assert_eq!(axes.groups(Span::ExpertData)[0], [[0, 4], [1, 5], [2, 6], [3, 7]]);
        assert_eq!(axes.groups(Span::Ends)[0][..2], [[0, 8], [1, 9]]);
        assert!(axes.groups(Span::Ends)[1].is_empty());
        assert!((0..16).all(|gpu| axes.gpu(axes.outside(gpu)) == gpu));
        for span in Span::ALL {
            let all = axes.groups(span);
            assert!(all.iter().flatten().all(|group| group.len() == axes.ranks(span)), "{span:?}");
        }
    }

    #[test]
    fn fewer_stages_have_more_replicas() {
        let one = axes(ORDER).with_stages(1).unwrap();
        assert_eq!((one.gpus(), one.pp, one.dp, one.edp), (16, 1, 4, 4));
        // Five stages do not divide 16 GPUs, and four GPUs of a stage are needed by TP x CP.
        assert_eq!([0, 5, 8].map(|pp| axes(ORDER).with_stages(pp)), [None; 3]);
    }

    #[test]
    fn the_order_of_axes_is_as_written() {
        let axes = axes("pp-tp-cp-ep-dp");
        assert!(axes.stages_agree());
        assert_eq!(axes.stage(0), [0, 2, 4, 6, 8, 10, 12, 14]);
        assert_eq!(axes.groups(Span::Tensor)[0][0], [0, 2]);
        // With PP between them, stages of experts are elsewhere.
        assert!(!self::axes("tp-pp-cp-ep-dp").stages_agree());
        for wrong in ["tp-cp-ep-dp", "tp-cp-ep-dp-dp", "tp-cp-ep-dp-xp", ""] {
            assert!(parse_order(wrong).unwrap_err().contains("such as \"tp-cp-ep-dp-pp\""), "{wrong}");
        }
    }
}
