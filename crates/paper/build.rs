//! A new file among the papers makes them be embedded anew.

fn main() {
    println!("cargo:rerun-if-changed=papers");
}
