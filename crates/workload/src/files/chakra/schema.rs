//! Messages of Chakra's schemas 0.0.4 and 1.0.0, which are identical. Fields that are not declared here are
//! skipped.

/// First message of a file.
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct GlobalMetadata {
    #[prost(string, tag = "1")]
    pub(super) version: String,
    #[prost(message, repeated, tag = "2")]
    pub(super) attr: Vec<Attribute>,
}

/// Node of a rank's graph.
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct Node {
    #[prost(uint64, tag = "1")]
    pub(super) id: u64,
    #[prost(string, tag = "2")]
    pub(super) name: String,
    /// Type: 1 metadata, 2 memory load, 3 memory store, 4 computation, 5 send, 6 receive, 7 collective.
    #[prost(int32, tag = "3")]
    pub(super) r#type: i32,
    #[prost(uint64, repeated, tag = "4")]
    pub(super) ctrl_deps: Vec<u64>,
    #[prost(uint64, repeated, tag = "5")]
    pub(super) data_deps: Vec<u64>,
    #[prost(uint64, tag = "7")]
    pub(super) duration_micros: u64,
    #[prost(message, optional, tag = "8")]
    pub(super) inputs: Option<Inputs>,
    #[prost(message, repeated, tag = "10")]
    pub(super) attr: Vec<Attribute>,
}

/// Inputs of a node, as the program that recorded it wrote them.
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct Inputs {
    #[prost(string, tag = "1")]
    pub(super) values: String,
}

/// A named value.
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct Attribute {
    #[prost(string, tag = "1")]
    pub(super) name: String,
    #[prost(oneof = "attribute::Value", tags = "7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 28, 29")]
    pub(super) value: Option<attribute::Value>,
}

pub(super) mod attribute {
    /// Integers, text and lists of booleans. Other lists, floating point and bytes are skipped.
    #[derive(Clone, PartialEq, prost::Oneof)]
    pub(in super::super) enum Value {
        #[prost(int32, tag = "7")]
        Int32(i32),
        #[prost(int64, tag = "9")]
        Int64(i64),
        #[prost(uint32, tag = "11")]
        Uint32(u32),
        #[prost(uint64, tag = "13")]
        Uint64(u64),
        #[prost(sint32, tag = "15")]
        Sint32(i32),
        #[prost(sint64, tag = "17")]
        Sint64(i64),
        #[prost(fixed32, tag = "19")]
        Fixed32(u32),
        #[prost(fixed64, tag = "21")]
        Fixed64(u64),
        #[prost(sfixed32, tag = "23")]
        Sfixed32(i32),
        #[prost(sfixed64, tag = "25")]
        Sfixed64(i64),
        #[prost(bool, tag = "27")]
        Bool(bool),
        #[prost(message, tag = "28")]
        Bools(super::BoolList),
        #[prost(string, tag = "29")]
        Text(String),
    }
}

/// A list of booleans.
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct BoolList {
    #[prost(bool, repeated, tag = "1")]
    pub(super) values: Vec<bool>,
}

/// Attributes of a node or header.
pub(super) struct Attributes<'a>(pub(super) &'a [Attribute]);

impl Attributes<'_> {
    fn value(&self, name: &str) -> Option<&attribute::Value> {
        self.0.iter().find(|attribute| attribute.name == name)?.value.as_ref()
    }
    /// Returns an integer attribute of any width, or a boolean as 0 or 1.
    pub(super) fn number(&self, name: &str) -> Option<i128> {
        use attribute::Value::*;
        Some(match self.value(name)? {
            Int32(v) | Sint32(v) | Sfixed32(v) => i128::from(*v),
            Int64(v) | Sint64(v) | Sfixed64(v) => i128::from(*v),
            Uint32(v) | Fixed32(v) => i128::from(*v),
            Uint64(v) | Fixed64(v) => i128::from(*v),
            Bool(v) => i128::from(*v),
            Text(_) | Bools(_) => return None,
        })
    }
    pub(super) fn bools(&self, name: &str) -> Option<&[bool]> {
        match self.value(name)? {
            attribute::Value::Bools(list) => Some(&list.values),
            _ => None,
        }
    }
    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|attribute| &*attribute.name)
    }
    pub(super) fn text(&self, name: &str) -> Option<&str> {
        match self.value(name)? {
            attribute::Value::Text(text) => Some(text),
            _ => None,
        }
    }
}
