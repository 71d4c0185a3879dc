//! A record's key-value pairs as fields.

use log::{
    Record,
    kv::{Error, Key, Value, VisitSource, VisitValue},
};
use wdk_etw::__facade::Event;

/// Adds the key-value pairs of a record to an event.
pub fn add(event: &mut Event, record: &Record<'_>) {
    // An error in the source ends the pairs.
    let _result = record.key_values().visit(&mut Pairs { event });
}

struct Pairs<'a> {
    event: &'a mut Event,
}

impl<'a> VisitSource<'a> for Pairs<'_> {
    fn visit_pair(&mut self, key: Key<'a>, value: Value<'a>) -> Result<(), Error> {
        value.visit(Field { event: self.event, name: key.as_str() })
    }
}

struct Field<'a> {
    event: &'a mut Event,
    name: &'a str,
}

impl VisitValue<'_> for Field<'_> {
    fn visit_any(&mut self, value: Value<'_>) -> Result<(), Error> {
        self.event.format(self.name, format_args!("{value}"));
        Ok(())
    }

    fn visit_null(&mut self) -> Result<(), Error> {
        self.event.str(self.name, "");
        Ok(())
    }

    fn visit_u64(&mut self, value: u64) -> Result<(), Error> {
        self.event.u64(self.name, value);
        Ok(())
    }

    fn visit_i64(&mut self, value: i64) -> Result<(), Error> {
        self.event.i64(self.name, value);
        Ok(())
    }

    fn visit_f64(&mut self, value: f64) -> Result<(), Error> {
        self.event.f64(self.name, value);
        Ok(())
    }

    fn visit_bool(&mut self, value: bool) -> Result<(), Error> {
        self.event.bool(self.name, value);
        Ok(())
    }

    fn visit_str(&mut self, value: &str) -> Result<(), Error> {
        self.event.str(self.name, value);
        Ok(())
    }
}
