//! "Did you mean ...?": suggests the nearest existing name for an unknown one, and words the suggestion.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

/// Longest name that is compared, in characters. A longer one is hardly a typing error, and the comparison takes time
/// in proportion to the product of both lengths.
const LONGEST: usize = 64;

/// Returns the candidate closest to `name`, if one is close enough to be what was meant; of equals the first.
///
/// A candidate is close if at most a third of its letters need to be changed, added, left out, or swapped with an
/// adjacent one. Case and the choice between `-` and `_` cost nothing. A truncated name ("tree" for "fat-tree")
/// counts as close only if no other candidate does.
pub fn closest_name<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let name = normalize(name)?;
    let mut best: Option<(usize, &'a str)> = None;
    for candidate in candidates {
        let Some(other) = normalize(candidate) else { continue };
        if let Some(score) = score(&name, &other)
            && best.is_none_or(|(least, _)| score < least)
        {
            best = Some((score, candidate));
        }
    }
    best.map(|(_, candidate)| candidate)
}

/// Returns the end of an error message, with the suggestion of [`closest_name`]; empty without a suggestion.
pub fn suggestion(nearest: Option<&str>) -> String {
    nearest.map_or_else(String::new, |name| format!("; did you mean \"{name}\"?"))
}

/// Normalizes a name for the comparison; `None` if it is too long.
fn normalize(text: &str) -> Option<Vec<char>> {
    let letters = || text.chars().flat_map(char::to_lowercase).map(|c| if c == '_' { '-' } else { c });
    (letters().take(LONGEST + 1).count() <= LONGEST).then(|| letters().collect())
}

/// Returns the distance between a candidate and a name; `None` if the candidate is too far.
fn score(name: &[char], other: &[char]) -> Option<usize> {
    /// Score above which a candidate is a completion of a truncated name: more than any number of edits.
    const CUT_SHORT: usize = 2 * LONGEST;
    let longest = name.len().max(other.len());
    // Each letter of difference in length is an edit.
    if name.len().abs_diff(other.len()) * 3 <= longest {
        let edits = edits(name, other);
        if edits * 3 <= longest {
            return Some(edits);
        }
    }
    let (name, other): (String, String) = (name.iter().collect(), other.iter().collect());
    let is_part = |(at, _): (usize, &str)| at == 0 || other[..at].ends_with('-');
    let cut_short = name.chars().count() >= 3 && other.match_indices(name.as_str()).any(is_part);
    cut_short.then_some(CUT_SHORT + longest)
}

/// Returns the edits that turn one word into the other: letters to change, add, leave out or swap with the next
/// (restricted Damerau-Levenshtein distance, each position edited once).
fn edits(a: &[char], b: &[char]) -> usize {
    let mut before: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=b.len()).collect();
    for i in 1..=a.len() {
        let mut row = Vec::with_capacity(b.len() + 1);
        row.push(i);
        for j in 1..=b.len() {
            let same = a[i - 1] == b[j - 1];
            let mut least = (last[j - 1] + usize::from(!same)).min(last[j] + 1).min(row[j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                least = least.min(before[j - 2] + 1);
            }
            row.push(least);
        }
        before = core::mem::replace(&mut last, row);
    }
    last[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_what_was_meant() {
        let names = ["fat-tree", "leaf-spine", "star", "dumbbell"];
        assert_eq!(closest_name("fattree", names), Some("fat-tree"));
        assert_eq!(closest_name("Fat_Tree", names), Some("fat-tree"));
        assert_eq!(closest_name("spine", names), Some("leaf-spine"));
        assert_eq!(closest_name("satr", names), Some("star"));
        assert_eq!(closest_name("torus", names), None);
        assert_eq!(closest_name("x", []), None);
    }

    #[test]
    fn a_slip_is_recognised_and_nonsense_is_not() {
        assert_eq!(closest_name("tor33", ["core1", "tor3"]), Some("tor3"));
        assert_eq!(closest_name("zzz", ["tor3", "core1"]), None);
        assert_eq!(closest_name("udpm", ["ecmp", "udmp"]), Some("udmp"), "two letters swapped");
        assert_eq!(closest_name("host9", ["host1", "host2"]), Some("host1"), "of equals the first");
        assert_eq!(closest_name("", ["a"]), None);
    }

    #[test]
    fn an_error_ends_in_what_was_meant() {
        assert_eq!(suggestion(closest_name("udpm", ["udmp"])), "; did you mean \"udmp\"?");
        assert_eq!(suggestion(None), "");
    }

    #[test]
    fn edits_by_hand() {
        let of = |a: &str, b: &str| edits(&a.chars().collect::<Vec<_>>(), &b.chars().collect::<Vec<_>>());
        assert_eq!(of("", "abc"), 3);
        assert_eq!(of("kitten", "sitting"), 3);
        assert_eq!(of("ab", "ba"), 1);
        assert_eq!(of("size", "size"), 0);
    }

    #[test]
    fn long_names_are_no_slips_and_cost_nothing() {
        let long = "a".repeat(1 << 20);
        assert_eq!(closest_name(&long, [long.as_str(), "a"]), None);
        assert_eq!(closest_name("a", [long.as_str(), "a"]), Some("a"));
    }
}
