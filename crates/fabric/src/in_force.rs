//! Faults in force at once. The state of a place follows from the set of them, so that their order does not matter.

use std::collections::BTreeMap;

/// Values of the faults that are in force at each place, of one kind of fault.
#[derive(Clone, Debug)]
pub struct InForce<P, V>(BTreeMap<P, Vec<V>>);

impl<P, V> Default for InForce<P, V> {
    fn default() -> Self {
        InForce(BTreeMap::new())
    }
}

impl<P: Ord, V: PartialEq> InForce<P, V> {
    /// Adds the value of a fault that begins.
    pub fn begin(&mut self, place: P, value: V) {
        self.0.entry(place).or_default().push(value);
    }

    /// Removes the value of a fault that ends.
    pub fn end(&mut self, place: &P, value: &V) {
        let Some(values) = self.0.get_mut(place) else { return };
        if let Some(found) = values.iter().position(|one| one == value) {
            values.swap_remove(found);
        }
    }

    /// Returns the values at a place, in no particular order.
    pub fn at(&self, place: &P) -> &[V] {
        self.0.get(place).map_or(&[], Vec::as_slice)
    }
}

/// Returns the probability that at least one of independent events occurs.
pub fn any_of(probabilities: &[f64]) -> f64 {
    // Sorted, as floating point depends on the order.
    let mut sorted = probabilities.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted.into_iter().reduce(|p, q| (q + p * (1.0 - q)).min(1.0)).unwrap_or(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_holds_until_its_own_fault_ends() {
        let mut rates = InForce::default();
        rates.begin("a", 10);
        rates.begin("a", 20);
        rates.begin("b", 5);
        assert_eq!(rates.at(&"a").iter().min(), Some(&10));
        rates.end(&"a", &10);
        rates.end(&"b", &7);
        assert_eq!((rates.at(&"a"), rates.at(&"b"), rates.at(&"c")), (&[20][..], &[5][..], &[][..]));
    }

    #[test]
    fn independent_losses_combine() {
        // A packet survives 0.8 x 0.9 = 0.72 of the time.
        assert!((any_of(&[0.2, 0.1]) - 0.28).abs() < 1e-12);
        assert_eq!((any_of(&[]), any_of(&[0.3]), any_of(&[1.0, 0.4])), (0.0, 0.3, 1.0));
        let three = [0.3, 0.1, 0.7];
        assert_eq!(any_of(&three), any_of(&[0.7, 0.3, 0.1]), "the same in any order");
    }
}
