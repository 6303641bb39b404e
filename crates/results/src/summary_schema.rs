//! What `summary.json` holds, for the documentation: each of its types is declared once, by `described!`, and brings its
//! table of fields with it.

use std::collections::BTreeMap;

use crate::departures::{Departures, Gaps, PathLength};
use crate::middlebox::MiddleboxTotals;
use crate::records::{BalancingTotals, EndReason, Role};
use crate::stats::Distribution;
use crate::summary::{FlowSummary, GroupSummary, JobSummary, RunSummary, SizeBin, Summary};
use crate::summary_fabric::{FabricSummary, TierSummary};

/// An object of `summary.json`.
pub struct Object {
    /// Where it is.
    pub path: &'static str,
    /// What it is.
    pub meaning: &'static str,
    /// Its fields.
    pub fields: &'static [Field],
}

/// A field of an object.
#[derive(Clone, Copy)]
pub struct Field {
    /// Name; the unit comes last in it.
    pub name: &'static str,
    /// Type as JSON has it; "distribution" is the object described under that name.
    pub kind: &'static str,
    /// What it means.
    pub meaning: &'static str,
}

/// Declares a type of `summary.json`. What is said of a field there is its documentation here and in `docs/results.md`.
/// Fields of the type that follows `and` are written beside its own.
macro_rules! described {
    (
        $(#[$attribute:meta])*
        pub struct $name:ident { $( $(#[doc = $meaning:literal])+ pub $field:ident: $type:ty, )* }
        $( and pub $flat:ident: $flat_type:ty )?
    ) => {
        $(#[$attribute])*
        pub struct $name {
            $( $(#[doc = $meaning])+ pub $field: $type, )*
            $( #[doc = "The figures beside these."] #[serde(flatten)] pub $flat: $flat_type, )?
        }

        impl $name {
            /// Its own fields, as JSON has them.
            pub(crate) const FIELDS: &'static [crate::summary_schema::Field] = &[
                $( crate::summary_schema::Field {
                    name: stringify!($field),
                    kind: <$type as crate::summary_schema::JsonKind>::KIND,
                    // Each line of a documentation begins with a space.
                    meaning: concat!($($meaning),+).trim_ascii(),
                } ),*
            ];
        }
    };
}
pub(crate) use described;

/// What a type is in JSON.
pub(crate) trait JsonKind {
    /// Its name in the documentation.
    const KIND: &'static str;
}

macro_rules! kinds {
    ($( $kind:literal: $($type:ty),+; )*) => { $( $( impl JsonKind for $type { const KIND: &'static str = $kind; } )+ )* };
}
kinds! {
    "integer": u8, u32, u64;
    "number": f64;
    "number or null": Option<f64>;
    "boolean": bool;
    "string": &str, String, Role, EndReason;
    "object": RunSummary, FlowSummary, FabricSummary, JobSummary, BalancingTotals, Departures, BTreeMap<&str, u64>;
    "object or null": Option<FlowSummary>;
    "distribution": Distribution;
}
impl<T> JsonKind for Vec<T> {
    const KIND: &'static str = "array";
}

/// A group's own fields and those of its flows.
const OF_GROUPS: [Field; GroupSummary::FIELDS.len() + FlowSummary::FIELDS.len()] = {
    let mut all = [GroupSummary::FIELDS[0]; GroupSummary::FIELDS.len() + FlowSummary::FIELDS.len()];
    let (own, flows) = all.split_at_mut(GroupSummary::FIELDS.len());
    own.copy_from_slice(GroupSummary::FIELDS);
    flows.copy_from_slice(FlowSummary::FIELDS);
    all
};

/// Every object, from the outside in.
pub const SUMMARY: &[Object] = &[
    Object { path: "(top)", meaning: "The file.", fields: Summary::FIELDS },
    Object { path: "run", meaning: "What was run and how it ended.", fields: RunSummary::FIELDS },
    Object {
        path: "overall, foreground, groups[]",
        meaning: "Figures of a set of flows. Times, slowdown and goodput are of finished flows, counts are of all. A group has five fields more.",
        fields: &OF_GROUPS,
    },
    Object {
        path: "by_size[]",
        meaning: "Finished flows of similar size. Edges are 1, 3, 10, 30, ... KB.",
        fields: SizeBin::FIELDS,
    },
    Object {
        path: "fabric",
        meaning: "Links and queues of the whole fabric.",
        fields: FabricSummary::FIELDS,
    },
    Object {
        path: "fabric.balancing",
        meaning: "What load balancing in the switches did, all switches together. All zero where they hash.",
        fields: BalancingTotals::FIELDS,
    },
    Object {
        path: "fabric.tiers[]",
        meaning: "Links of one tier in one direction.",
        fields: TierSummary::FIELDS,
    },
    Object {
        path: "jobs",
        meaning: "Jobs: graphs of messages that complete as a whole.",
        fields: JobSummary::FIELDS,
    },
    Object {
        path: "middleboxes[]",
        meaning: "What the middlebox of an external switch has counted; 0 where a part of it is off.",
        fields: MiddleboxTotals::FIELDS,
    },
    Object {
        path: "departures",
        meaning: "Data packets as they left their hosts. Empty without `observe.departures`.",
        fields: Departures::FIELDS,
    },
    Object {
        path: "departures.gaps[]",
        meaning: "Times between a packet and the one before it of the same message and queue pair; bins without one are left out.",
        fields: Gaps::FIELDS,
    },
    Object {
        path: "departures.lengths[]",
        meaning: "Paths of the same number of links.",
        fields: PathLength::FIELDS,
    },
    Object {
        path: "distribution",
        meaning: "Mean and order statistics of a set of values; all 0 when `count` is 0.",
        fields: Distribution::FIELDS,
    },
];
