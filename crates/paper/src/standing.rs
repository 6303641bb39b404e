//! Whether a figure was reproduced: what its claims come to together.

use crate::model::Variant;
use crate::record::Recorded;

/// How a figure of a publication stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Standing {
    /// Every claim holds.
    Reproduced,
    /// Some claims hold and some do not.
    InPart,
    /// No claim holds.
    Refuted,
    /// Claims whose interval reaches across their limit decide which of the others it is.
    Undecided,
}

impl Standing {
    /// All there are, in the order of tables.
    pub const ALL: [Standing; 4] =
        [Standing::Reproduced, Standing::InPart, Standing::Refuted, Standing::Undecided];

    /// As pages write it.
    pub fn word(self) -> &'static str {
        match self {
            Standing::Reproduced => "reproduced",
            Standing::InPart => "in part",
            Standing::Refuted => "refuted",
            Standing::Undecided => "undecided",
        }
    }
}

/// How a figure stands, and what decides it.
#[derive(Clone, Debug, PartialEq)]
pub struct Judgement<'a> {
    /// All claims together.
    pub standing: Standing,
    /// Claims that hold, and whose interval does not reach across their limit.
    pub held: Vec<&'a Recorded>,
    /// Claims that do not hold, likewise.
    pub failed: Vec<&'a Recorded>,
    /// Claims that are undecided.
    pub open: Vec<&'a Recorded>,
}

/// Puts the claims of a figure together. Bars of this project and other readings do not count, nor does a variant where the same
/// claim is judged of the one called for; unless said, of the repaired one. `None` if nothing is left: the publication claims
/// nothing of this figure.
pub fn judgement<'a>(
    claims: impl IntoIterator<Item = &'a Recorded>,
    variant: Option<Variant>,
) -> Option<Judgement<'a>> {
    let variant = variant.unwrap_or(Variant::Repaired).name();
    let claims: Vec<&Recorded> = claims.into_iter().filter(|claim| !claim.aside).collect();
    let better =
        |claim: &Recorded| claims.iter().any(|other| other.variant == variant && other.claim == claim.claim);
    let (mut held, mut failed, mut open) = (Vec::new(), Vec::new(), Vec::new());
    for &claim in claims.iter().filter(|claim| claim.variant == variant || !better(claim)) {
        let place = match (claim.undecided, claim.agrees) {
            (true, _) => &mut open,
            (false, true) => &mut held,
            (false, false) => &mut failed,
        };
        place.push(claim);
    }
    let standing = match (held.len(), failed.len(), open.len()) {
        (0, 0, 0) => return None,
        (1.., 1.., _) => Standing::InPart,
        (_, _, 1..) => Standing::Undecided,
        (_, 0, 0) => Standing::Reproduced,
        (0, _, 0) => Standing::Refuted,
    };
    Some(Judgement { standing, held, failed, open })
}

impl<'a> Judgement<'a> {
    /// "2 of 5 claims hold, 1 is undecided".
    pub fn count(&self) -> String {
        let (held, open) = (self.held.len(), self.open.len());
        let all = held + self.failed.len() + open;
        let mut text = match (all, held, open) {
            (1, 1, _) => return "the claim holds".to_owned(),
            (1, _, 1) => return "the claim is undecided".to_owned(),
            (1, _, _) => return "the claim does not hold".to_owned(),
            _ => format!("{held} of {all} claims hold"),
        };
        if open > 0 {
            text.push_str(&format!(", {open} {} undecided", if open == 1 { "is" } else { "are" }));
        }
        text
    }

    /// The claim that decides: of those that do not hold the first, else of the undecided, else of all.
    pub fn decisive(&self) -> &'a Recorded {
        let claims = [&self.failed, &self.open, &self.held];
        claims.iter().find_map(|claims| claims.first()).expect("a judgement is of one claim at least")
    }

    /// Why it is not reproduced, in a sentence; nothing where it is.
    pub fn reason(&self) -> String {
        match self.standing {
            Standing::Reproduced => String::new(),
            _ => {
                let claim = self.decisive();
                format!("{}: {}", claim.claim, claim.why)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn claim(name: &str, variant: &str, agrees: bool, undecided: bool) -> Recorded {
        Recorded {
            claim: name.to_owned(),
            variant: variant.to_owned(),
            agrees,
            undecided,
            why: if agrees { "" } else { "a reason" }.to_owned(),
            ..Recorded::default()
        }
    }

    fn standing(claims: &[Recorded]) -> Option<Standing> {
        judgement(claims, None).map(|judgement| judgement.standing)
    }

    #[test]
    fn claims_together_make_a_standing() {
        let (yes, no, open) =
            (claim("y", "", true, false), claim("n", "", false, false), claim("o", "", true, true));
        for (claims, expected) in [
            (vec![], None),
            (vec![yes.clone()], Some(Standing::Reproduced)),
            (vec![no.clone()], Some(Standing::Refuted)),
            (vec![open.clone()], Some(Standing::Undecided)),
            (vec![yes.clone(), no.clone()], Some(Standing::InPart)),
            (vec![yes.clone(), no.clone(), open.clone()], Some(Standing::InPart)),
            // Whichever way the open one falls, it may be another.
            (vec![yes.clone(), open.clone()], Some(Standing::Undecided)),
            (vec![no.clone(), open.clone()], Some(Standing::Undecided)),
        ] {
            assert_eq!(standing(&claims), expected, "{claims:?}");
        }
    }

    #[test]
    fn the_repaired_scheme_stands_for_the_printed_one() {
        let printed = claim("c", "published", false, false);
        let claims = [printed.clone(), claim("c", "repaired", true, false)];
        assert_eq!(standing(&claims), Some(Standing::Reproduced));
        let judged = judgement(&claims, Some(Variant::Published)).unwrap();
        assert_eq!(judged.standing, Standing::Refuted);
        // Another claim's repair is none of this one's.
        assert_eq!(standing(&[printed, claim("d", "repaired", true, false)]), Some(Standing::InPart));
    }

    #[test]
    fn our_own_bars_and_other_readings_do_not_count() {
        let ours = Recorded { aside: true, ..claim("bar", "", false, false) };
        assert_eq!(standing(std::slice::from_ref(&ours)), None);
        assert_eq!(standing(&[ours, claim("c", "", true, false)]), Some(Standing::Reproduced));
    }

    #[test]
    fn it_says_what_decided() {
        let claims = [claim("y", "", true, false), claim("n", "", false, false), claim("o", "", true, true)];
        let judged = judgement(&claims, None).unwrap();
        assert_eq!(judged.count(), "1 of 3 claims hold, 1 is undecided");
        assert_eq!(judged.reason(), "n: a reason");
        assert_eq!(judgement(&claims[..1], None).unwrap().count(), "the claim holds");
        assert_eq!(judgement(&claims[1..2], None).unwrap().count(), "the claim does not hold");
        assert_eq!(judgement(&claims[2..], None).unwrap().count(), "the claim is undecided");
        assert!(judgement(&claims[..1], None).unwrap().reason().is_empty());
    }
}
