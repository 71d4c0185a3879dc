//! The encoding of protocol buffers.
//!
//! Protocol buffer crates encode messages generated from a schema: they build each message in
//! memory and traverse it twice, once for its size. Perfetto's schema would generate tens of
//! thousands of lines, but timelines need only a few kinds of messages and write millions of them.
//! Fields therefore go directly to the output, and a length is filled in when its message is
//! complete.

/// The wire types of fields.
const VARINT: u32 = 0;
const FIXED64: u32 = 1;
const LENGTH_DELIMITED: u32 = 2;

/// Lengths below this limit take one byte.
const ONE_BYTE: usize = 0x80;

/// A message that is being encoded at the end of a buffer.
pub struct Message<'a> {
    out: &'a mut Vec<u8>,
}

impl<'a> Message<'a> {
    /// Starts a message at the end of a buffer.
    pub const fn new(out: &'a mut Vec<u8>) -> Self {
        Self { out }
    }

    fn tag(&mut self, field: u32, wire_type: u32) {
        varint(self.out, u64::from(field << 3 | wire_type));
    }

    /// Adds a field of type `uint32`, `uint64`, `bool` or an enumeration.
    pub fn uint(&mut self, field: u32, value: u64) {
        self.tag(field, VARINT);
        varint(self.out, value);
    }

    /// Adds a field of type `int32` or `int64`.
    pub fn int(&mut self, field: u32, value: i64) {
        self.uint(field, value.cast_unsigned());
    }

    /// Adds a field of type `sint32` or `sint64`.
    pub fn sint(&mut self, field: u32, value: i64) {
        self.uint(field, (value << 1 ^ value >> 63).cast_unsigned());
    }

    /// Adds a field of type `fixed64`.
    pub fn fixed(&mut self, field: u32, value: u64) {
        self.tag(field, FIXED64);
        self.out.extend_from_slice(&value.to_le_bytes());
    }

    /// Adds a field of type `double`.
    pub fn double(&mut self, field: u32, value: f64) {
        self.fixed(field, value.to_bits());
    }

    /// Adds a field of type `bytes`, or an encoded message.
    pub fn bytes(&mut self, field: u32, value: &[u8]) {
        self.tag(field, LENGTH_DELIMITED);
        varint(self.out, value.len() as u64);
        self.out.extend_from_slice(value);
    }

    /// Adds a field of type `string`.
    pub fn text(&mut self, field: u32, value: &str) {
        self.bytes(field, value.as_bytes());
    }

    /// Adds fields that are already encoded.
    pub fn fields(&mut self, encoded: &[u8]) {
        self.out.extend_from_slice(encoded);
    }

    /// Adds a message, which `content` encodes.
    pub fn message(&mut self, field: u32, content: impl FnOnce(&mut Message<'_>)) {
        self.tag(field, LENGTH_DELIMITED);
        // Most messages need one byte for the length; a longer length moves the message.
        self.out.push(0);
        let start = self.out.len();
        content(&mut Message { out: self.out });
        let length = self.out.len() - start;
        if length < ONE_BYTE {
            if let (Some(place), Ok(length)) = (self.out.get_mut(start - 1), u8::try_from(length)) {
                *place = length;
            }
            return;
        }
        let mut encoded = Vec::with_capacity(10);
        varint(&mut encoded, length as u64);
        self.out.splice(start - 1..start, encoded);
    }
}

/// Appends a number with seven bits per byte, lowest bits first.
pub fn varint(out: &mut Vec<u8>, mut value: u64) {
    loop {
        let [low, ..] = value.to_le_bytes();
        value >>= 7;
        if value == 0 {
            out.push(low & 0x7F);
            return;
        }
        out.push(low | 0x80);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn encoded(content: impl FnOnce(&mut Message<'_>)) -> Vec<u8> {
        let mut out = Vec::new();
        content(&mut Message::new(&mut out));
        out
    }

    // The examples come from the encoding's specification, protobuf.dev.
    #[test]
    fn fields_are_encoded_as_the_specification_says() {
        assert_eq!(encoded(|m| m.uint(1, 150)), [0x08, 0x96, 0x01]);
        let text = encoded(|m| m.text(2, "testing"));
        assert_eq!(text, [0x12, 7, b't', b'e', b's', b't', b'i', b'n', b'g']);
        let inner = encoded(|m| m.message(3, |m| m.uint(1, 150)));
        assert_eq!(inner, [0x1A, 0x03, 0x08, 0x96, 0x01]);
        let minus_two = [0x08, 254, 255, 255, 255, 255, 255, 255, 255, 255, 1];
        assert_eq!(encoded(|m| m.int(1, -2)), minus_two);
        assert_eq!(encoded(|m| m.sint(1, -2)), [0x08, 3]);
        assert_eq!(encoded(|m| m.sint(1, 2)), [0x08, 4]);
        assert_eq!(encoded(|m| m.sint(1, i64::MIN))[1..], [[255; 9].as_slice(), &[1]].concat());
        assert_eq!(encoded(|m| m.double(1, 1.0)), [0x09, 0, 0, 0, 0, 0, 0, 0xF0, 0x3F]);
        assert_eq!(encoded(|m| m.uint(95, u64::MAX))[..2], [0xF8, 0x05]);
    }

    #[test]
    fn long_messages_have_long_lengths() {
        for length in [0, 1, 127, 128, 129, 16_383, 16_384, 3_000_000] {
            let content = vec![7; length];
            let direct = encoded(|m| m.bytes(1, &content));
            let nested = encoded(|m| m.message(1, |m| m.fields(&content)));
            assert_eq!(direct, nested, "{length}");
        }
    }
}
