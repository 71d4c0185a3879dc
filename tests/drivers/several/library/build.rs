//! Passes the declaration of the library's provider on to the driver that links the library.

fn main() -> Result<(), wdk_etw_build::BuildError> {
    wdk_etw_build::export("src/trace.rs")
}
