//! Execution traces of MLCommons Chakra. Each rank has one file: a header and then its nodes, each a
//! length-delimited protobuf message.
//!
//! The reader goes record by record, so the longest record bounds its memory, not the length of the trace.

mod groups;
mod schema;
mod write;

use std::collections::BTreeSet;
use std::io::{BufRead, ErrorKind, Read};

use pathweave_units::Duration;
use prost::Message as _;

pub use self::groups::ChakraGroup;
use self::schema::{Attributes, GlobalMetadata, Node};
pub use self::write::{process_groups_file, write_chakra_rank};
use crate::builder::Stream;
use crate::collective::Operation;
use crate::error::FileError;

/// Supported versions of the schema. Their messages are identical.
const VERSIONS: [&str; 2] = ["0.0.4", "1.0.0"];
/// Attribute of pathweave for messages. Messages with the same number between the same ranks share a
/// connection; a message with [`OWN`] has a connection of its own.
const CONNECTION: &str = "pathweave_connection";
const OWN: i64 = -1;
/// Attribute of pathweave for computations: the exact duration in ps. `duration_micros` is the same duration,
/// rounded.
const DURATION: &str = "pathweave_duration_ps";
const PS_PER_US: u64 = 1_000_000;
/// Attributes of nodes that the reader uses, or that only state the origin of a node.
const KNOWN: [&str; 22] = [
    "comm_dst",
    "comm_group",
    "comm_size",
    "comm_src",
    "comm_tag",
    "comm_type",
    "fw_parent",
    "fw_tid",
    "involved_dim",
    "is_cpu_op",
    "num_ops",
    "op_schema",
    CONNECTION,
    DURATION,
    "pg_name",
    "rf_id",
    "scope",
    "seq_id",
    "stream",
    "tensor_size",
    "tid",
    "ts",
];
/// Largest number of unknown attribute names listed in a note.
const MOST_UNKNOWN: usize = 20;
/// Largest length of a record, bytes. The longest one seen, a header that quotes its source, has 27 kB.
const MAX_RECORD: u64 = 16 << 20;

/// A node of a rank's trace.
#[derive(Clone, Debug, PartialEq)]
pub struct ChakraNode {
    /// Index of the record in the file, from 1; the header is record 0.
    pub record: u64,
    /// Identifier, unique in the file.
    pub id: u64,
    /// Name of the node.
    pub name: String,
    /// Action of the node.
    pub action: ChakraAction,
    /// Nodes that must end before this one. They are its data and control dependencies, or for PyTorch its
    /// data dependencies only, because control dependencies are calls there.
    pub deps: Vec<u64>,
}

/// Action of a node of a trace.
#[derive(Clone, Debug, PartialEq)]
pub enum ChakraAction {
    /// Metadata; takes no time.
    Nothing,
    /// Computes, or moves memory.
    Compute {
        /// Duration; zero if the trace does not state it.
        duration: Duration,
        /// Number of operations, if the trace counts them; otherwise 0.
        operations: u64,
    },
    /// Sends to a rank.
    Send {
        /// Receiving rank.
        to: u32,
        /// Size, bytes.
        bytes: u64,
        /// Tag that matches the send with its receive.
        tag: i64,
        /// Connection that carries the message; `None` if the trace does not state it.
        connection: Option<Stream>,
    },
    /// Waits for a message of another rank.
    Receive {
        /// Sending rank.
        from: u32,
        /// Size, bytes.
        bytes: u64,
        /// Tag that matches the receive with its send.
        tag: i64,
    },
    /// Takes part in a collective.
    Collective {
        /// Operation of the collective.
        operation: ChakraOperation,
        /// Size as the trace counts it, bytes.
        bytes: u64,
        /// Ranks that take part.
        ranks: ChakraRanks,
        /// Label of the connections that carry the collective; `None` if the trace does not state it.
        connection: Option<u32>,
    },
    /// Declares process groups.
    Groups(Vec<ChakraGroup>),
}

/// Collective of a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChakraOperation {
    /// A collective that an algorithm implements. A barrier is an all-reduce of 0 bytes.
    Algorithm(Operation),
    /// The first rank ends with the parts of all ranks. The size is that of one part.
    Gather,
    /// Every rank ends with its part of the first rank's data. The size is that of one part.
    Scatter,
}

impl ChakraOperation {
    /// Returns the operation's name.
    pub fn name(self) -> &'static str {
        match self {
            ChakraOperation::Algorithm(operation) => operation.name(),
            ChakraOperation::Gather => "gather",
            ChakraOperation::Scatter => "scatter",
        }
    }
}

/// Set of ranks of a collective.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ChakraRanks {
    /// All ranks of the trace.
    All,
    /// The ranks of a process group.
    Group(String),
    /// Ranks that differ in these dimensions only (`involved_dim` of ASTRA-sim).
    Dimensions(Vec<bool>),
}

/// Reader of one rank's trace, node by node.
#[derive(Debug)]
pub struct ChakraReader<R> {
    source: R,
    file: String,
    /// Index of the record that is read next.
    next: u64,
    buffer: Vec<u8>,
    control: ControlDeps,
    /// Names of attributes that the reader does not know.
    unknown: BTreeSet<String>,
    /// Number of communication nodes that represent host calls. The kernels that communicate are separate
    /// nodes of the trace.
    host_calls: u64,
}

/// Meaning of control dependencies in a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ControlDeps {
    /// Nodes that must end before.
    Dependencies,
    /// The call that a node is a part of. That call may end after the node, or be missing from the file.
    /// ASTRA-sim does not read these dependencies.
    Calls,
}

impl<R: BufRead> ChakraReader<R> {
    /// Reads the header. `file` is the name in error messages.
    pub fn new(source: R, file: &str) -> Result<Self, FileError> {
        let mut reader = ChakraReader {
            source,
            file: file.to_owned(),
            next: 0,
            buffer: Vec::new(),
            control: ControlDeps::Dependencies,
            unknown: BTreeSet::new(),
            host_calls: 0,
        };
        if !reader.fill()? {
            return Err(FileError::whole(file, "empty; expected the header of a Chakra trace"));
        }
        let header = GlobalMetadata::decode(&reader.buffer[..])
            .map_err(|why| reader.wrong(format!("no header of a Chakra trace: {why}")))?;
        let attributes = Attributes(&header.attr);
        // PyTorch's converter leaves the version empty and writes an attribute instead.
        if header.version.is_empty() {
            reader.control = ControlDeps::Calls;
        }
        let version =
            if header.version.is_empty() { attributes.text("schema") } else { Some(&*header.version) };
        match version {
            Some(version) if is_known(version) => Ok(reader),
            other => {
                let allowed = format!("expected {}, alone or as 1.0.2-chakra.0.0.4", VERSIONS.join(" or "));
                Err(reader.wrong(match other {
                    Some(other) => {
                        let shown: String = other.chars().take(40).collect();
                        format!("schema version = \"{shown}\": {allowed}")
                    }
                    None => format!("the header names no schema version; {allowed}"),
                }))
            }
        }
    }

    /// Returns the names of unknown attributes of the nodes read so far, at most 20.
    pub fn unknown(&self) -> &BTreeSet<String> {
        &self.unknown
    }

    /// Returns the number of communication nodes read so far that are host calls without parameters.
    pub fn host_calls(&self) -> u64 {
        self.host_calls
    }

    fn wrong(&self, what: impl Into<String>) -> FileError {
        FileError::whole(&self.file, format!("record {}: {}", self.next, what.into()))
    }

    /// Reads the next record into the buffer. Returns false at the end of the file.
    fn fill(&mut self) -> Result<bool, FileError> {
        let Some(length) = self.length()? else { return Ok(false) };
        if length > MAX_RECORD {
            return Err(self.wrong(format!("a length of {length} bytes; at most {MAX_RECORD} are allowed")));
        }
        self.buffer.clear();
        // The buffer grows with the data present, not with the length that the record claims.
        let read = (&mut self.source).take(length).read_to_end(&mut self.buffer);
        let read = read.map_err(|why| self.wrong(format!("cannot read it: {why}")))?;
        if (read as u64) < length {
            return Err(self.wrong(format!("ends after {read} of {length} bytes; truncated?")));
        }
        Ok(true)
    }

    /// Returns the length of the next record, or `None` at the end of the file.
    fn length(&mut self) -> Result<Option<u64>, FileError> {
        let mut length = 0u64;
        for shift in (0..64).step_by(7) {
            let mut byte = [0];
            match self.source.read_exact(&mut byte) {
                Ok(()) => {}
                Err(why) if why.kind() == ErrorKind::UnexpectedEof && shift == 0 => return Ok(None),
                Err(why) if why.kind() == ErrorKind::UnexpectedEof => {
                    return Err(self.wrong("ends within the length of a record; truncated?"));
                }
                Err(why) => return Err(self.wrong(format!("cannot read it: {why}"))),
            }
            length |= u64::from(byte[0] & 0x7f) << shift;
            if byte[0] < 0x80 {
                return Ok(Some(length));
            }
        }
        Err(self.wrong("the length of the record is no number; no Chakra trace?"))
    }

    fn node(&mut self) -> Result<Option<ChakraNode>, FileError> {
        self.next += 1;
        if !self.fill()? {
            return Ok(None);
        }
        let node = Node::decode(&self.buffer[..]).map_err(|why| self.wrong(format!("no node: {why}")))?;
        let act = act_of(&node)
            .map_err(|what| self.wrong(format!("node {} \"{}\": {what}", node.id, short(&node.name))))?;
        self.host_calls += u64::from(is_host_call(&node));
        for name in Attributes(&node.attr).names().filter(|name| !KNOWN.contains(name)) {
            if self.unknown.len() < MOST_UNKNOWN && !self.unknown.contains(name) {
                self.unknown.insert(short(name));
            }
        }
        let mut deps = node.data_deps;
        if self.control == ControlDeps::Dependencies {
            deps.extend(node.ctrl_deps);
        }
        deps.sort_unstable();
        deps.dedup();
        Ok(Some(ChakraNode { record: self.next, id: node.id, name: node.name, action: act, deps }))
    }
}

impl<R: BufRead> Iterator for ChakraReader<R> {
    type Item = Result<ChakraNode, FileError>;
    fn next(&mut self) -> Option<Self::Item> {
        self.node().transpose()
    }
}

/// Returns true if the messages of a schema version are supported. PyTorch writes "1.0.2-chakra.0.0.4", its
/// own version followed by that of the schema, or its own version alone.
fn is_known(version: &str) -> bool {
    match version.split_once("-chakra.") {
        Some((_, schema)) => VERSIONS.contains(&schema),
        None => VERSIONS.contains(&version) || version.starts_with("1.0."),
    }
}

/// Returns true for a communication node of the host that lacks its parameters: the call, which takes CPU
/// time.
fn is_host_call(node: &Node) -> bool {
    let attributes = Attributes(&node.attr);
    let particular = match node.r#type {
        5 => "comm_dst",
        6 => "comm_src",
        7 => "comm_type",
        _ => return false,
    };
    attributes.number("is_cpu_op") == Some(1) && attributes.number(particular).is_none()
}

/// Returns a name shortened to 60 characters for an error message.
pub(crate) fn short(name: &str) -> String {
    name.chars().take(60).collect()
}

fn act_of(node: &Node) -> Result<ChakraAction, String> {
    let attributes = Attributes(&node.attr);
    let number = |name: &str| {
        let value =
            attributes.number(name).ok_or_else(|| format!("attribute \"{name}\" is missing or no number"))?;
        u64::try_from(value).map_err(|_| format!("{name} = {value}: expected 0 or more"))
    };
    let rank = |name: &str| {
        let value = number(name)?;
        u32::try_from(value).map_err(|_| format!("{name} = {value}: expected a rank"))
    };
    let tag = || attributes.number("comm_tag").map_or(0, |tag| i64::try_from(tag).unwrap_or(0));
    let kind = if is_host_call(node) { 4 } else { node.r#type };
    match kind {
        1 if node.name.contains("process_group:init") => {
            let values = node.inputs.as_ref().map_or("", |inputs| &inputs.values);
            groups::parse(values).map(ChakraAction::Groups)
        }
        1 => Ok(ChakraAction::Nothing),
        2..=4 => {
            let duration = duration_of(node, &attributes)?;
            let operations =
                if duration == Duration::ZERO && kind == 4 { number("num_ops").unwrap_or(0) } else { 0 };
            Ok(ChakraAction::Compute { duration, operations })
        }
        5 | 6 if attributes.number(peer_of(kind)).is_none() => Err(format!(
            "attribute \"{}\" is missing or no number: the converter of PyTorch traces leaves it out, so the \
             other rank is unknown",
            peer_of(kind)
        )),
        5 => Ok(ChakraAction::Send {
            to: rank("comm_dst")?,
            bytes: number("comm_size")?,
            tag: tag(),
            connection: connection_of(&attributes)?,
        }),
        6 => Ok(ChakraAction::Receive { from: rank("comm_src")?, bytes: number("comm_size")?, tag: tag() }),
        7 => {
            let operation = match number("comm_type")? {
                0 | 9 => ChakraOperation::Algorithm(Operation::AllReduce),
                1 => ChakraOperation::Algorithm(Operation::Reduce),
                2 => ChakraOperation::Algorithm(Operation::AllGather),
                3 => ChakraOperation::Gather,
                4 => ChakraOperation::Scatter,
                5 => ChakraOperation::Algorithm(Operation::Broadcast),
                6 => ChakraOperation::Algorithm(Operation::AllToAll),
                7 | 8 => ChakraOperation::Algorithm(Operation::ReduceScatter),
                other => {
                    let known = "0 all-reduce, 1 reduce, 2 all-gather, 3 gather, 4 scatter, 5 broadcast, 6 all-to-all, 7 and 8 \
                                 reduce-scatter, 9 barrier";
                    return Err(format!("comm_type = {other}: expected {known}"));
                }
            };
            let bytes = if number("comm_type")? == 9 { 0 } else { number("comm_size")? };
            let connection = match connection_of(&attributes)? {
                Some(Stream::Own) => {
                    return Err(format!(
                        "{CONNECTION} = {OWN}: messages of a collective share connections; expected 0 or more"
                    ));
                }
                Some(Stream::Shared(connection)) => Some(connection),
                None => None,
            };
            Ok(ChakraAction::Collective { operation, bytes, ranks: among(&attributes)?, connection })
        }
        other => Err(format!("type = {other}: expected 1 (metadata) to 7 (collective)")),
    }
}

/// Returns the duration of a computation.
fn duration_of(node: &Node, attributes: &Attributes<'_>) -> Result<Duration, String> {
    let micros = node.duration_micros;
    let whole = micros.checked_mul(PS_PER_US).map(Duration::from_ps);
    let whole = whole.ok_or_else(|| format!("duration_micros = {micros}: too long"))?;
    let Some(exact) = attributes.number(DURATION) else { return Ok(whole) };
    match u64::try_from(exact) {
        Ok(exact) if rounded_micros(Duration::from_ps(exact)) == micros => Ok(Duration::from_ps(exact)),
        _ => Err(format!(
            "{DURATION} = {exact}: rounded it is not duration_micros = {micros}; change both, or remove it"
        )),
    }
}

/// Returns whole microseconds, rounded to nearest.
fn rounded_micros(duration: Duration) -> u64 {
    let ps = duration.as_ps();
    ps / PS_PER_US + u64::from(ps % PS_PER_US >= PS_PER_US / 2)
}

/// Returns the connection that carries a message, if the trace states it.
fn connection_of(attributes: &Attributes<'_>) -> Result<Option<Stream>, String> {
    let Some(value) = attributes.number(CONNECTION) else { return Ok(None) };
    let most = (1i128 << 31) - 1;
    match value {
        -1 => Ok(Some(Stream::Own)),
        0.. if value <= most => Ok(Some(Stream::Shared(value as u32))),
        _ => Err(format!("{CONNECTION} = {value}: expected {OWN} (its own) to {most}")),
    }
}

fn peer_of(kind: i32) -> &'static str {
    if kind == 5 { "comm_dst" } else { "comm_src" }
}

/// Returns the ranks of a collective. Older generators name the group in `comm_group`.
fn among(attributes: &Attributes<'_>) -> Result<ChakraRanks, String> {
    let group = ["pg_name", "comm_group"].into_iter().find_map(|name| {
        let number = || attributes.number(name).map(|number| number.to_string());
        attributes.text(name).filter(|text| !text.is_empty()).map(str::to_owned).or_else(number)
    });
    let dimensions = attributes.bools("involved_dim").filter(|involved| involved.contains(&false));
    match (group, dimensions) {
        (Some(group), None) => Ok(ChakraRanks::Group(group)),
        (None, Some(involved)) => Ok(ChakraRanks::Dimensions(involved.to_vec())),
        (None, None) => Ok(ChakraRanks::All),
        (Some(group), Some(involved)) => {
            Err(format!("involved_dim = {involved:?} of group \"{}\": expected one of both", short(&group)))
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use proptest::prelude::*;

    use super::schema::{Attribute, BoolList, Inputs, attribute};
    use super::*;

    /// Writer of traces for tests.
    #[derive(Default)]
    pub(crate) struct Writer(pub(crate) Vec<u8>);

    /// The value of an attribute.
    pub(crate) enum Value<'a> {
        Number(i64),
        Text(&'a str),
        Bools(&'a [bool]),
    }

    impl Writer {
        pub(crate) fn new(version: &str) -> Self {
            let mut writer = Writer::default();
            writer.put(&GlobalMetadata { version: version.to_owned(), attr: Vec::new() });
            writer
        }
        fn put(&mut self, message: &impl prost::Message) {
            message.encode_length_delimited(&mut self.0).unwrap();
        }
        pub(crate) fn node(
            mut self,
            id: u64,
            kind: i32,
            deps: &[u64],
            attributes: &[(&str, i64)],
            micros: u64,
        ) -> Self {
            let attributes: Vec<_> =
                attributes.iter().map(|&(name, value)| (name, Value::Number(value))).collect();
            self.full((id, &format!("node {id}"), kind), deps, &attributes, micros, "");
            self
        }
        /// Makes a trace with the header of PyTorch's converter.
        pub(crate) fn of_pytorch() -> Self {
            let schema = Some(attribute::Value::Text("1.0.2-chakra.0.0.4".to_owned()));
            let attr = vec![Attribute { name: "schema".to_owned(), value: schema }];
            let mut writer = Writer::default();
            writer.put(&GlobalMetadata { version: String::new(), attr });
            writer
        }
        /// Writes a node with a control dependency.
        fn called(&mut self, id: u64, caller: u64) {
            self.put(&Node { id, r#type: 4, ctrl_deps: vec![caller], ..Node::default() });
        }
        /// Writes a node as PyTorch's converter does: identifier, name, type, and the values of its inputs.
        pub(crate) fn full(
            &mut self,
            (id, name, kind): (u64, &str, i32),
            deps: &[u64],
            attributes: &[(&str, Value<'_>)],
            micros: u64,
            values: &str,
        ) {
            let value = |value: &Value<'_>| match *value {
                Value::Number(number) => attribute::Value::Int64(number),
                Value::Text(text) => attribute::Value::Text(text.to_owned()),
                Value::Bools(list) => attribute::Value::Bools(BoolList { values: list.to_vec() }),
            };
            let attr = |(name, of): &(&str, Value<'_>)| Attribute {
                name: (*name).to_owned(),
                value: Some(value(of)),
            };
            self.put(&Node {
                id,
                name: name.to_owned(),
                r#type: kind,
                ctrl_deps: Vec::new(),
                data_deps: deps.to_vec(),
                duration_micros: micros,
                inputs: Some(Inputs { values: values.to_owned() }),
                attr: attributes.iter().map(attr).collect(),
            });
        }
    }

    pub(crate) fn read(bytes: &[u8]) -> Result<Vec<ChakraNode>, String> {
        let reader = ChakraReader::new(bytes, "t.0.et").map_err(|e| e.to_string())?;
        reader.collect::<Result<_, _>>().map_err(|e| e.to_string())
    }

    #[test]
    fn a_file_of_the_ring_that_others_made() {
        let bytes = include_bytes!("../../../../../scenarios/chakra-ring/custom_allreduce.0.et");
        let nodes = read(bytes).unwrap();
        assert_eq!(nodes.len(), 35);
        assert_eq!(nodes[0].action, ChakraAction::Send { to: 1, bytes: 131_072, tag: 0, connection: None });
        assert_eq!(nodes[1].action, ChakraAction::Receive { from: 7, bytes: 131_072, tag: 0 });
        assert_eq!(nodes[2].action, ChakraAction::Compute { duration: Duration::from_us(7), operations: 0 });
        assert_eq!((nodes[2].record, &nodes[2].deps[..]), (3, &[nodes[1].id][..]));
    }

    #[test]
    fn every_kind_of_node() {
        let bytes = Writer::new("0.0.4")
            .node(1, 1, &[], &[], 0)
            .node(2, 4, &[1, 1], &[("num_ops", 500)], 0)
            .node(3, 7, &[2], &[("comm_type", 7), ("comm_size", 64)], 0)
            .node(4, 7, &[3], &[("comm_type", 9)], 0);
        let nodes = read(&bytes.0).unwrap();
        let acts: Vec<_> = nodes.iter().map(|n| n.action.clone()).collect();
        let collective = |operation, bytes| ChakraAction::Collective {
            operation: ChakraOperation::Algorithm(operation),
            bytes,
            ranks: ChakraRanks::All,
            connection: None,
        };
        let expected = [
            ChakraAction::Nothing,
            ChakraAction::Compute { duration: Duration::ZERO, operations: 500 },
            collective(Operation::ReduceScatter, 64),
            collective(Operation::AllReduce, 0),
        ];
        assert_eq!(acts, expected);
        assert_eq!(nodes[1].deps, [1]);
    }

    #[test]
    fn errors_name_record_field_and_what_is_allowed() {
        let error = |bytes: Vec<u8>| read(&bytes).unwrap_err();
        assert_eq!(error(Vec::new()), "t.0.et: empty; expected the header of a Chakra trace");
        assert_eq!(
            error(Writer::new("0.0.9").0),
            "t.0.et: record 0: schema version = \"0.0.9\": expected 0.0.4 or 1.0.0, alone or as 1.0.2-chakra.0.0.4"
        );
        assert_eq!(
            error(Writer::new("").0),
            "t.0.et: record 0: the header names no schema version; expected 0.0.4 or 1.0.0, alone or as 1.0.2-chakra.0.0.4"
        );
        let send = |attributes: &[(&str, i64)]| {
            error(Writer::new("1.0.2-chakra.0.0.4").node(1, 4, &[], &[], 1).node(9, 5, &[], attributes, 0).0)
        };
        assert_eq!(
            send(&[("comm_size", 1)]),
            "t.0.et: record 2: node 9 \"node 9\": attribute \"comm_dst\" is missing or no number: the \
             converter of PyTorch traces leaves it out, so the other rank is unknown"
        );
        assert_eq!(
            send(&[("comm_dst", 1), ("comm_size", -1)]),
            "t.0.et: record 2: node 9 \"node 9\": comm_size = -1: expected 0 or more"
        );
        let kind = |kind| error(Writer::new("0.0.4").node(1, kind, &[], &[("comm_type", 10)], 0).0);
        assert!(kind(0).contains("type = 0: expected 1 (metadata) to 7 (collective)"));
        assert!(kind(7).contains("comm_type = 10: expected 0 all-reduce"));
        let mut cut = Writer::new("0.0.4").node(1, 4, &[], &[], 1).0;
        cut.pop();
        let whole = cut.len() - Writer::new("0.0.4").0.len();
        let expected = format!("record 1: ends after {} of {whole} bytes; truncated?", whole - 1);
        assert_eq!(error(cut), format!("t.0.et: {expected}"));
        let mut long = Writer::new("0.0.4").0;
        long.extend([0xff, 0xff, 0xff, 0xff, 0x0f]);
        assert!(error(long).contains("record 1: a length of 4294967295 bytes; at most 16777216 are allowed"));
        assert!(error(b"<?xml version".to_vec()).contains("record 0"));
    }

    #[test]
    fn every_version_with_the_same_messages_is_read() {
        for version in ["0.0.4", "1.0.0", "1.0.1", "1.0.2-chakra.0.0.4", "1.1.0-chakra.1.0.0"] {
            assert!(read(&Writer::new(version).0).is_ok(), "{version}");
        }
        for version in ["1.1.0", "1.0.2-chakra.0.0.3", "0.0.1", "2"] {
            assert!(read(&Writer::new(version).0).is_err(), "{version}");
        }
    }

    /// Calls in a trace of PyTorch's converter may be missing from the file, and a call may wait for a part
    /// of itself.
    #[test]
    fn control_dependencies_of_pytorch_are_calls() {
        for (mut writer, deps) in [(Writer::new("0.0.4"), vec![3]), (Writer::of_pytorch(), vec![])] {
            writer.called(7, 3);
            assert_eq!(read(&writer.0).unwrap()[0].deps, deps);
        }
    }

    /// PyTorch's converter also writes the host's call as a collective, but without the parameters of the
    /// communication.
    #[test]
    fn a_call_of_the_host_is_work_of_the_processor() {
        let mut bytes = Writer::new("1.0.2-chakra.0.0.4");
        let host =
            [("is_cpu_op", Value::Number(1)), ("op_schema", Value::Text("s")), ("odd", Value::Number(3))];
        bytes.full((2, "c10d::allreduce_(0)", 7), &[], &host, 15, "");
        let kernel = [
            ("comm_type", Value::Number(0)),
            ("comm_size", Value::Number(8)),
            ("comm_group", Value::Number(3)),
        ];
        bytes.full((3, "ncclDevKernel_AllReduce", 7), &[2], &kernel, 40, "");
        let mut reader = ChakraReader::new(&bytes.0[..], "t.0.et").unwrap();
        let acts: Vec<_> = reader.by_ref().map(|node| node.unwrap().action).collect();
        assert_eq!(acts[0], ChakraAction::Compute { duration: Duration::from_us(15), operations: 0 });
        let ranks = ChakraRanks::Group("3".to_owned());
        let operation = ChakraOperation::Algorithm(Operation::AllReduce);
        assert_eq!(acts[1], ChakraAction::Collective { operation, bytes: 8, ranks, connection: None });
        assert_eq!(
            (reader.host_calls(), reader.unknown().iter().collect::<Vec<_>>()),
            (1, vec![&"odd".to_owned()])
        );
    }

    /// Each attribute that is read changes the action of a node, or is rejected. Other attributes are listed
    /// if they are unknown.
    #[test]
    fn no_attribute_is_ignored_in_silence() {
        let act = |kind: i32, attributes: &[(&str, Value<'_>)]| {
            let mut bytes = Writer::new("1.0.0");
            bytes.full((1, "n", kind), &[], attributes, 0, "");
            read(&bytes.0).map(|nodes| nodes[0].action.clone())
        };
        let of_kind = |kind: i32| match kind {
            5 => [("comm_dst", 1), ("comm_size", 8)],
            6 => [("comm_src", 1), ("comm_size", 8)],
            _ => [("comm_type", 0), ("comm_size", 8)],
        };
        for (kind, name) in [
            (5, "comm_dst"),
            (5, "comm_size"),
            (5, "comm_tag"),
            (6, "comm_src"),
            (6, "comm_tag"),
            (7, "comm_type"),
            (7, "comm_size"),
            (7, "comm_group"),
            (7, "pg_name"),
            (4, "num_ops"),
        ] {
            let base = of_kind(kind).map(|(name, value)| (name, Value::Number(value)));
            let mut changed: Vec<_> = of_kind(kind).map(|(name, value)| (name, Value::Number(value))).into();
            changed.retain(|(of, _)| *of != name);
            changed.push((name, Value::Number(5)));
            assert_ne!(act(kind, &changed), act(kind, &base), "{name}");
        }
        let narrowed = [
            ("comm_type", Value::Number(0)),
            ("comm_size", Value::Number(8)),
            ("involved_dim", Value::Bools(&[false])),
        ];
        assert_ne!(act(7, &narrowed), act(7, &narrowed[..2]));
        for name in ["comm_priority", "tensor_loc", "anything"] {
            let mut bytes = Writer::new("1.0.0");
            bytes.full((1, "n", 4), &[], &[(name, Value::Number(1))], 0, "");
            let mut reader = ChakraReader::new(&bytes.0[..], "t").unwrap();
            assert_eq!((reader.by_ref().count(), reader.unknown().contains(name)), (1, true), "{name}");
        }
    }

    #[test]
    fn a_long_trace_is_read_in_the_memory_of_one_record() {
        let one = Writer::default().node(7, 4, &[1, 2, 3], &[("num_ops", 1)], 5).0;
        let records = 200_000;
        let head = Writer::new("0.0.4").0;
        let body = one.repeat(records);
        let mut reader = ChakraReader::new((&head[..]).chain(&body[..]), "long").unwrap();
        assert_eq!(reader.by_ref().map(Result::unwrap).count(), records);
        assert!(reader.buffer.capacity() < 1024);
    }

    proptest! {
        #[test]
        fn any_bytes_are_answered(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = read(&bytes);
            let mut behind = Writer::new("0.0.4").0;
            behind.extend(bytes);
            let _ = read(&behind);
        }
    }
}
