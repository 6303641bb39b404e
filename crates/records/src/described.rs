//! Types of `summary.json`, each declared once with the documentation of its fields.

use std::collections::BTreeMap;

/// A field of an object.
#[derive(Clone, Copy)]
pub struct Field {
    /// Name of the field, with the unit at the end.
    pub name: &'static str,
    /// JSON type. "distribution" is the object described under that name.
    pub kind: &'static str,
    /// Meaning of the field.
    pub meaning: &'static str,
}

/// Declares a type of `summary.json`. The doc comment of a field is its documentation here and in `docs/results.md`.
/// Fields of the type after `and` are serialized beside the type's own.
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
            /// Own fields of the type, as in JSON.
            pub(crate) const FIELDS: &'static [crate::described::Field] = &[
                $( crate::described::Field {
                    name: stringify!($field),
                    kind: <$type as crate::described::JsonKind>::KIND,
                    // Each line of a doc comment begins with a space.
                    meaning: concat!($($meaning),+).trim_ascii(),
                } ),*
            ];
        }
    };
}
pub(crate) use described;

/// JSON type of a Rust type.
pub(crate) trait JsonKind {
    /// Name of the JSON type in the documentation.
    const KIND: &'static str;
}

/// Declares the JSON types of Rust types.
macro_rules! kinds {
    ($( $kind:literal: $($type:ty),+; )*) => {
        $( $( impl crate::described::JsonKind for $type { const KIND: &'static str = $kind; } )+ )*
    };
}
pub(crate) use kinds;

kinds! {
    "integer": u8, u32, u64;
    "integer or null": Option<u64>;
    "number": f64;
    "number or null": Option<f64>;
    "boolean": bool;
    "string": &str, String;
    "object": BTreeMap<&str, u64>, BTreeMap<String, f64>;
}
impl<T> JsonKind for Vec<T> {
    const KIND: &'static str = "array";
}
