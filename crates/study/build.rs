//! Embeds papers and cases of validation anew when a file is added.

fn main() {
    println!("cargo:rerun-if-changed=papers");
    println!("cargo:rerun-if-changed=validation");
}
