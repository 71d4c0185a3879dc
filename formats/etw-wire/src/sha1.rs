//! SHA-1 (FIPS 180-4) that works at compile time: the available hash crates have no `const`
//! functions.

/// The state of a hash computation.
pub struct Sha1 {
    state: [u32; 5],
    block: [u8; 64],
    filled: usize,
    length: u64,
}

impl Sha1 {
    /// Starts a hash.
    pub const fn new() -> Self {
        Self {
            state: [0x6745_2301, 0xEFCD_AB89, 0x98BA_DCFE, 0x1032_5476, 0xC3D2_E1F0],
            block: [0; 64],
            filled: 0,
            length: 0,
        }
    }

    /// Adds a byte of the message.
    pub const fn push(&mut self, byte: u8) {
        self.put(byte);
        self.length = self.length.wrapping_add(8);
    }

    #[allow(clippy::indexing_slicing, reason = "`filled` is below 64")]
    const fn put(&mut self, byte: u8) {
        self.block[self.filled] = byte;
        self.filled = self.filled.wrapping_add(1) % 64;
        if self.filled == 0 {
            self.state = Self::compress(self.state, &self.block);
        }
    }

    /// Ends the message and returns its digest.
    #[allow(clippy::indexing_slicing, reason = "indices are below the arrays' lengths")]
    pub const fn finish(mut self) -> [u8; 20] {
        let length = self.length.to_be_bytes();
        self.put(0x80);
        while self.filled != 56 {
            self.put(0);
        }
        let mut at = 0;
        while at < length.len() {
            self.put(length[at]);
            at = at.wrapping_add(1);
        }
        let mut digest = [0; 20];
        let mut at = 0;
        while at < digest.len() {
            digest[at] = self.state[at / 4].to_be_bytes()[at % 4];
            at = at.wrapping_add(1);
        }
        digest
    }

    #[allow(
        clippy::indexing_slicing,
        clippy::many_single_char_names,
        reason = "indices are below the arrays' lengths; the letters are the standard's"
    )]
    const fn compress(state: [u32; 5], block: &[u8; 64]) -> [u32; 5] {
        let mut w = [0_u32; 80];
        let mut t = 0_usize;
        while t < 80 {
            w[t] = if t < 16 {
                let at = t.wrapping_mul(4);
                u32::from_be_bytes([
                    block[at],
                    block[at.wrapping_add(1)],
                    block[at.wrapping_add(2)],
                    block[at.wrapping_add(3)],
                ])
            } else {
                (w[t.wrapping_sub(3)]
                    ^ w[t.wrapping_sub(8)]
                    ^ w[t.wrapping_sub(14)]
                    ^ w[t.wrapping_sub(16)])
                .rotate_left(1)
            };
            t = t.wrapping_add(1);
        }
        let [mut a, mut b, mut c, mut d, mut e] = state;
        t = 0;
        while t < 80 {
            let (f, k) = match t / 20 {
                0 => (b & c | !b & d, 0x5A82_7999),
                1 => (b ^ c ^ d, 0x6ED9_EBA1),
                2 => (b & c | b & d | c & d, 0x8F1B_BCDC),
                _ => (b ^ c ^ d, 0xCA62_C1D6),
            };
            let next =
                a.rotate_left(5).wrapping_add(f).wrapping_add(e).wrapping_add(k).wrapping_add(w[t]);
            (e, d, c, b, a) = (d, c, b.rotate_left(30), a, next);
            t = t.wrapping_add(1);
        }
        [
            state[0].wrapping_add(a),
            state[1].wrapping_add(b),
            state[2].wrapping_add(c),
            state[3].wrapping_add(d),
            state[4].wrapping_add(e),
        ]
    }
}
