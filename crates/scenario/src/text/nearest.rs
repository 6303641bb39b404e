//! "Did you mean ...?"

/// The candidate closest to `name`, if one is close enough to be what was meant. Case and the choice between
/// `-` and `_` cost nothing.
pub fn nearest<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let plain = |text: &str| text.to_lowercase().replace('_', "-");
    let name = plain(name);
    let scored = candidates.into_iter().map(|candidate| {
        let other = plain(candidate);
        let edits = strsim::damerau_levenshtein(&name, &other);
        // A third of the letters may be wrong. A shortened name counts as close, but less so than a typing error.
        let close = edits * 3 <= name.chars().count().max(other.chars().count());
        let shortened = name.len() >= 3 && (other.starts_with(&name) || other.contains(&format!("-{name}")));
        (
            if close || name == other {
                edits
            } else if shortened {
                100 + edits
            } else {
                usize::MAX
            },
            candidate,
        )
    });
    let best = scored.min_by_key(|&(score, _)| score)?;
    (best.0 < usize::MAX).then_some(best.1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_what_was_meant() {
        let names = ["fat-tree", "leaf-spine", "star", "dumbbell"];
        assert_eq!(nearest("fattree", names), Some("fat-tree"));
        assert_eq!(nearest("Fat_Tree", names), Some("fat-tree"));
        assert_eq!(nearest("spine", names), Some("leaf-spine"));
        assert_eq!(nearest("satr", names), Some("star"));
        assert_eq!(nearest("torus", names), None);
        assert_eq!(nearest("x", []), None);
    }
}
