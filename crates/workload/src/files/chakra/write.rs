//! Writer of Chakra traces in schema 0.0.4, as ASTRA-sim reads them.

use std::collections::BTreeMap;

use pathweave_units::Duration;
use serde_json::json;

use super::schema::{Attribute, GlobalMetadata, Inputs, Node, attribute::Value};
use super::{
    CONNECTION, ChakraAction, ChakraGroup, ChakraNode, ChakraOperation, ChakraRanks, DURATION, OWN,
    PS_PER_US, VERSIONS, rounded_micros,
};
use crate::builder::Stream;
use crate::collective::Operation;

/// Returns the file of a rank: the header and its nodes. `record` is not written. Dependencies are written as
/// data dependencies. A computation whose duration is not a whole number of microseconds has the exact
/// duration in an attribute of pathweave.
pub fn write_chakra_rank(rank: u32, nodes: &[ChakraNode]) -> Vec<u8> {
    let mut file = Vec::new();
    put(&mut file, &GlobalMetadata { version: VERSIONS[0].to_owned(), attr: Vec::new() });
    for node in nodes {
        let (kind, duration, attr) = parts(rank, &node.action);
        let inputs = match &node.action {
            ChakraAction::Groups(groups) => Some(Inputs { values: groups_text(groups) }),
            _ => None,
        };
        let node = Node {
            id: node.id,
            name: node.name.clone(),
            r#type: kind,
            ctrl_deps: Vec::new(),
            data_deps: node.deps.clone(),
            duration_micros: rounded_micros(duration),
            inputs,
            attr,
        };
        put(&mut file, &node);
    }
    file
}

/// Returns the file of process groups that accompanies a trace, as ASTRA-sim reads it: `{"name": [ranks],
/// ...}`.
pub fn process_groups_file(groups: &BTreeMap<String, Vec<u32>>) -> String {
    let lines: Vec<String> =
        groups.iter().map(|(name, ranks)| format!("  {}: {ranks:?}", json!(name))).collect();
    format!("{{\n{}\n}}\n", lines.join(",\n"))
}

fn put(file: &mut Vec<u8>, record: &impl prost::Message) {
    record.encode_length_delimited(file).expect("a vector grows");
}

/// Returns type, duration and attributes of a node, in the widths that Chakra's feeder expects.
fn parts(rank: u32, act: &ChakraAction) -> (i32, Duration, Vec<Attribute>) {
    let attribute = |name: &str, value: Value| Attribute { name: name.to_owned(), value: Some(value) };
    let of_rank = |rank: u32| Value::Int32(i32::try_from(rank).expect("a rank is below 2^22"));
    let size = |bytes: u64| attribute("comm_size", Value::Int64(i64::try_from(bytes).unwrap_or(i64::MAX)));
    let of_gpu = || attribute("is_cpu_op", Value::Bool(false));
    let message = |src: u32, dst: u32, bytes: u64, tag: i64| {
        let tag = i32::try_from(tag).expect("a pair of ranks has fewer than 2^31 messages");
        vec![
            of_gpu(),
            attribute("comm_src", of_rank(src)),
            attribute("comm_dst", of_rank(dst)),
            size(bytes),
            attribute("comm_tag", Value::Int32(tag)),
        ]
    };
    match *act {
        ChakraAction::Nothing | ChakraAction::Groups(_) => (1, Duration::ZERO, Vec::new()),
        ChakraAction::Compute { duration, operations } => {
            let mut attr = vec![of_gpu()];
            if !duration.as_ps().is_multiple_of(PS_PER_US) {
                attr.push(attribute(DURATION, Value::Uint64(duration.as_ps())));
            }
            if operations > 0 {
                attr.push(attribute("num_ops", Value::Int64(i64::try_from(operations).unwrap_or(i64::MAX))));
            }
            (4, duration, attr)
        }
        ChakraAction::Send { to, bytes, tag, connection } => {
            let mut attr = message(rank, to, bytes, tag);
            attr.extend(connection.map(|connection| {
                let number = match connection {
                    Stream::Own => OWN,
                    Stream::Shared(number) => i64::from(number),
                };
                attribute(CONNECTION, Value::Int64(number))
            }));
            (5, Duration::ZERO, attr)
        }
        ChakraAction::Receive { from, bytes, tag } => (6, Duration::ZERO, message(from, rank, bytes, tag)),
        ChakraAction::Collective { operation, bytes, ranks: ref among, connection } => {
            let mut attr =
                vec![of_gpu(), attribute("comm_type", Value::Int64(comm_type(operation))), size(bytes)];
            match among {
                ChakraRanks::All => {}
                ChakraRanks::Group(name) => attr.push(attribute("pg_name", Value::Text(name.clone()))),
                ChakraRanks::Dimensions(involved) => {
                    let values = involved.clone();
                    attr.push(attribute("involved_dim", Value::Bools(super::schema::BoolList { values })));
                }
            }
            attr.extend(connection.map(|number| attribute(CONNECTION, Value::Int64(i64::from(number)))));
            (7, Duration::ZERO, attr)
        }
    }
}

fn comm_type(operation: ChakraOperation) -> i64 {
    match operation {
        ChakraOperation::Algorithm(Operation::AllReduce) => 0,
        ChakraOperation::Algorithm(Operation::Reduce) => 1,
        ChakraOperation::Algorithm(Operation::AllGather) => 2,
        ChakraOperation::Gather => 3,
        ChakraOperation::Scatter => 4,
        ChakraOperation::Algorithm(Operation::Broadcast) => 5,
        ChakraOperation::Algorithm(Operation::AllToAll) => 6,
        ChakraOperation::Algorithm(Operation::ReduceScatter) => 7,
    }
}

/// Returns groups in the form in which PyTorch writes them into a trace.
fn groups_text(groups: &[ChakraGroup]) -> String {
    let of = |group: &ChakraGroup| {
        let mut written = json!({ "pg_name": group.name, "ranks": group.ranks });
        if let Some(size) = group.size {
            written["group_size"] = json!(size);
        }
        written.to_string()
    };
    format!("[{}]", groups.iter().map(of).collect::<Vec<_>>().join(", "))
}
