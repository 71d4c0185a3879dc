//! SHA-256 (FIPS 180-4). A hash crate would bring eight crates into each driver's build script.

/// The first 32 bits of the fractional parts of the cube roots of the first 64 primes.
const ROUNDS: [u32; 64] = [
    0x428A_2F98, 0x7137_4491, 0xB5C0_FBCF, 0xE9B5_DBA5, 0x3956_C25B, 0x59F1_11F1, 0x923F_82A4,
    0xAB1C_5ED5, 0xD807_AA98, 0x1283_5B01, 0x2431_85BE, 0x550C_7DC3, 0x72BE_5D74, 0x80DE_B1FE,
    0x9BDC_06A7, 0xC19B_F174, 0xE49B_69C1, 0xEFBE_4786, 0x0FC1_9DC6, 0x240C_A1CC, 0x2DE9_2C6F,
    0x4A74_84AA, 0x5CB0_A9DC, 0x76F9_88DA, 0x983E_5152, 0xA831_C66D, 0xB003_27C8, 0xBF59_7FC7,
    0xC6E0_0BF3, 0xD5A7_9147, 0x06CA_6351, 0x1429_2967, 0x27B7_0A85, 0x2E1B_2138, 0x4D2C_6DFC,
    0x5338_0D13, 0x650A_7354, 0x766A_0ABB, 0x81C2_C92E, 0x9272_2C85, 0xA2BF_E8A1, 0xA81A_664B,
    0xC24B_8B70, 0xC76C_51A3, 0xD192_E819, 0xD699_0624, 0xF40E_3585, 0x106A_A070, 0x19A4_C116,
    0x1E37_6C08, 0x2748_774C, 0x34B0_BCB5, 0x391C_0CB3, 0x4ED8_AA4A, 0x5B9C_CA4F, 0x682E_6FF3,
    0x748F_82EE, 0x78A5_636F, 0x84C8_7814, 0x8CC7_0208, 0x90BE_FFFA, 0xA450_6CEB, 0xBEF9_A3F7,
    0xC671_78F2,
];

/// Returns the digest of a message.
pub fn digest(message: &[u8]) -> [u8; 32] {
    // The first 32 bits of the fractional parts of the square roots of the first 8 primes.
    let mut state: [u32; 8] = [
        0x6A09_E667, 0xBB67_AE85, 0x3C6E_F372, 0xA54F_F53A, 0x510E_527F, 0x9B05_688C, 0x1F83_D9AB,
        0x5BE0_CD19,
    ];
    let mut padded = message.to_vec();
    padded.push(0x80);
    let length = padded.len().saturating_add(8).next_multiple_of(64).saturating_sub(8);
    padded.resize(length, 0);
    let bits = u64::try_from(message.len()).unwrap_or(u64::MAX).wrapping_mul(8);
    padded.extend(bits.to_be_bytes());
    for block in padded.as_chunks::<64>().0 {
        state = compressed(state, block);
    }
    let mut digest = [0; 32];
    for (bytes, word) in digest.as_chunks_mut().0.iter_mut().zip(state) {
        *bytes = word.to_be_bytes();
    }
    digest
}

/// Returns the state after a block.
#[expect(clippy::many_single_char_names, reason = "the standard's names")]
fn compressed(state: [u32; 8], block: &[u8; 64]) -> [u32; 8] {
    // The last 16 words of the message schedule, the oldest first.
    let mut words = [0_u32; 16];
    for (word, bytes) in words.iter_mut().zip(block.as_chunks().0) {
        *word = u32::from_be_bytes(*bytes);
    }
    let [mut a, mut b, mut c, mut d, mut e, mut f, mut g, mut h] = state;
    for round in ROUNDS {
        let [word, second, _, _, _, _, _, _, _, tenth, _, _, _, _, fifteenth, _] = words;
        let choice = (e & f) ^ (!e & g);
        let sum = e.rotate_right(6) ^ e.rotate_right(11) ^ e.rotate_right(25);
        let one = h.wrapping_add(sum).wrapping_add(choice).wrapping_add(round).wrapping_add(word);
        let majority = (a & b) ^ (a & c) ^ (b & c);
        let sum = a.rotate_right(2) ^ a.rotate_right(13) ^ a.rotate_right(22);
        let two = sum.wrapping_add(majority);
        (h, g, f, e) = (g, f, e, d.wrapping_add(one));
        (d, c, b, a) = (c, b, a, one.wrapping_add(two));
        let old = second.rotate_right(7) ^ second.rotate_right(18) ^ (second >> 3);
        let new = fifteenth.rotate_right(17) ^ fifteenth.rotate_right(19) ^ (fifteenth >> 10);
        words.rotate_left(1);
        if let Some(last) = words.last_mut() {
            *last = word.wrapping_add(old).wrapping_add(tenth).wrapping_add(new);
        }
    }
    let mut sums = state;
    for (sum, word) in sums.iter_mut().zip([a, b, c, d, e, f, g, h]) {
        *sum = sum.wrapping_add(word);
    }
    sums
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;

    use super::*;

    fn hexadecimal(message: &[u8]) -> String {
        digest(message).iter().fold(String::new(), |mut text, byte| {
            write!(text, "{byte:02x}").unwrap();
            text
        })
    }

    #[test]
    fn the_standards_examples_have_their_digests() {
        for (message, expected) in [
            ("", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"),
            ("abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"),
            (
                "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
                "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1",
            ),
        ] {
            assert_eq!(hexadecimal(message.as_bytes()), expected, "{message}");
        }
    }

    #[test]
    fn messages_around_the_length_of_a_block_are_padded() {
        for (length, expected) in [
            (55, "9f4390f8d30c2dd92ec9f095b65e2b9ae9b0a925a5258e241c9f1e910f734318"),
            (56, "b35439a4ac6f0948b6d6f9e3c6af0f5f590ce20f1bde7090ef7970686ec6738a"),
            (63, "7d3e74a05d7db15bce4ad9ec0658ea98e3f06eeecf16b4c6fff2da457ddc2f34"),
            (64, "ffe054fe7ae0cb6dc65c3af9b61d5209f439851db43d0ba5997337df154668eb"),
            (119, "31eba51c313a5c08226adf18d4a359cfdfd8d2e816b13f4af952f7ea6584dcfb"),
            (120, "2f3d335432c70b580af0e8e1b3674a7c020d683aa5f73aaaedfdc55af904c21c"),
        ] {
            assert_eq!(hexadecimal(&vec![b'a'; length]), expected, "{length}");
        }
    }
}
