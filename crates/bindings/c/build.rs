//! The library's name for the linker. Its threads may outlive `dlclose`, so it stays loaded.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    for flag in ["-soname,libsluice.so.0", "-z,nodelete"] {
        println!("cargo::rustc-cdylib-link-arg=-Wl,{flag}");
    }
}
