//! The colour of a scheme, the same on every page.

/// Colours of `style.css`, `--c0` and up.
const COLOURS: usize = 8;

/// Schemes that are compared most. What others are compared with as a rule is grey.
const OWN: [(&str, usize); 16] = [
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

/// The number of the colour of each name. A name has the same one on every page, unless a page has several names of one colour: then
/// the later of them have what is left. Only beyond eight names do two share one. A name may have more words behind that of its scheme.
pub fn scheme_colours(names: &[&str]) -> Vec<usize> {
    let scheme = |name: &str| name.split(' ').next().unwrap_or_default().to_owned();
    let own = |name: &str| OWN.iter().find(|(known, _)| *known == scheme(name)).map(|(_, colour)| *colour);
    // FNV-1a.
    let of_text = |name: &str| {
        let hash = scheme(name)
            .bytes()
            .fold(0x811c_9dc5u32, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193));
        (hash >> 16) as usize % COLOURS
    };
    let mut colours = vec![None; names.len()];
    let mut taken = [false; COLOURS];
    // Those that have a colour of their own choose first.
    for known in [true, false] {
        for (place, name) in names.iter().enumerate().filter(|(_, name)| own(name).is_some() == known) {
            let wanted = own(name).unwrap_or_else(|| of_text(name));
            let free =
                (wanted..wanted + COLOURS).map(|colour| colour % COLOURS).find(|&colour| !taken[colour]);
            let colour = free.unwrap_or(wanted);
            taken[colour] = true;
            colours[place] = Some(colour);
        }
    }
    colours.into_iter().flatten().collect()
}

#[cfg(test)]
mod tests {
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
    fn up_to_eight_names_differ() {
        let names = ["ecmp packet", "ecmp flow", "rps packet", "rps flow", "a", "b", "c", "d"];
        let mut colours = scheme_colours(&names);
        assert_eq!(colours[..4], [7, 0, 6, 1]);
        colours.sort_unstable();
        assert_eq!(colours, [0, 1, 2, 3, 4, 5, 6, 7]);
        assert_eq!(scheme_colours(&[&names[..], &["e"]].concat()).len(), 9);
    }
}
