//! Colours of schemes, the same on every page.

use std::collections::BTreeMap;

/// Colours by number, as red, green and blue: `--c0` and up of `style.css` on a light page. They are distinguishable
/// with any colour vision.
pub const SCHEME_COLOURS: [(u8, u8, u8); 8] = [
    (0x00, 0x72, 0xb2),
    (0xd5, 0x5e, 0x00),
    (0x00, 0x9e, 0x73),
    (0xcc, 0x79, 0xa7),
    (0xb8, 0x86, 0x0b),
    (0x3a, 0xa6, 0xdd),
    (0x5b, 0x4b, 0x9a),
    (0x6b, 0x72, 0x80),
];
const COUNT: usize = SCHEME_COLOURS.len();

/// Colours of the schemes that are compared most often. The usual baseline is grey.
const SCHEME_COLOUR_NUMBERS: [(&str, usize); 16] = [
    ("ecmp", 7),
    ("rps", 6),
    ("udmp", 0),
    ("weave", 2),
    ("reps", 4),
    ("mprdma", 1),
    ("laps", 3),
    ("dlbf", 5),
    ("reflex", 1),
    ("plb", 3),
    ("swift-rps", 5),
    ("uet", 4),
    ("conga", 3),
    ("letflow", 5),
    ("qp-scaling", 1),
    ("ndp", 5),
];

/// Returns the number of the colour of each name. A name has the same colour on every page, unless a page has several
/// names of one colour. Then the later ones take a free colour. Two names share a colour only if there are more than
/// eight. The first word of a name is its scheme. A variant has the colour of the scheme that its name contains:
/// `study-laps` and `laps-published` have that of `laps`.
pub fn scheme_colours(names: &[&str]) -> Vec<usize> {
    assign(names, |_, _| true)
}

/// Returns the number of the colour of each name on a page of several pictures, of which each shows some of the names.
/// A name has one colour in all pictures. Colours are as of [`scheme_colours`], except that two names that no picture
/// shows together may share one if the page has more than eight names.
pub fn scheme_colours_in_pictures<'a>(pictures: &[Vec<&'a str>]) -> BTreeMap<&'a str, usize> {
    let mut names: Vec<&str> = Vec::new();
    for name in pictures.iter().flatten() {
        if !names.contains(name) {
            names.push(name);
        }
    }
    let together =
        |one: &str, other: &str| pictures.iter().any(|shown| shown.contains(&one) && shown.contains(&other));
    let colours = assign(&names, |one, other| together(names[one], names[other]));
    names.into_iter().zip(colours).collect()
}

/// Gives each name the next colour from its preferred one that no other name has. If there is none, gives it the next
/// one that no name `beside` it has.
fn assign(names: &[&str], beside: impl Fn(usize, usize) -> bool) -> Vec<usize> {
    let wishes: Vec<_> = names.iter().map(|name| preferred_colour(name)).collect();
    let mut colours: Vec<Option<usize>> = vec![None; names.len()];
    // Names with a colour of their own choose first.
    for kin in [NameMatch::Scheme, NameMatch::Variant, NameMatch::None] {
        for (place, (_, wanted)) in wishes.iter().enumerate().filter(|(_, (of, _))| *of == kin) {
            let next = || (*wanted..*wanted + COUNT).map(|colour| colour % COUNT);
            let unused = next().find(|&colour| !colours.contains(&Some(colour)));
            let holds = |other: usize, colour| colours[other] == Some(colour);
            let is_free =
                |colour| !(0..names.len()).any(|other| holds(other, colour) && beside(place, other));
            let colour = unused.or_else(|| next().find(|&colour| is_free(colour)));
            colours[place] = Some(colour.unwrap_or(*wanted));
        }
    }
    colours.into_iter().flatten().collect()
}

/// Relation of a name to the schemes with a colour of their own.
#[derive(Clone, Copy, PartialEq, Eq)]
enum NameMatch {
    Scheme,
    Variant,
    None,
}

/// Returns the colour of a name if it is free.
fn preferred_colour(name: &str) -> (NameMatch, usize) {
    let scheme = name.split(' ').next().unwrap_or_default();
    let own = |name: &str| {
        SCHEME_COLOUR_NUMBERS.iter().find(|(known, _)| *known == name).map(|(_, colour)| *colour)
    };
    if let Some(colour) = own(scheme) {
        return (NameMatch::Scheme, colour);
    }
    if let Some(colour) = scheme.split('-').find_map(own) {
        return (NameMatch::Variant, colour);
    }
    // FNV-1a.
    let hash =
        scheme.bytes().fold(0x811c_9dc5u32, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193));
    (NameMatch::None, (hash >> 16) as usize % COUNT)
}

#[cfg(test)]
mod tests {
    use std::path::{Path, PathBuf};

    use super::*;

    #[test]
    fn a_scheme_keeps_its_colour_whatever_stands_beside_it() {
        let weave = |names: &[&str]| {
            let at = names.iter().position(|name| *name == "weave").expect("it is among them");
            scheme_colours(names)[at]
        };
        let all: [&[&str]; 4] = [
            &["weave"],
            &["ecmp", "weave"],
            &["unknown", "weave", "udmp"],
            &["rps", "udmp", "reps", "weave", "ecmp"],
        ];
        assert_eq!(all.map(weave), [2; 4]);
        assert_eq!(scheme_colours(&["udmp", "ecmp"]), [0, 7]);
        assert_eq!(scheme_colours(&["mine"]), scheme_colours(&["ecmp", "mine"])[1..]);
    }

    #[test]
    fn a_variant_has_the_colour_of_its_scheme_unless_both_are_there() {
        let variants =
            ["study-laps", "nic-dlbf-published", "reflex-swift-published", "ecmp-sr", "qp-scaling"];
        assert_eq!(variants.map(|name| scheme_colours(&[name])[0]), [3, 5, 1, 7, 1]);
        assert_eq!(scheme_colours(&["ecmp-sr", "ecmp"])[1], 7);
    }

    #[test]
    fn pages_use_the_same_colours() {
        let css = include_str!("../../../web/src/style.css");
        let line = css.lines().find(|line| line.contains("--c0:")).expect("the light page has colours");
        for (number, (red, green, blue)) in SCHEME_COLOURS.into_iter().enumerate() {
            let rule = format!("--c{number}: #{red:02x}{green:02x}{blue:02x};");
            assert!(line.contains(&rule), "{rule} is not in {line}");
        }
    }

    #[test]
    fn up_to_eight_names_differ() {
        let names = ["ecmp packet", "ecmp flow", "rps packet", "rps flow", "a", "b", "c", "d"];
        let mut colours = scheme_colours(&names);
        assert_eq!(colours[..4], [7, 0, 6, 1]);
        colours.sort_unstable();
        assert_eq!(colours, [0, 1, 2, 3, 4, 5, 6, 7]);
        assert_eq!(scheme_colours(&[&names[..], &["e"]].concat()).len(), 9);
    }

    #[test]
    fn names_of_one_picture_differ_on_a_page_of_more_than_eight_names() {
        let pictures = [
            vec!["ecmp", "weave", "udmp", "laps"],
            vec!["ecmp", "weave", "erd", "dlbf"],
            vec!["ecmp", "timely", "swift", "reflex-timely", "reflex-swift", "weave"],
        ];
        let colours = scheme_colours_in_pictures(&pictures);
        assert_eq!(colours.len(), 10);
        for shown in &pictures {
            let mut of_picture: Vec<usize> = shown.iter().map(|name| colours[name]).collect();
            of_picture.sort_unstable();
            of_picture.dedup();
            assert_eq!(of_picture.len(), shown.len(), "{shown:?}: {colours:?}");
        }
        assert_eq!(["ecmp", "weave", "udmp", "laps", "dlbf"].map(|name| colours[name]), [7, 2, 0, 3, 5]);
    }

    /// Returns the source files in a folder and below.
    fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
        for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
            let path = entry.path();
            if path.is_dir() {
                sources(&path, found);
            } else if path
                .extension()
                .is_some_and(|extension| ["rs", "ts", "css", "py"].iter().any(|known| extension == *known))
            {
                found.push(path);
            }
        }
    }

    /// Nothing but this table and its copy for pages gives colours to schemes.
    #[test]
    fn no_other_source_has_a_table_of_these_colours() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let mut all = Vec::new();
        let crates = std::fs::read_dir(root.join("crates")).expect("the workspace has crates").flatten();
        let folders = crates.map(|entry| entry.path().join("src"));
        folders
            .chain(["web/src", "python/pathweave"].map(|folder| root.join(folder)))
            .for_each(|folder| sources(&folder, &mut all));
        let has_several = |path: &PathBuf| {
            let text = std::fs::read_to_string(path).unwrap_or_default().to_lowercase();
            let forms = |(red, green, blue): (u8, u8, u8)| {
                [
                    format!("#{red:02x}{green:02x}{blue:02x}"),
                    format!("{red}, {green}, {blue}"),
                    format!("0x{red:02x}, 0x{green:02x}, 0x{blue:02x}"),
                ]
            };
            SCHEME_COLOURS
                .into_iter()
                .filter(|&colour| forms(colour).iter().any(|form| text.contains(form)))
                .count()
                > 1
        };
        let mut found: Vec<_> = all
            .into_iter()
            .filter(has_several)
            .filter_map(|path| Some(path.file_name()?.to_owned()))
            .collect();
        found.sort();
        assert_eq!(found, ["colours.rs", "style.css"]);
    }
}
