//! Writes fields into bytes whose length has been checked.

pub(super) fn put<const N: usize>(out: &mut [u8], at: usize, bytes: [u8; N]) {
    out[at..at + N].copy_from_slice(&bytes);
}

pub(super) fn put_u24(out: &mut [u8], at: usize, value: u32) {
    let [_, a, b, c] = value.to_be_bytes();
    put(out, at, [a, b, c]);
}
