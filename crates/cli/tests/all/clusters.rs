//! `pathweave check` of the clusters in `scenarios/clusters`: each description against a kept text, and its sizes against
//! numbers that were counted by hand from the sources that the files name.

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;

use super::common::{Lab, root};

/// Size of a cluster: GPUs, switches of each tier from the leaves on, and cables.
struct Size {
    name: &'static str,
    gpus: u32,
    switches: &'static [u32],
    cables: u32,
}

const fn size(name: &'static str, gpus: u32, switches: &'static [u32], cables: u32) -> Size {
    Size { name, gpus, switches, cables }
}

const SIZES: [Size; 15] = [
    // Two planes of 8 leaves with 64 ports down, 4 spines: 1,024 NIC ports, and as many cables above.
    size("b300", 512, &[16, 8], 2_048),
    // 32 leaves with 20 ports down and one to each of 20 spines.
    size("dgx-a100", 640, &[32, 20], 640 + 640),
    // NVIDIA's table for 16 units: 128 leaves, 128 spines, 64 cores; 4,096 cables three times.
    size("dgx-b200", 4_096, &[128, 128, 64], 3 * 4_096),
    // 576 ports of 800G, as NVIDIA's table for one unit with XDR: 8 leaves, 4 spines, 576 cables twice.
    size("gb300", 576, &[8, 4], 2 * 576),
    // 15 segments of 16 ToRs, 60 switches above them in each of 2 planes; 240 ToRs with 60 ports up.
    size("hpn-7", 15_360, &[240, 120], 30_720 + 240 * 60),
    // 24 sets of 8 ToRs with 64 ports down and 32 up; as many switches above with 32 up, which fill 48 ports of 128 cores.
    size("megascale", 12_288, &[192, 192, 128], 12_288 + 192 * 32 + 128 * 48),
    // 8 pods of 192 racks: 16 ports down and up a ToR; 16 switches a pod with 28 ports up.
    size("meta-24k", 24_576, &[1_536, 128, 64], 24_576 + 1_536 * 16 + 8 * 16 * 28),
    size("mi300x", 128, &[8, 8], 128 + 128),
    // 8 planes of 512 leaves and 256 spines.
    size("mrc-131k", 131_072, &[8 * 512, 8 * 256], 2_097_152),
    // Four rails with two leaves each.
    size("nvl72", 144, &[8, 6], 144 + 144),
    // 512 cards of 100G; 16 ToRs with 8 ports of 400G up, as many above, to 32 cores.
    size("p4d", 1_024, &[16, 32, 32], 512 + 16 * 8 + 32 * 4),
    size("p5", 256, &[16, 32, 32], 1_024 + 16 * 16 + 32 * 8),
    size("p5en", 256, &[16, 32, 32], 512 + 16 * 16 + 32 * 8),
    size("p6-b200", 256, &[16, 32, 32], 256 + 16 * 16 + 32 * 8),
    // NVIDIA's table for 4 units: 32 leaves, 16 spines, 1,024 cables twice.
    size("superpod", 1_024, &[32, 16], 2 * 1_024),
];

fn kept_at(name: &str) -> PathBuf {
    root().join(format!("crates/cli/tests/clusters/{name}.txt"))
}

/// Returns the description of a cluster, up to the estimates, which depend on the machine.
fn described(name: &str) -> String {
    let file = root().join(format!("scenarios/clusters/{name}.toml"));
    let done = Lab::new().run(&["check", &file.display().to_string(), "--threads", "1"]);
    assert_eq!(done.code, 0, "{}", done.err);
    let lines = done.out.lines().skip_while(|line| !line.starts_with("# network "));
    let lines = lines.take_while(|line| !line.starts_with("# estimate "));
    lines.map(|line| line.trim_start_matches("# ").to_owned() + "\n").collect()
}

/// Returns the number that follows a text.
fn number(text: &str, before: &str) -> u32 {
    let at = text.find(before).unwrap_or_else(|| panic!("no {before:?} in {text}")) + before.len();
    let digits: String = text[at..].chars().take_while(char::is_ascii_digit).collect();
    digits.parse().unwrap()
}

fn checks(name: &str) {
    let text = described(name);
    let size = SIZES.iter().find(|size| size.name == name).unwrap();
    assert_eq!(number(&text, "hosts: "), size.gpus, "{text}");
    assert_eq!(number(&text, "cables: "), size.cables, "{text}");
    let tiers = text.lines().filter(|line| line.starts_with("tier ") && line.contains(" switches: "));
    let switches: Vec<u32> = tiers.map(|line| number(line, " switches: ")).collect();
    assert_eq!(switches, size.switches, "{text}");
    if std::env::var_os("PATHWEAVE_BLESS").is_some() {
        fs::write(kept_at(name), text).unwrap();
        return;
    }
    let kept = fs::read_to_string(kept_at(name)).unwrap();
    assert!(
        kept == text,
        "`pathweave check scenarios/clusters/{name}.toml` prints another text; if that is meant, write it with \
         PATHWEAVE_BLESS=1 cargo test -p pathweave-cli --test all clusters:\n{text}\nkept:\n{kept}"
    );
}

macro_rules! clusters {
    ($($(#[$slow:meta])? $test:ident: $name:literal,)*) => {
        $(#[test] $(#[$slow])? fn $test() { checks($name); })*

        /// Each file has a test, a size and a kept text.
        #[test]
        fn every_cluster_is_checked() {
            let names = |folder: &str, end: &str| -> BTreeSet<String> {
                let files = fs::read_dir(root().join(folder)).unwrap();
                files
                    .filter_map(|file| Some(file.unwrap().file_name().to_str()?.strip_suffix(end)?.to_owned()))
                    .collect()
            };
            let tested: BTreeSet<String> = [$($name),*].map(str::to_owned).into();
            assert_eq!(names("scenarios/clusters", ".toml"), tested);
            assert_eq!(names("crates/cli/tests/clusters", ".txt"), tested);
            assert_eq!(SIZES.iter().map(|size| size.name.to_owned()).collect::<BTreeSet<_>>(), tested);
        }
    };
}

clusters! {
    b300: "b300",
    dgx_a100: "dgx-a100",
    dgx_b200: "dgx-b200",
    gb300: "gb300",
    hpn_7: "hpn-7",
    megascale: "megascale",
    #[ignore = "a quarter of a minute: cargo test -p pathweave-cli --test all clusters -- --ignored"]
    meta_24k: "meta-24k",
    mi300x: "mi300x",
    #[ignore = "minutes and 6 GB: cargo test -p pathweave-cli --test all clusters -- --ignored"]
    mrc_131k: "mrc-131k",
    nvl72: "nvl72",
    p4d: "p4d",
    p5: "p5",
    p5en: "p5en",
    p6_b200: "p6-b200",
    superpod: "superpod",
}
