//! Serialization of units: configuration files hold texts with a unit ("100Gbps"), never bare numbers.

use core::fmt;
use core::marker::PhantomData;
use core::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use crate::{Bytes, Duration, ParseUnitError, Rate};

struct Text<T>(PhantomData<T>, &'static str);

impl<T: FromStr<Err = ParseUnitError>> de::Visitor<'_> for Text<T> {
    type Value = T;
    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.1)
    }
    fn visit_str<E: de::Error>(self, text: &str) -> Result<T, E> {
        text.parse().map_err(|why| E::custom(format_args!("\"{text}\": {why}")))
    }
}

macro_rules! as_text {
    ($type:ty, $expecting:literal, $pattern:literal) => {
        impl Serialize for $type {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }
        impl<'de> Deserialize<'de> for $type {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                deserializer.deserialize_str(Text(PhantomData, $expecting))
            }
        }
        #[cfg(feature = "serde")]
        impl schemars::JsonSchema for $type {
            fn schema_name() -> std::borrow::Cow<'static, str> {
                stringify!($type).into()
            }
            fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
                schemars::json_schema!({
                    "type": "string",
                    "description": $expecting,
                    "pattern": $pattern,
                })
            }
        }
    };
}

as_text!(
    Duration,
    "a time with its unit, such as \"1us\" or \"500ns\"",
    r"^\s*[0-9][0-9_.]*\s*([pnumPNUM]?[sS])\s*$"
);
as_text!(
    Rate,
    "a rate with its unit, such as \"100Gbps\"",
    r"^\s*[0-9][0-9_.]*\s*([kKmMgGtT]?b[pP][sS])\s*$"
);
as_text!(
    Bytes,
    "a size with its unit, such as \"8MB\" or \"4KiB\"",
    r"^\s*[0-9][0-9_.]*\s*(([kKmMgG][iI]?|[tT])?B)\s*$"
);
