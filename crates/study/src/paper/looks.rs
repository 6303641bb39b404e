//! Looks: the numbers of seeds after which claims are judged, if runs stop as soon as the claims are decided.
//!
//! A 95 % interval at each of several looks would miss the mean more often than once in twenty: the looks have several
//! chances. They therefore share the error of 5 %, in proportion to their seeds. By Bonferroni's inequality all
//! intervals of a claim contain the mean with 95 % probability, so a claim may stop at any look, for any reason.

use pathweave_report::Estimate;

/// Numbers of seeds at which claims are judged, if more are allowed.
const SCHEDULE: [usize; 4] = [3, 6, 10, 20];
/// Probability that an interval of a claim misses the mean, over all looks together.
const ERROR: f64 = 0.05;

/// Schedule of looks. It is fixed before the first run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Looks {
    /// Number of seeds at each look, ascending.
    seeds: Vec<usize>,
}

impl Looks {
    /// Returns the schedule for at most `seeds` seeds: 3, 6, 10 and 20 as far as they are fewer, and `seeds`.
    pub fn up_to(seeds: usize) -> Self {
        let fewer = SCHEDULE.into_iter().filter(|at| *at < seeds);
        Looks { seeds: fewer.chain([seeds]).collect() }
    }

    /// Returns the number of seeds at each look, ascending.
    pub fn seeds(&self) -> &[usize] {
        &self.seeds
    }

    /// Computes the estimate at a look, from one value a seed.
    pub(crate) fn estimate(&self, values: &[f64]) -> Option<Estimate> {
        let share = values.len() as f64 / self.seeds.iter().sum::<usize>() as f64;
        Estimate::with_error(values, ERROR * share)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn looks_end_at_the_largest_number_of_seeds() {
        let at = |seeds| Looks::up_to(seeds).seeds;
        assert_eq!((at(2), at(3), at(8), at(30)), (vec![2], vec![3], vec![3, 6, 8], vec![3, 6, 10, 20, 30]));
    }

    /// Pseudorandom numbers of a normal distribution: the sum of twelve uniform ones less six.
    struct Normal(u64);

    impl Normal {
        fn draw(&mut self) -> f64 {
            let mut uniform = || {
                self.0 =
                    self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                (self.0 >> 11) as f64 / (1_u64 << 53) as f64
            };
            (0..12).map(|_| uniform()).sum::<f64>() - 6.0
        }
    }

    /// Share of experiments in which an interval of mean 0 leaves out 0 at the first look at which it leaves out
    /// either 0 or 1: a claim whose limit is just below the true mean is then decided wrongly.
    fn wrong_decisions(looks: &Looks, of: impl Fn(&[f64]) -> Option<Estimate>) -> f64 {
        const EXPERIMENTS: u32 = 20_000;
        let mut normal = Normal(7);
        let mut wrong = 0;
        for _ in 0..EXPERIMENTS {
            let mut values = Vec::new();
            for &seeds in looks.seeds() {
                values.extend((values.len()..seeds).map(|_| normal.draw()));
                let estimate = of(&values).unwrap();
                if estimate.mean.abs() > estimate.ci95.unwrap() {
                    wrong += 1;
                    break;
                }
            }
        }
        f64::from(wrong) / f64::from(EXPERIMENTS)
    }

    #[test]
    fn claims_are_decided_wrongly_once_in_twenty_at_most() {
        for most in [3, 10, 20] {
            let looks = Looks::up_to(most);
            let wrong = wrong_decisions(&looks, |values| looks.estimate(values));
            assert!(wrong < 0.052, "{most}: {wrong}");
            let naive = wrong_decisions(&looks, Estimate::from_values);
            // With one look there is nothing to correct.
            assert!(if most == 3 { naive < 0.053 } else { naive > 0.09 }, "{most}: {naive}");
        }
    }
}
