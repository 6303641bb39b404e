//! Check of texts, numbers, booleans and quantities with units.

use std::str::FromStr;

use pathweave_units::{Bytes, Duration, ParseUnitError, Rate};
use serde_json::Value as Json;

use super::super::{Diagnostic, FieldPath, Node, Value, closest_name};
use super::{SchemaChecker, allowed_types, fields, fits, type_name};

impl<'a> SchemaChecker<'a> {
    /// Checks a quantity with a unit. The quantity's own type parses it, so the reason of the error is exact.
    pub(super) fn quantity(&mut self, units: &str, schema: &'a Json, node: &Node, path: &FieldPath) {
        fn parse<T: FromStr<Err = ParseUnitError>>(text: &str) -> Option<ParseUnitError> {
            text.parse::<T>().err()
        }
        let described = match units {
            "Duration" => "a time with its unit, such as \"1us\"",
            "Rate" => "a rate with its unit, such as \"100Gbps\"",
            _ => schema["description"].as_str().unwrap_or("a size with its unit, such as \"8MB\""),
        };
        let Value::Text(text) = &node.value else {
            return self.wrong_type(described, node, path);
        };
        let error = match units {
            "Duration" => parse::<Duration>(text),
            "Rate" => parse::<Rate>(text),
            _ => parse::<Bytes>(text),
        };
        if let Some(why) = error {
            let finding = Diagnostic::new(path.clone(), format!("`{path}` cannot be \"{text}\": {why}"));
            self.report(finding.allowed(format!("expected {described}")));
        }
    }

    /// Checks a value without parts.
    pub(super) fn scalar(&mut self, schema: &'a Json, node: &Node, path: &FieldPath) {
        if !fits(schema, node) {
            let types: Vec<_> = allowed_types(schema).into_iter().map(type_name).collect();
            return self.wrong_type(&types.join(" or "), node, path);
        }
        match &node.value {
            Value::Text(text) => {
                let names = fields::names(schema);
                if !names.is_empty() && !names.contains(&text.as_str()) {
                    let finding =
                        Diagnostic::new(path.clone(), format!("unknown name \"{text}\" for `{path}`"))
                            .allowed(format!("allowed: {}", names.join(", ")))
                            .suggest(closest_name(text, names.iter().copied()));
                    self.report(finding);
                }
            }
            Value::Integer(value) => self.bounds(schema, *value as f64, node, path),
            Value::Float(value) => self.bounds(schema, *value, node, path),
            Value::Bool(_) | Value::Array(_) | Value::Table(_) => {}
        }
    }

    fn bounds(&mut self, schema: &'a Json, value: f64, node: &Node, path: &FieldPath) {
        let least = schema["minimum"].as_f64();
        // Schemars omits the bounds of large integer types.
        let most = schema["maximum"].as_f64().or(match schema["format"].as_str() {
            Some("uint32") => Some(f64::from(u32::MAX)),
            Some("uint16") => Some(f64::from(u16::MAX)),
            Some("uint8") => Some(f64::from(u8::MAX)),
            _ => None,
        });
        let above = schema["exclusiveMinimum"].as_f64();
        let outside = least.is_some_and(|least| value < least)
            || most.is_some_and(|most| value > most)
            || above.is_some_and(|above| value <= above);
        if outside {
            let allowed = match (least, above, most) {
                (Some(least), _, Some(most)) => format!("from {least} to {most}"),
                (Some(least), _, None) => format!("{least} or more"),
                (None, Some(above), Some(most)) => format!("above {above}, at most {most}"),
                (None, Some(above), None) => format!("above {above}"),
                (None, None, most) => format!("at most {}", most.unwrap_or_default()),
            };
            let written = node.value.short().unwrap_or_default();
            let finding = Diagnostic::new(path.clone(), format!("`{path}` cannot be {written}"));
            self.report(finding.allowed(format!("allowed: {allowed}")));
        }
    }
}
