//! Enums whose variants have a stable text name (in files) and a meaning (in the documentation), both defined once.

/// Declares a fieldless enum with `ALL`, `name` and `meaning`. The doc line of a variant is its meaning.
macro_rules! named_enum {
    ($(#[$meta:meta])* $enum:ident { $(#[doc = $doc:literal] $(#[$attr:ident])? $variant:ident = $name:literal,)+ }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, borsh::BorshSerialize, borsh::BorshDeserialize)]
        #[repr(u8)]
        pub enum $enum {
            $(#[doc = $doc] $(#[$attr])? #[serde(rename = $name)] $variant,)+
        }
        impl $enum {
            /// Every variant, in order of declaration.
            pub const ALL: &'static [$enum] = &[$($enum::$variant,)+];
            /// Returns the stable name used in result files.
            pub const fn name(self) -> &'static str {
                match self { $($enum::$variant => $name,)+ }
            }
            /// Returns the meaning, for the documentation.
            pub fn meaning(self) -> &'static str {
                match self { $($enum::$variant => $doc.trim_ascii(),)+ }
            }
        }
        impl std::fmt::Display for $enum {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.name())
            }
        }
    };
}

pub(crate) use named_enum;
