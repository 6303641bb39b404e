//! Error for a name that does not exist.

use super::closest_name;

/// Error for a name that does not exist, with the existing names and the most similar one.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no {kind} is named \"{name}\"{}; there are: {names}", meant(nearest.as_deref()))]
pub struct UnknownName {
    kind: String,
    name: String,
    names: String,
    nearest: Option<String>,
}

impl UnknownName {
    /// Creates the error that `name`, an item of this kind ("paper"), is none of `names`.
    pub fn new<'a>(kind: &str, name: &str, names: impl Iterator<Item = &'a str> + Clone) -> Self {
        UnknownName {
            kind: kind.to_owned(),
            name: name.to_owned(),
            nearest: closest_name(name, names.clone()).map(str::to_owned),
            names: names.collect::<Vec<_>>().join(", "),
        }
    }
}

fn meant(nearest: Option<&str>) -> String {
    nearest.map_or_else(String::new, |name| format!(" (did you mean \"{name}\"?)"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_lists_the_names_and_the_nearest_one() {
        let told = |name: &str| UnknownName::new("paper", name, ["laps", "reps"].into_iter()).to_string();
        assert_eq!(told("rep"), "no paper is named \"rep\" (did you mean \"reps\"?); there are: laps, reps");
        assert_eq!(told("conweave"), "no paper is named \"conweave\"; there are: laps, reps");
    }
}
