use wdk_etw::{Guid, guid};

const ID: Guid = guid!("4f50731a-89cf-4782-b3e0-dce8c90476bg");

fn main() {
    let _id = ID;
}
