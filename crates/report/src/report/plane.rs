//! Many values over time in one byte each.

use serde::Serialize;

use super::rounded;

/// A matrix of rows times instants, as text that a browser decodes with one call.
#[derive(Debug, Serialize)]
pub(super) struct QuantizedMatrix {
    /// Largest value, kept exactly.
    top: f64,
    /// Base 64 of one byte a value, row by row. A value is `top * (byte / 255)^2`, which keeps small values
    /// distinguishable. Only 0 is byte 0.
    data: String,
}

impl QuantizedMatrix {
    #[cfg(test)]
    pub(super) fn top(&self) -> f64 {
        self.top
    }

    /// Encodes rows of equal length. Returns `None` if all values are 0.
    pub(super) fn from_rows(rows: &[Vec<f64>]) -> Option<QuantizedMatrix> {
        let top = rows.iter().flatten().copied().fold(0.0, f64::max);
        if top <= 0.0 {
            return None;
        }
        let byte = |v: &f64| {
            let step = ((v / top).max(0.0).sqrt() * 255.0).round() as u8;
            if *v > 0.0 { step.max(1) } else { 0 }
        };
        let bytes: Vec<u8> = rows.iter().flatten().map(byte).collect();
        Some(QuantizedMatrix { top: rounded(top), data: base64(&bytes) })
    }
}

/// Encodes base 64 (RFC 4648, section 4).
fn base64(bytes: &[u8]) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut out = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for three in bytes.chunks(3) {
        let word = three.iter().fold(0u32, |word, &b| word << 8 | u32::from(b)) << (8 * (3 - three.len()));
        for i in 0..4 {
            let letter = LETTERS[(word >> (18 - 6 * i) & 63) as usize];
            out.push(if i <= three.len() { char::from(letter) } else { '=' });
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base_64_as_the_rfc_has_it() {
        // RFC 4648, section 10.
        for (plain, coded) in [
            ("", ""),
            ("f", "Zg=="),
            ("fo", "Zm8="),
            ("foo", "Zm9v"),
            ("foob", "Zm9vYg=="),
            ("fooba", "Zm9vYmE="),
            ("foobar", "Zm9vYmFy"),
        ] {
            assert_eq!(base64(plain.as_bytes()), coded);
        }
    }

    #[test]
    fn the_largest_is_exact_and_only_zero_is_zero() {
        // 25 of 100: sqrt(0.25) * 255 = 127.5, rounded up to 128. 1e-9 is far below a step.
        let plane = QuantizedMatrix::from_rows(&[vec![100.0, 0.0], vec![25.0, 1e-9]]).unwrap();
        assert_eq!((plane.top, plane.data), (100.0, base64(&[255, 0, 128, 1])));
        assert!(QuantizedMatrix::from_rows(&[vec![0.0; 3]]).is_none());
    }
}
