//! Standing of a figure: the combined result of its claims.

use crate::paper::claims::Weight;
use crate::paper::model::Variant;
use crate::paper::record::RecordedVerdict;
use crate::paper::state::State;

/// Standing of a figure of a publication.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Standing {
    /// Every claim agrees.
    Agrees,
    /// Every claim agrees or exceeds the published effect, and at least one exceeds it.
    Exceeds,
    /// Some claims agree or exceed, and others fall short or contradict.
    InPart,
    /// No claim agrees, and none contradicts.
    FallsShort,
    /// No claim agrees, and at least one contradicts.
    Contradicts,
    /// Undecided claims would change the standing.
    Undecided,
    /// A parameter was fitted to every claim.
    Fitted,
}

impl Standing {
    /// All standings, in the order in which tables list them.
    pub const ALL: [Standing; 7] = [
        Standing::Agrees,
        Standing::Exceeds,
        Standing::InPart,
        Standing::FallsShort,
        Standing::Contradicts,
        Standing::Undecided,
        Standing::Fitted,
    ];

    /// Returns the word that pages use.
    pub fn word(self) -> &'static str {
        match self {
            Standing::Agrees => "agrees",
            Standing::Exceeds => "exceeds",
            Standing::InPart => "in part",
            Standing::FallsShort => "falls short",
            Standing::Contradicts => "contradicts",
            Standing::Undecided => "undecided",
            Standing::Fitted => "fitted",
        }
    }

    /// Returns the CSS class of the word: good, bad, or neither.
    pub(crate) fn class(self) -> &'static str {
        match self {
            Standing::Agrees | Standing::Exceeds => "yes",
            Standing::FallsShort | Standing::Contradicts => "no",
            Standing::InPart | Standing::Undecided | Standing::Fitted => "open",
        }
    }

    /// Returns the words for `count` figures, for instance "2 agree".
    pub(crate) fn counted(self, count: usize) -> String {
        match self {
            Standing::Agrees => State::Agrees.counted(count),
            Standing::Exceeds => State::Exceeds.counted(count),
            Standing::FallsShort => State::FallsShort.counted(count),
            Standing::Contradicts => State::Contradicts.counted(count),
            Standing::InPart | Standing::Undecided | Standing::Fitted => format!("{count} {}", self.word()),
        }
    }
}

/// Standing of a figure with the claims behind it.
#[derive(Clone, Debug, PartialEq)]
pub struct Judgement<'a> {
    /// Combined result of all claims.
    pub standing: Standing,
    /// Claims that count, in the order of the figure. If there are none, the fitted claims.
    pub claims: Vec<&'a RecordedVerdict>,
}

/// Combines the claims of a figure. Claims with [`Weight::Aside`] do not count. If a claim is recorded for several
/// variants, only `variant` counts, or else the scheme as printed. Returns `None` if no claim is left, which means
/// that the publication claims nothing about this figure.
pub fn judgement<'a>(
    claims: impl IntoIterator<Item = &'a RecordedVerdict>,
    variant: Option<&Variant>,
) -> Option<Judgement<'a>> {
    let called_for = [variant.map_or(Variant::AS_PRINTED, Variant::name), Variant::AS_PRINTED];
    let claims: Vec<&RecordedVerdict> =
        claims.into_iter().filter(|claim| claim.weight != Weight::Aside).collect();
    let judged = claims.iter().copied().filter(|claim| {
        let has =
            |variant: &&str| claims.iter().any(|one| one.claim == claim.claim && one.variant == *variant);
        called_for.iter().find(|variant| has(variant)).is_none_or(|variant| claim.variant == *variant)
    });
    let (counting, fitted): (Vec<&RecordedVerdict>, Vec<&RecordedVerdict>) =
        judged.partition(|claim| claim.weight == Weight::Counts);
    if counting.is_empty() {
        return (!fitted.is_empty()).then_some(Judgement { standing: Standing::Fitted, claims: fitted });
    }
    let any = |state| counting.iter().any(|claim| claim.state == state);
    let held = any(State::Agrees) || any(State::Exceeds);
    let failed = any(State::FallsShort) || any(State::Contradicts);
    let standing = match (held, failed, any(State::Undecided)) {
        (true, true, _) => Standing::InPart,
        (_, _, true) => Standing::Undecided,
        (true, false, false) if any(State::Exceeds) => Standing::Exceeds,
        (true, false, false) => Standing::Agrees,
        (false, _, false) if any(State::Contradicts) => Standing::Contradicts,
        (false, _, false) => Standing::FallsShort,
    };
    Some(Judgement { standing, claims: counting })
}

impl Judgement<'_> {
    /// Returns the count in words, for instance "2 of 5 claims agree, 1 exceeds, 1 falls short, 1 is undecided".
    pub fn count(&self) -> String {
        if self.standing == Standing::Fitted {
            return "Its result was fitted".to_owned();
        }
        let of = |state| self.claims.iter().filter(|claim| claim.state == state).count();
        let all = self.claims.len();
        let words = if all == 1 { "claim agrees" } else { "claims agree" };
        let mut parts = vec![format!("{} of {all} {words}", of(State::Agrees))];
        for state in State::ALL.into_iter().skip(1).filter(|state| of(*state) > 0) {
            parts.push(match (state, of(state)) {
                (State::Undecided, 1) => "1 is undecided".to_owned(),
                (State::Undecided, count) => format!("{count} are undecided"),
                (state, count) => state.counted(count),
            });
        }
        parts.join(", ")
    }

    /// Returns the claim that decides: the first that contradicts, else that falls short, is undecided, exceeds, or
    /// agrees.
    pub fn decisive(&self) -> &RecordedVerdict {
        let order = [State::Contradicts, State::FallsShort, State::Undecided, State::Exceeds, State::Agrees];
        let first = |state| self.claims.iter().find(|claim| claim.state == state);
        order.into_iter().find_map(first).expect("a judgement is of one claim at least")
    }

    /// Returns the deciding claim with its reason. Empty if the claim agrees.
    pub fn reason(&self) -> String {
        let claim = self.decisive();
        match (claim.state, claim.why.as_str()) {
            (State::Agrees, _) => String::new(),
            (state, "") => format!("{}: {}", claim.claim, state.word()),
            (_, why) => format!("{}: {why}", claim.claim),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn claim(name: &str, variant: &str, state: State) -> RecordedVerdict {
        RecordedVerdict {
            claim: name.to_owned(),
            variant: variant.to_owned(),
            state,
            why: if state == State::Agrees { "" } else { "a reason" }.to_owned(),
            ..RecordedVerdict::default()
        }
    }

    fn standing(claims: &[RecordedVerdict]) -> Option<Standing> {
        judgement(claims, None).map(|judgement| judgement.standing)
    }

    #[test]
    fn claims_together_make_a_standing() {
        use State::{Agrees, Contradicts, Exceeds, FallsShort, Undecided};
        let of = |states: &[State]| {
            let claims: Vec<RecordedVerdict> = states.iter().map(|state| claim("c", "", *state)).collect();
            standing(&claims)
        };
        for (states, expected) in [
            (&[][..], None),
            (&[Agrees], Some(Standing::Agrees)),
            (&[Agrees, Exceeds], Some(Standing::Exceeds)),
            (&[FallsShort], Some(Standing::FallsShort)),
            (&[FallsShort, Contradicts], Some(Standing::Contradicts)),
            (&[Undecided], Some(Standing::Undecided)),
            (&[Exceeds, FallsShort], Some(Standing::InPart)),
            (&[Agrees, Contradicts, Undecided], Some(Standing::InPart)),
            // The undecided claim may change the standing in either direction.
            (&[Agrees, Undecided], Some(Standing::Undecided)),
            (&[Contradicts, Undecided], Some(Standing::Undecided)),
        ] {
            assert_eq!(of(states), expected, "{states:?}");
        }
    }

    #[test]
    fn the_scheme_as_printed_stands_for_the_paper() {
        let ours = claim("c", Variant::OURS, State::Agrees);
        let claims = [claim("c", Variant::AS_PRINTED, State::Contradicts), ours.clone()];
        assert_eq!(standing(&claims), Some(Standing::Contradicts));
        let judged = judgement(&claims, Some(&Variant::new(Variant::OURS))).unwrap();
        assert_eq!(judged.standing, Standing::Agrees);
        // If a claim has no result as printed, another variant's result counts.
        assert_eq!(standing(&[ours]), Some(Standing::Agrees));
    }

    #[test]
    fn our_own_bars_other_readings_and_fits_do_not_count() {
        let weighed = |weight| RecordedVerdict { weight, ..claim("bar", "", State::FallsShort) };
        let agrees = claim("c", "", State::Agrees);
        assert_eq!(standing(&[weighed(Weight::Aside)]), None);
        assert_eq!(standing(&[weighed(Weight::Aside), agrees.clone()]), Some(Standing::Agrees));
        assert_eq!(standing(&[weighed(Weight::Fitted), agrees]), Some(Standing::Agrees));
        assert_eq!(standing(&[weighed(Weight::Fitted)]), Some(Standing::Fitted));
    }

    #[test]
    fn a_judgement_has_the_claim_that_decided() {
        let claims = [
            claim("y", "", State::Agrees),
            claim("n", "", State::FallsShort),
            claim("o", "", State::Undecided),
        ];
        let judged = judgement(&claims, None).unwrap();
        assert_eq!(judged.count(), "1 of 3 claims agree, 1 falls short, 1 is undecided");
        assert_eq!(judged.reason(), "n: a reason");
        assert_eq!(judgement(&claims[..1], None).unwrap().count(), "1 of 1 claim agrees");
        assert!(judgement(&claims[..1], None).unwrap().reason().is_empty());
        let bare = [RecordedVerdict { why: String::new(), ..claims[1].clone() }];
        assert_eq!(judgement(&bare, None).unwrap().reason(), "n: falls short");
    }
}
