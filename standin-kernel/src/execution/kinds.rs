//! Kinds of handles to objects whose state is not typed.

use super::routine::Kind;

/// Declares kinds of handles.
macro_rules! kinds {
    ($($name:ident $c_name:literal)*) => {$(
        #[doc = concat!("The kind of `", $c_name, "`.")]
        pub enum $name {}

        impl Kind for $name {
            const NAME: &'static str = $c_name;
        }
    )*};
}

kinds! {
    NtObject "HANDLE"
    AnyObject "WDFOBJECT"
    PowerHandle "POHANDLE"
    UsbDevice "WDFUSBDEVICE"
}
