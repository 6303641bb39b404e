//! Conversion of ASTRA-sim's `system.json` to lines of a workload: algorithms of collectives, and the compute rate of
//! GPUs.

use pathweave_workload::{Algorithm, Operation};
use serde_json::{Map, Value};

use crate::text::{closest_name, suggestion};

/// Collectives: key in `system.json`, operation, and field of `algorithms` in a workload.
const COLLECTIVES: [(&str, Operation, &str); 4] = [
    ("all-reduce-implementation", Operation::AllReduce, "all_reduce"),
    ("reduce-scatter-implementation", Operation::ReduceScatter, "reduce_scatter"),
    ("all-gather-implementation", Operation::AllGather, "all_gather"),
    ("all-to-all-implementation", Operation::AllToAll, "all_to_all"),
];
/// Names of algorithms. The prefix "one" stands for a collective over one dimension; a number after "direct" bounds
/// the chunks in flight.
const ALGORITHMS: [(&str, Algorithm); 4] = [
    ("ring", Algorithm::Ring),
    ("direct", Algorithm::Direct),
    ("halvingDoubling", Algorithm::HalvingDoubling),
    ("doubleBinaryTree", Algorithm::DoubleBinaryTree),
];
/// Keys without an effect on anything a workload describes.
const WITHOUT_EFFECT: [&str; 6] = [
    "trace-enabled",
    "track-local-mem",
    "local-mem-trace-filename",
    "boost-mode",
    "replay-only",
    "injection-scale",
];
/// Other keys that ASTRA-sim reads, and their meaning.
const OTHERS: [(&str, &str); 18] = [
    ("scheduling-policy", "the order of collectives that are ready"),
    ("collective-optimization", "how a collective over several dimensions is divided among them"),
    ("preferred-dataset-splits", "into how many chunks a collective is cut"),
    ("active-chunks-per-dimension", "how many chunks are on their way at once"),
    ("endpoint-delay", "the delay of a message at its ends"),
    ("local-reduction-delay", "the time that a reduction takes"),
    ("local-mem-bw", "the rate of memory"),
    ("model-shared-bus", "the bus that NPUs share"),
    ("L", "the bus that NPUs share"),
    ("o", "the bus that NPUs share"),
    ("g", "the bus that NPUs share"),
    ("G", "the bus that NPUs share"),
    ("all-reduce-implementation-custom", "an algorithm in a file"),
    ("reduce-scatter-implementation-custom", "an algorithm in a file"),
    ("all-gather-implementation-custom", "an algorithm in a file"),
    ("all-to-all-implementation-custom", "an algorithm in a file"),
    ("per-node-custom-implementation", "algorithms in files, by node"),
    ("inter-dimension-scheduling", "the order of dimensions"),
];

/// Returns the lines of a workload of kind "chakra" or "simai" that express the file. Appends everything they cannot
/// express to `lost`.
///
/// # Errors
/// The file is not a JSON object, or a key or value is unknown.
pub(super) fn workload_lines(file: &str, text: &str, lost: &mut Vec<String>) -> Result<String, String> {
    let read: Map<String, Value> = serde_json::from_str(text).map_err(|why| {
        format!("{file}:{}: expected an object, as system.json of ASTRA-sim is: {why}", why.line())
    })?;
    let mut algorithms = Vec::new();
    for (key, operation, field) in COLLECTIVES {
        let Some(value) = read.get(key) else { continue };
        let names = names(value).map_err(|allowed| format!("{file}: {key} = {value}: {allowed}"))?;
        match algorithm(&names, operation).map_err(|allowed| format!("{file}: {key} = {value}: {allowed}"))? {
            Ok(algorithm) => algorithms.push(format!("{field} = \"{}\"", algorithm.name())),
            Err(why) => lost.push(format!("{key} = {value}: {why}")),
        }
    }
    for (key, value) in &read {
        let is_read = COLLECTIVES.iter().any(|(name, ..)| name == key)
            || ["peak-perf", "roofline-enabled"].contains(&&**key);
        if is_read || WITHOUT_EFFECT.contains(&&**key) {
            continue;
        }
        match OTHERS.iter().find(|(name, _)| name == key) {
            Some((_, about)) => lost.push(format!("{key} = {value}: {about}")),
            None => {
                let known =
                    COLLECTIVES.iter().map(|(name, ..)| *name).chain(OTHERS.iter().map(|(name, _)| *name));
                let hint = suggestion(closest_name(key, known.chain(["peak-perf", "roofline-enabled"])));
                return Err(format!("{file}: ASTRA-sim has no key \"{key}\"{hint}"));
            }
        }
    }
    let mut lines = vec![
        format!("# Of {file}, for a [[workload]] of kind = \"chakra\" or \"simai\"."),
        format!("algorithms = {{ {} }}", algorithms.join(", ")),
    ];
    // Without the roofline, computations take the durations of the trace.
    if let Some(peak) = read.get("peak-perf").filter(|_| is_on(read.get("roofline-enabled"))) {
        let is_rate = peak.as_f64().is_some_and(|peak| peak > 0.0);
        if !is_rate {
            return Err(format!(
                "{file}: peak-perf = {peak}: expected a number of 10^12 operations a second above 0"
            ));
        }
        lines.push(format!("peak_tflops = {:?}  # of kind = \"chakra\"", peak.as_f64().unwrap_or_default()));
    }
    Ok(lines.join("\n") + "\n")
}

fn is_on(value: Option<&Value>) -> bool {
    match value {
        Some(Value::Bool(on)) => *on,
        Some(number) => number.as_f64() != Some(0.0),
        None => false,
    }
}

/// Returns the names of the algorithms by dimension.
fn names(value: &Value) -> Result<Vec<&str>, String> {
    let list = value.as_array().filter(|list| !list.is_empty());
    list.and_then(|list| list.iter().map(Value::as_str).collect())
        .ok_or_else(|| "expected a list of names, one a dimension".to_owned())
}

/// Returns the algorithm of an operation, or the reason why a workload cannot express it.
fn algorithm(names: &[&str], operation: Operation) -> Result<Result<Algorithm, String>, String> {
    let mut found = Vec::new();
    for name in names {
        let known = |plain: &str| ALGORITHMS.iter().find(|(known, _)| known.eq_ignore_ascii_case(plain));
        let plain = name.strip_prefix("one").unwrap_or(name).trim_end_matches(|c: char| c.is_ascii_digit());
        let Some(&(_, algorithm)) = known(plain) else {
            let known: Vec<&str> = ALGORITHMS.iter().map(|(known, _)| *known).collect();
            let hint = suggestion(closest_name(name, known.iter().copied()));
            return Err(format!("no algorithm is named \"{name}\"{hint} (there are {})", known.join(", ")));
        };
        found.push(algorithm);
    }
    if found.len() > 1 {
        let what = "over several dimensions; here a collective is done among all its ranks, or all_reduce = \"hierarchical\" with local_size";
        return Ok(Err(what.to_owned()));
    }
    let allowed = operation.algorithms();
    if allowed.contains(&found[0]) {
        return Ok(Ok(found[0]));
    }
    let allowed: Vec<&str> = allowed.iter().map(|algorithm| algorithm.name()).collect();
    Ok(Err(format!("{} is done by {} here", operation.name(), allowed.join(", "))))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &str) -> (String, Vec<String>) {
        let mut lost = Vec::new();
        (workload_lines("system.json", text, &mut lost).unwrap(), lost)
    }

    #[test]
    fn algorithms_and_rates_are_kept_and_the_rest_is_named() {
        let (text, lost) = lines(
            r#"{"scheduling-policy": "LIFO", "endpoint-delay": 10, "all-reduce-implementation": ["doubleBinaryTree"],
                "all-gather-implementation": ["oneRing"], "reduce-scatter-implementation": ["ring", "ring"],
                "all-to-all-implementation": ["direct4"], "boost-mode": 0, "roofline-enabled": 1, "peak-perf": 900}"#,
        );
        assert_eq!(
            text,
            "# Of system.json, for a [[workload]] of kind = \"chakra\" or \"simai\".\n\
             algorithms = { all_reduce = \"double-binary-tree\", all_gather = \"ring\", all_to_all = \"direct\" }\n\
             peak_tflops = 900.0  # of kind = \"chakra\"\n"
        );
        let begins: Vec<&str> = lost.iter().map(|lost| lost.split(" = ").next().unwrap()).collect();
        assert_eq!(begins, ["reduce-scatter-implementation", "endpoint-delay", "scheduling-policy"]);
        // Every key that ASTRA-sim (518bd51) reads is known.
        let (_, lost) = lines(
            r#"{"all-to-all-implementation-custom": ["a"], "all-gather-implementation-custom": ["b"],
                "reduce-scatter-implementation-custom": ["c"], "per-node-custom-implementation": "d.yml"}"#,
        );
        assert_eq!(lost.len(), 4);
        // Without the roofline, computations take the durations of the trace.
        let (text, lost) = lines(r#"{"peak-perf": 900, "all-to-all-implementation": ["ring"]}"#);
        assert!(!text.contains("peak_tflops"), "{text}");
        assert_eq!(
            lost,
            ["all-to-all-implementation = [\"ring\"]: all-to-all is done by direct, pairwise, bruck here"]
        );
    }

    #[test]
    fn errors_name_key_value_and_the_nearest() {
        let error = |text: &str| workload_lines("system.json", text, &mut Vec::new()).unwrap_err();
        assert_eq!(
            error(r#"{"endpoint-delays": 1}"#),
            "system.json: ASTRA-sim has no key \"endpoint-delays\"; did you mean \"endpoint-delay\"?"
        );
        assert_eq!(
            error(r#"{"all-reduce-implementation": ["rings"]}"#),
            "system.json: all-reduce-implementation = [\"rings\"]: no algorithm is named \"rings\"; did you mean \"ring\"? \
             (there are ring, direct, halvingDoubling, doubleBinaryTree)"
        );
        assert!(error(r#"{"all-reduce-implementation": "ring"}"#).contains("expected a list of names"));
        assert!(
            error(r#"{"peak-perf": 0, "roofline-enabled": 1}"#).contains("peak-perf = 0: expected a number")
        );
        assert!(error("{\n\"L\": 1,\n").starts_with("system.json:3: expected an object"));
    }
}
