// R-O2: tools do not agree on the hash of a name outside ASCII.
use wdk_etw::{Guid, guid_of_name};

const ID: Guid = guid_of_name!("Contoso.Gerät");

fn main() {
    let _id = ID;
}
