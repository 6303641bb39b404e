//! Embeds papers, cases of validation and measurements anew when a file is added.

fn main() {
    println!("cargo:rerun-if-changed=papers");
    println!("cargo:rerun-if-changed=validation");
    println!("cargo:rerun-if-changed=truth");
}
