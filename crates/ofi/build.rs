//! Link arguments of the shared library.

fn main() {
    // Rust's thread-local destructors and the loop's threads outlive a dlclose: the library stays loaded once it is.
    println!("cargo:rustc-cdylib-link-arg=-Wl,-z,nodelete");
    println!("cargo:rerun-if-changed=build.rs");
}
