//! Labels of declared tasks.

use foldhash::fast::RandomState;
use indexmap::IndexSet;

use crate::graph::{Label, Labels};

/// Largest number of labels that a graph distinguishes.
const MAX_LABELS: usize = 1 << 22;

/// Labels recorded while tasks are declared. Tasks without a label take no memory while no label is set.
#[derive(Clone, Debug, Default)]
pub(super) struct Labelling {
    /// All labels, in the order of first use. `finish` sorts them.
    labels: IndexSet<Label, RandomState>,
    /// Number of the current label: its index in `known` plus 1, or 0 for none.
    current: u32,
    /// Label numbers of messages, in the order of declaration. Shorter than the list of messages if the last
    /// ones have no label; likewise `of_computes`.
    of_messages: Vec<u32>,
    of_computes: Vec<u32>,
}

impl Labelling {
    /// Sets the label of the tasks declared from now on.
    pub(super) fn set(&mut self, label: Option<Label>) {
        let Some(label) = label else {
            self.current = 0;
            return;
        };
        // The number is the index among the known labels, plus 1.
        let number = if self.labels.len() < MAX_LABELS {
            Some(self.labels.insert_full(label).0)
        } else {
            self.labels.get_index_of(&label)
        };
        self.current = number.map_or(0, |place| place as u32 + 1);
    }

    /// Records the label of a task that is declared now. `before` is the number of tasks of its kind declared
    /// earlier.
    pub(super) fn declare(&mut self, is_compute: bool, before: usize) {
        if self.current == 0 {
            return;
        }
        let list = if is_compute { &mut self.of_computes } else { &mut self.of_messages };
        list.resize(before, 0);
        list.push(self.current);
    }

    /// Returns the labels of tasks in their final order, given the old index of each.
    pub(super) fn finish(self, messages: &[u32], computes: &[u32]) -> Labels {
        if self.labels.is_empty() {
            return Labels::default();
        }
        let mut all: Vec<(Label, u32)> = self.labels.into_iter().zip(1..).collect();
        all.sort_unstable();
        let mut renamed = vec![0; all.len() + 1];
        for (new, (_, old)) in (1u32..).zip(&all) {
            renamed[*old as usize] = new;
        }
        let label = |list: &[u32], old: u32| renamed[list.get(old as usize).map_or(0, |&l| l as usize)];
        let of_task = messages.iter().map(|&old| label(&self.of_messages, old));
        let of_task = of_task.chain(computes.iter().map(|&old| label(&self.of_computes, old))).collect();
        Labels { all: all.into_iter().map(|(label, _)| label).collect(), of_task }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::algorithm::Algorithm;
    use crate::graph::CollectiveLabel;

    fn label(activity: &str, number: Option<u32>) -> Option<Label> {
        let algorithm = Algorithm::Ring;
        let collective = number.map(|number| CollectiveLabel {
            number,
            ranks: 4,
            algorithm: algorithm.name(),
            measure: None,
        });
        Some(Label { activity: activity.to_owned(), part: None, parallelism: None, collective })
    }

    #[test]
    fn tasks_keep_their_labels_when_they_are_put_in_order() {
        let mut labelling = Labelling::default();
        labelling.declare(false, 0);
        labelling.set(label("send", None));
        labelling.declare(false, 1);
        labelling.set(label("all-reduce", Some(1)));
        labelling.declare(false, 2);
        labelling.set(label("all-reduce", Some(0)));
        labelling.declare(true, 0);
        // The same label a second time makes no new label.
        labelling.set(label("send", None));
        labelling.declare(false, 3);
        labelling.set(None);
        labelling.declare(true, 1);
        // The final order of messages is 3, 2, 0, 1, followed by both computations.
        let labels = labelling.finish(&[3, 2, 0, 1], &[0, 1]);
        let all = [label("all-reduce", Some(0)), label("all-reduce", Some(1)), label("send", None)];
        assert_eq!(labels.all, all.map(|label| label.unwrap()));
        assert_eq!(labels.of_task, [3, 2, 0, 3, 1, 0]);
    }

    #[test]
    fn a_graph_without_labels_has_no_list_of_them() {
        let mut labelling = Labelling::default();
        labelling.declare(true, 0);
        assert_eq!(labelling.finish(&[], &[0]), Labels::default());
    }
}
