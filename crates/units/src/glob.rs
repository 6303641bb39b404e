//! Patterns of names with wildcards.

use alloc::string::String;
use alloc::vec::Vec;

/// Returns true if `name` matches the whole `pattern`, in which `*` stands for any characters, also none, and `?` for
/// one character.
pub fn matches_glob(pattern: &str, name: &str) -> bool {
    let (mut pattern, mut name) = (pattern.chars(), name.chars());
    // The latest `*`, with the part of the name that follows what it stands for so far.
    let mut star: Option<(core::str::Chars<'_>, core::str::Chars<'_>)> = None;
    loop {
        let (rest, left) = (pattern.clone(), name.clone());
        match (pattern.next(), name.next()) {
            (None, None) => return true,
            (Some('*'), _) => {
                name = left;
                star = Some((pattern.clone(), name.clone()));
            }
            (Some(wanted), Some(found)) if wanted == '?' || wanted == found => {}
            _ => {
                drop((rest, left));
                // The star stands for one more character.
                let Some((after, behind)) = &mut star else { return false };
                if behind.next().is_none() {
                    return false;
                }
                (pattern, name) = (after.clone(), behind.clone());
            }
        }
    }
}

/// Returns a name with `*` in place of each number: the pattern of names like it.
pub fn name_kind(name: &str) -> String {
    let mut kind = String::with_capacity(name.len());
    for letter in name.chars() {
        let letter = if letter.is_ascii_digit() { '*' } else { letter };
        if letter != '*' || !kind.ends_with('*') {
            kind.push(letter);
        }
    }
    kind
}

/// Returns the kinds of names ([`name_kind`]) in the order of their first names, at most eight, for a message.
pub fn name_kinds<T: AsRef<str>>(names: impl IntoIterator<Item = T>) -> Vec<String> {
    const MOST: usize = 8;
    let mut kinds: Vec<String> = Vec::new();
    for name in names {
        let kind = name_kind(name.as_ref());
        if !kinds.contains(&kind) {
            kinds.push(kind);
        }
        if kinds.len() == MOST {
            break;
        }
    }
    kinds
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wildcards_by_hand() {
        for (pattern, name) in [
            ("leaf0", "leaf0"),
            ("*", ""),
            ("*", "leaf0"),
            ("p*.leaf*", "p0.leaf12"),
            ("leaf?", "leaf7"),
            ("*-spine1", "leaf0-spine1"),
            ("srv3.gpu*-p2.leaf*", "srv3.gpu7-p2.leaf0"),
            ("a*b*c", "abbcbc"),
            ("**x", "x"),
        ] {
            assert!(matches_glob(pattern, name), "{pattern} matches {name}");
        }
        for (pattern, name) in [
            ("leaf", "leaf0"),
            ("leaf?", "leaf"),
            ("leaf?", "leaf12"),
            ("p*.leaf*", "p0-leaf12"),
            ("a*b*c", "abbcb"),
            ("", "x"),
        ] {
            assert!(!matches_glob(pattern, name), "{pattern} does not match {name}");
        }
    }

    #[test]
    fn kinds_of_names_have_no_numbers() {
        assert_eq!(name_kind("srv12.gpu3"), "srv*.gpu*");
        assert_eq!(name_kind("p*.leaf1*"), "p*.leaf*");
        assert_eq!(name_kinds(["tor0", "tor1", "agg0.1", "core"]), ["tor*", "agg*.*", "core"]);
    }
}
