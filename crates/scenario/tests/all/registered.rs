//! All names in scenarios are covered by the contract tests. The tables written by those tests are compared with the
//! schema, which is generated from the types. A registered name without a row fails here.

use std::collections::BTreeSet;
use std::fs::read_to_string;
use std::path::Path;

use pathweave_policy::schemes;
use pathweave_policy::testing::subjects;
use serde_json::{Value, to_value};

type Names = BTreeSet<String>;

/// Returns the variants of a type, as scenarios name them.
fn variants(definition: &str) -> Names {
    let schema = pathweave_scenario::schema();
    let definition = &schema["$defs"][definition];
    let branches = definition["oneOf"].as_array().or(definition["anyOf"].as_array());
    let branches = branches.unwrap_or_else(|| panic!("a choice: {definition}"));
    branches.iter().flat_map(names_of).collect()
}

/// Returns the name of a branch of a choice: a string, the kind of a table, or the only key of a table.
fn names_of(branch: &Value) -> Vec<String> {
    let text = |value: &Value| value.as_str().expect("a name").to_owned();
    let kind = &branch["properties"]["kind"]["const"];
    match (&branch["const"], &branch["enum"], kind) {
        (name @ Value::String(_), ..) | (_, _, name @ Value::String(_)) => vec![text(name)],
        (_, Value::Array(names), _) => names.iter().map(text).collect(),
        _ => vec![text(&branch["required"][0])],
    }
}

/// Returns the subjects in the table of a contract test.
fn in_table(path: &str) -> Names {
    let table = read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(path)).expect("the table is there");
    let subject = |line: &str| line.split(" | ").nth(1).expect("a column").to_owned();
    table.lines().map(subject).filter(|subject| subject != "subject").collect()
}

fn labelled(what: &str, names: Names) -> Names {
    names.into_iter().map(|name| format!("{what} {name}")).collect()
}

#[test]
fn nobody_is_left_out_of_the_contract_tests() {
    let schemes: Names = schemes().iter().map(|info| info.name.to_owned()).collect();
    let parts = [("cc", "CcConfig"), ("picker", "PickerConfig")];
    let mut all = schemes;
    for (what, definition) in parts {
        all.append(&mut labelled(what, variants(definition)));
    }
    assert_eq!(in_table("../policy/src/testing/snapshot.txt"), all, "schemes and parts without a network");
    for (what, definition) in [("recovery", "Recovery"), ("forwarding", "Forwarding")] {
        all.append(&mut labelled(what, variants(definition)));
    }
    assert_eq!(in_table("../sim/tests/contract.txt"), all, "everything on a fabric");
}

/// Labels could be wrong, so the configurations that run are compared.
#[test]
fn every_variant_is_run() {
    let mut run: [Names; 5] = Default::default();
    for subject in subjects() {
        let scheme = to_value(&subject.scheme).expect("a scheme is a table");
        let policy = &scheme["policy"];
        let picker = &policy["picker"];
        let picker = picker.as_object().map_or(picker.clone(), |table| table.keys().next().cloned().into());
        let found = [
            &policy["kind"],
            &policy["cc"]["kind"],
            &picker,
            &scheme["recovery"]["kind"],
            &scheme["forwarding"],
        ];
        for (names, name) in run.iter_mut().zip(found) {
            names.extend(name.as_str().map(str::to_owned));
        }
    }
    let [policies, ccs, pickers, recoveries, forwardings] = run;
    assert_eq!(policies, variants("PolicyConfig"));
    assert_eq!(ccs, variants("CcConfig"));
    assert_eq!(pickers, variants("PickerConfig"));
    assert_eq!(recoveries, variants("Recovery"));
    assert_eq!(forwardings, variants("Forwarding"));
}
