//! State of a claim: the result of comparing measured numbers with the published one, on both sides of its band.

use serde::{Deserialize, Serialize};

use crate::paper::model::{Claim, Compare};
use pathweave_report::Estimate;

/// State of a claim.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum State {
    /// The number is the published one within the tolerance.
    Agrees,
    /// The effect is larger than published, by more than the tolerance.
    Exceeds,
    /// The effect is present but smaller than published, or a bound is missed.
    FallsShort,
    /// There is no effect, or the opposite effect.
    Contradicts,
    /// The confidence interval contains numbers that agree and numbers that do not and is wider than the tolerance, or
    /// there is no number.
    #[default]
    Undecided,
}

/// Half of the interval that stands for that of a single seed, as a share of its value.
const ONE_SEED: f64 = 0.05;

impl State {
    /// All states, in the order in which tables list them.
    pub const ALL: [State; 5] =
        [State::Agrees, State::Exceeds, State::FallsShort, State::Contradicts, State::Undecided];

    /// Returns the word that tables use for one claim.
    pub fn word(self) -> &'static str {
        match self {
            State::Agrees => "agrees",
            State::Exceeds => "exceeds",
            State::FallsShort => "falls short",
            State::Contradicts => "contradicts",
            State::Undecided => "undecided",
        }
    }

    /// Returns the CSS class of the word: good, bad, or neither.
    pub(crate) fn class(self) -> &'static str {
        match self {
            State::Agrees | State::Exceeds => "yes",
            State::FallsShort | State::Contradicts => "no",
            State::Undecided => "open",
        }
    }

    /// Returns the words for `count` claims or figures: "1 agrees", "2 agree", "3 undecided".
    pub(crate) fn counted(self, count: usize) -> String {
        let word = match (self, count) {
            (State::Agrees, 2..) => "agree",
            (State::Exceeds, 2..) => "exceed",
            (State::FallsShort, 2..) => "fall short",
            (State::Contradicts, 2..) => "contradict",
            (one, _) => one.word(),
        };
        format!("{count} {word}")
    }

    /// Returns the state of `claim`, from the mean over seeds and its confidence interval; one seed has none, and
    /// [`ONE_SEED`] of its value stands for it. An interval that contains a
    /// limit leaves the claim undecided, unless it is no wider on either side than the tolerance: what is left open then
    /// matters less than what the claim calls equal.
    pub fn judge(claim: &Claim, estimate: Estimate) -> Self {
        let of_one_seed = if estimate.n == 1 { ONE_SEED * estimate.mean.abs() } else { 0.0 };
        let half = if is_refuted_count(claim, estimate) { 0.0 } else { estimate.ci95.unwrap_or(of_one_seed) };
        let [low, mean, high] = [-half, 0.0, half].map(|by| of_value(claim, estimate.mean + by));
        if claim.tolerance > 0.0 && half <= claim.tolerance {
            return mean;
        }
        let agrees = |state| state == State::Agrees;
        // An interval that begins in `Exceeds` and ends in `FallsShort` contains every agreeing number.
        let spans = low != high && [low, high].contains(&State::Exceeds);
        if agrees(low) != agrees(mean) || agrees(high) != agrees(mean) || spans {
            State::Undecided
        } else {
            mean
        }
    }
}

/// Returns true if the claim is that something never happens, and it happened. Measures are not negative, so a mean of
/// zero needs every number to be zero, and one that is not leaves no doubt.
fn is_refuted_count(claim: &Claim, estimate: Estimate) -> bool {
    let is_never = claim.versus.is_none() && claim.at_least.is_none() && claim.at_most == Some(0.0);
    is_never && claim.tolerance == 0.0 && estimate.mean > 0.0
}

/// Returns the state for an exact number.
fn of_value(claim: &Claim, value: f64) -> State {
    if within_limits(claim, value) {
        return State::Agrees;
    }
    let Some(none) = without_effect(claim) else { return State::FallsShort };
    match (claim.at_least, claim.at_most) {
        (Some(least), Some(most)) if least >= none && value > most => State::Exceeds,
        (Some(least), Some(most)) if most <= none && value < least => State::Exceeds,
        // If the publication sees no effect, any effect is the opposite.
        (Some(least), Some(most)) if least < none && none < most => State::Contradicts,
        (Some(least), _) if least > none && value > none => State::FallsShort,
        (_, Some(most)) if most < none && value < none => State::FallsShort,
        // A bound that an absent effect would meet as well.
        (Some(least), None) if least < none => State::FallsShort,
        (None, Some(most)) if most > none => State::FallsShort,
        _ => State::Contradicts,
    }
}

/// Returns the number that would mean no effect, if the claim has one.
pub(crate) fn without_effect(claim: &Claim) -> Option<f64> {
    claim.without_effect.or(claim.versus.as_ref().map(|_| match claim.compare {
        Compare::Ratio => 1.0,
        Compare::Reduction | Compare::Increase | Compare::Difference => 0.0,
    }))
}

pub(crate) fn within_limits(claim: &Claim, value: f64) -> bool {
    // Decimal fractions have no exact binary representation. The slack keeps rounding from counting as disagreement.
    margin(claim, value) >= -1e-9 * value.abs()
}

/// Returns the distance from the nearer limit, in the unit compared. Negative outside the limits.
pub(crate) fn margin(claim: &Claim, value: f64) -> f64 {
    let above = claim.at_least.map_or(f64::INFINITY, |least| value - least);
    let below = claim.at_most.map_or(f64::INFINITY, |most| most - value);
    above.min(below) + claim.tolerance
}

#[cfg(test)]
mod tests {
    use super::*;

    fn claim(limits: &str) -> Claim {
        let head = "text = 't'\nsource = 's'\npublished = 'p'\nmeasure = 'm'\nseries = 'x'\nshow = 'ratio'\n";
        toml::from_str(&format!("{head}{limits}")).unwrap()
    }

    fn estimate(mean: f64, half: f64) -> Estimate {
        Estimate { mean, ci95: Some(half), n: 2 }
    }

    #[test]
    fn limits_and_tolerance() {
        let two = claim("at_least = 2.0\ntolerance = 0.2");
        assert!(within_limits(&two, 1.8) && !within_limits(&two, 1.79));
        let band = claim("at_least = 0.3\nat_most = 0.4");
        assert!(within_limits(&band, 0.3) && within_limits(&band, 0.4) && !within_limits(&band, 0.41));
    }

    #[test]
    fn a_band_is_judged_on_both_sides() {
        use State::{Agrees, Contradicts, Exceeds, FallsShort};
        let of = |limits: &str, values: &[(f64, State)]| {
            for &(value, expected) in values {
                assert_eq!(of_value(&claim(limits), value), expected, "{limits}: {value}");
            }
        };
        let versus = "versus = { series = 'y' }\n";
        // A reduction of 18 to 30 %, with a tolerance of 2 percentage points.
        let lower =
            format!("{versus}compare = 'reduction'\nat_least = 0.18\nat_most = 0.3\ntolerance = 0.02");
        let states = [
            (0.16, Agrees),
            (0.32, Agrees),
            (0.33, Exceeds),
            (0.1, FallsShort),
            (0.0, Contradicts),
            (-0.1, Contradicts),
        ];
        of(&lower, &states);
        // A ratio of 0.3 to 0.4: smaller is more of the effect.
        let ratio = format!("{versus}at_least = 0.3\nat_most = 0.4");
        of(
            &ratio,
            &[(0.35, Agrees), (0.2, Exceeds), (0.8, FallsShort), (1.0, Contradicts), (1.2, Contradicts)],
        );
        // Equality within 5 %.
        let same = format!("{versus}at_least = 0.95\nat_most = 1.05");
        of(&same, &[(1.0, Agrees), (0.9, Contradicts), (1.1, Contradicts)]);
        // No better than the other; at most a tenth more; at least twice.
        of(&format!("{versus}at_least = 1.0"), &[(1.0, Agrees), (9.0, Agrees), (0.9, Contradicts)]);
        of(&format!("{versus}compare = 'increase'\nat_most = 0.1"), &[(-0.5, Agrees), (0.2, FallsShort)]);
        of(&format!("{versus}at_least = 2.0"), &[(2.5, Agrees), (1.5, FallsShort), (0.5, Contradicts)]);
        // A number without a comparison has no opposite, unless the claim gives the value without effect.
        of("at_most = 22.0", &[(20.0, Agrees), (312.0, FallsShort)]);
        of("at_least = 0.1\nwithout_effect = 0.0", &[(0.2, Agrees), (0.05, FallsShort), (0.0, Contradicts)]);
    }

    #[test]
    fn an_interval_across_a_limit_decides_nothing() {
        let two = claim("versus = { series = 'y' }\nat_least = 2.0\nat_most = 3.0");
        let of = |mean, half| State::judge(&two, estimate(mean, half));
        assert_eq!([of(2.1, 0.2), of(1.9, 0.2), of(3.1, 0.2)], [State::Undecided; 3]);
        assert_eq!(
            [of(2.5, 0.2), of(1.7, 0.2), of(3.5, 0.2)],
            [State::Agrees, State::FallsShort, State::Exceeds]
        );
        // Even a wide interval around no effect leaves no doubt that the claim does not hold, if it is far from the
        // limit.
        assert_eq!(of(1.1, 0.3), State::FallsShort);
        assert_eq!(of(2.5, 9.0), State::Undecided);
        // One seed near a limit decides nothing.
        let one = |mean| State::judge(&two, Estimate { mean, ci95: None, n: 1 });
        assert_eq!([one(2.0), one(2.2), one(1.5)], [State::Undecided, State::Agrees, State::FallsShort]);
        // Pauses in one seed of ten: the interval contains 0, yet there are pauses.
        let never = |limits| State::judge(&claim(limits), estimate(45.0, 48.0));
        assert_eq!(never("at_most = 0"), State::FallsShort);
        assert_eq!([never("at_most = 1"), never("at_most = 0\ntolerance = 1")], [State::Undecided; 2]);
        assert_eq!(State::judge(&claim("at_most = 0"), estimate(0.0, 0.0)), State::Agrees);
    }

    #[test]
    fn an_interval_within_the_tolerance_is_decided_by_its_mean() {
        let lower = claim(
            "versus = { series = 'y' }\ncompare = 'reduction'\nat_least = 0.18\nat_most = 0.3\ntolerance = 0.02",
        );
        let of = |mean, half| State::judge(&lower, estimate(mean, half));
        // The limit with tolerance is 0.16.
        assert_eq!([of(0.159, 0.021), of(0.161, 0.021)], [State::Undecided; 2]);
        assert_eq!([of(0.159, 0.02), of(0.161, 0.02)], [State::FallsShort, State::Agrees]);
    }
}
