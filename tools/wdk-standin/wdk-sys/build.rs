//! Selects the driver model, and tells the `call_unsafe_wdf_function_binding!`
//! macro where the framework's signatures are: it reads them from the source of
//! the types, and takes the file's path as a literal only.

use std::{env, fs, path::Path};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let types = Path::new(&env::var("CARGO_MANIFEST_DIR")?).join("src/types.rs");
    println!("cargo::rerun-if-changed={}", types.display());
    let out = Path::new(&env::var("OUT_DIR")?).join("call_unsafe_wdf_function_binding.rs");
    let path = types.to_str().ok_or("the path of types.rs is not UTF-8")?;
    fs::write(
        out,
        format!(
            "/// Calls a function of the framework by its name. The result is the\n\
             /// function's.\n\
             ///\n\
             /// # Safety\n\
             ///\n\
             /// The arguments are what the function's documentation asks for, and the\n\
             /// driver is bound to the framework.\n\
             #[macro_export]\n\
             macro_rules! call_unsafe_wdf_function_binding {{\n\
             ($($tokens:tt)*) => {{\n\
             $crate::__proc_macros::call_unsafe_wdf_function_binding!({path:?}, $($tokens)*)\n\
             }};\n\
             }}\n"
        ),
    )?;
    wdk_build::configure_wdk_library_build()?;
    Ok(())
}
