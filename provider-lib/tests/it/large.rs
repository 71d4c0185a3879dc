//! Tests events with many fields.

#![allow(
    clippy::too_many_arguments,
    reason = "events with many fields are the subject of the tests"
)]

use etl_file::PointerSize;
use etl_file::internals::schema::Schema;
use mock_etw::enabled;
use wdk_etw::emit;

/// More fields than the compiler's `recursion_limit` of 128, which share one data descriptor, and
/// as many strings as the data descriptors of an event allow.
#[wdk_etw::provider(name = "Test.Large", group = "2e651177-aeab-5ffc-66e2-144601de7da8")]
#[rustfmt::skip]
mod trace {
    #[event(level = Info, keyword = none)]
    pub fn described(
        f0: u8, f1: u8, f2: u8, f3: u8, f4: u8, f5: u8, f6: u8, f7: u8, f8: u8, f9: u8, f10: u8,
        f11: u8, f12: u8, f13: u8, f14: u8, f15: u8, f16: u8, f17: u8, f18: u8, f19: u8, f20: u8,
        f21: u8, f22: u8, f23: u8, f24: u8, f25: u8, f26: u8, f27: u8, f28: u8, f29: u8, f30: u8,
        f31: u8, f32: u8, f33: u8, f34: u8, f35: u8, f36: u8, f37: u8, f38: u8, f39: u8, f40: u8,
        f41: u8, f42: u8, f43: u8, f44: u8, f45: u8, f46: u8, f47: u8, f48: u8, f49: u8, f50: u8,
        f51: u8, f52: u8, f53: u8, f54: u8, f55: u8, f56: u8, f57: u8, f58: u8, f59: u8, f60: u8,
        f61: u8, f62: u8, f63: u8, f64: u8, f65: u8, f66: u8, f67: u8, f68: u8, f69: u8, f70: u8,
        f71: u8, f72: u8, f73: u8, f74: u8, f75: u8, f76: u8, f77: u8, f78: u8, f79: u8, f80: u8,
        f81: u8, f82: u8, f83: u8, f84: u8, f85: u8, f86: u8, f87: u8, f88: u8, f89: u8, f90: u8,
        f91: u8, f92: u8, f93: u8, f94: u8, f95: u8, f96: u8, f97: u8, f98: u8, f99: u8, f100: u8,
        f101: u8, f102: u8, f103: u8, f104: u8, f105: u8, f106: u8, f107: u8, f108: u8, f109: u8,
        f110: u8, f111: u8, f112: u8, f113: u8, f114: u8, f115: u8, f116: u8, f117: u8, f118: u8,
        f119: u8, f120: u8, f121: u8, f122: u8, f123: u8, f124: u8, f125: u8, f126: u8, f127: u8,
        f128: u8, f129: u8, f130: u8, f131: u8, f132: u8, f133: u8, f134: u8, f135: u8, f136: u8,
        f137: u8, f138: u8, f139: u8, f140: u8, f141: u8, f142: u8, f143: u8, f144: u8, f145: u8,
        f146: u8, f147: u8, f148: u8, f149: u8, f150: u8, f151: u8, f152: u8, f153: u8, f154: u8,
        f155: u8, f156: u8, f157: u8, f158: u8, f159: u8, f160: u8, f161: u8, f162: u8, f163: u8,
        f164: u8, f165: u8, f166: u8, f167: u8, f168: u8, f169: u8, f170: u8, f171: u8, f172: u8,
        f173: u8, f174: u8, f175: u8, f176: u8, f177: u8, f178: u8, f179: u8, f180: u8, f181: u8,
        f182: u8, f183: u8, f184: u8, f185: u8, f186: u8, f187: u8, f188: u8, f189: u8, f190: u8,
        f191: u8, f192: u8, f193: u8, f194: u8, f195: u8, f196: u8, f197: u8, f198: u8, f199: u8,
        f200: u8, f201: u8, f202: u8, f203: u8, f204: u8, f205: u8, f206: u8, f207: u8, f208: u8,
        f209: u8, f210: u8, f211: u8, f212: u8, f213: u8, f214: u8, f215: u8, f216: u8, f217: u8,
        f218: u8, f219: u8, f220: u8, f221: u8, f222: u8, f223: u8, f224: u8, f225: u8, f226: u8,
        f227: u8, f228: u8, f229: u8, f230: u8, f231: u8, f232: u8, f233: u8, f234: u8, f235: u8,
        f236: u8, f237: u8, f238: u8, f239: u8, f240: u8, f241: u8, f242: u8, f243: u8, f244: u8,
        f245: u8, f246: u8, f247: u8, f248: u8, f249: u8,
    );

    #[structure]
    pub struct Many {
        pub f0: u8, pub f1: u8, pub f2: u8, pub f3: u8, pub f4: u8, pub f5: u8, pub f6: u8,
        pub f7: u8, pub f8: u8, pub f9: u8, pub f10: u8, pub f11: u8, pub f12: u8, pub f13:
        u8, pub f14: u8, pub f15: u8, pub f16: u8, pub f17: u8, pub f18: u8, pub f19: u8,
        pub f20: u8, pub f21: u8, pub f22: u8, pub f23: u8, pub f24: u8, pub f25: u8, pub
        f26: u8, pub f27: u8, pub f28: u8, pub f29: u8, pub f30: u8, pub f31: u8, pub f32:
        u8, pub f33: u8, pub f34: u8, pub f35: u8, pub f36: u8, pub f37: u8, pub f38: u8,
        pub f39: u8, pub f40: u8, pub f41: u8, pub f42: u8, pub f43: u8, pub f44: u8, pub
        f45: u8, pub f46: u8, pub f47: u8, pub f48: u8, pub f49: u8,
    }

    #[event(id = 1, level = Info, keyword = none)]
    pub fn listed(first: Many, second: Many, third: Many);

    #[event(id = 2, level = Info, keyword = none)]
    pub fn texts(
        f0: &str, f1: &str, f2: &str, f3: &str, f4: &str, f5: &str, f6: &str, f7: &str, f8:
        &str, f9: &str, f10: &str, f11: &str, f12: &str, f13: &str, f14: &str, f15: &str,
        f16: &str, f17: &str, f18: &str, f19: &str, f20: &str, f21: &str, f22: &str, f23:
        &str, f24: &str, f25: &str, f26: &str, f27: &str, f28: &str, f29: &str, f30: &str,
        f31: &str, f32: &str, f33: &str, f34: &str, f35: &str, f36: &str, f37: &str, f38:
        &str, f39: &str, f40: &str, f41: &str, f42: &str, f43: &str, f44: &str, f45: &str,
        f46: &str, f47: &str, f48: &str, f49: &str, f50: &str, f51: &str, f52: &str, f53:
        &str, f54: &str, f55: &str, f56: &str, f57: &str, f58: &str, f59: &str, f60: &str,
        f61: &str, f62: &str, f63: &str,
    );
}

#[test]
#[rustfmt::skip]
fn events_can_have_more_fields_than_the_compiler_nests_types() {
    let etw = enabled(&trace::PROVIDER, 255);
    emit!(trace::described(
        0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24,
        25, 26, 27, 28, 29, 30, 31, 32, 33, 34, 35, 36, 37, 38, 39, 40, 41, 42, 43, 44, 45, 46, 47,
        48, 49, 50, 51, 52, 53, 54, 55, 56, 57, 58, 59, 60, 61, 62, 63, 64, 65, 66, 67, 68, 69, 70,
        71, 72, 73, 74, 75, 76, 77, 78, 79, 80, 81, 82, 83, 84, 85, 86, 87, 88, 89, 90, 91, 92, 93,
        94, 95, 96, 97, 98, 99, 100, 101, 102, 103, 104, 105, 106, 107, 108, 109, 110, 111, 112,
        113, 114, 115, 116, 117, 118, 119, 120, 121, 122, 123, 124, 125, 126, 127, 128, 129, 130,
        131, 132, 133, 134, 135, 136, 137, 138, 139, 140, 141, 142, 143, 144, 145, 146, 147, 148,
        149, 150, 151, 152, 153, 154, 155, 156, 157, 158, 159, 160, 161, 162, 163, 164, 165, 166,
        167, 168, 169, 170, 171, 172, 173, 174, 175, 176, 177, 178, 179, 180, 181, 182, 183, 184,
        185, 186, 187, 188, 189, 190, 191, 192, 193, 194, 195, 196, 197, 198, 199, 200, 201, 202,
        203, 204, 205, 206, 207, 208, 209, 210, 211, 212, 213, 214, 215, 216, 217, 218, 219, 220,
        221, 222, 223, 224, 225, 226, 227, 228, 229, 230, 231, 232, 233, 234, 235, 236, 237, 238,
        239, 240, 241, 242, 243, 244, 245, 246, 247, 248, 249,
    ));
    let many = trace::Many {
        f0: 0, f1: 1, f2: 2, f3: 3, f4: 4, f5: 5, f6: 6, f7: 7, f8: 8, f9: 9, f10: 10, f11:
        11, f12: 12, f13: 13, f14: 14, f15: 15, f16: 16, f17: 17, f18: 18, f19: 19, f20: 20,
        f21: 21, f22: 22, f23: 23, f24: 24, f25: 25, f26: 26, f27: 27, f28: 28, f29: 29,
        f30: 30, f31: 31, f32: 32, f33: 33, f34: 34, f35: 35, f36: 36, f37: 37, f38: 38,
        f39: 39, f40: 40, f41: 41, f42: 42, f43: 43, f44: 44, f45: 45, f46: 46, f47: 47,
        f48: 48, f49: 49,
    };
    emit!(trace::listed(many, many, many));
    emit!(trace::texts(
        "x", "x", "x", "x", "x", "x", "x", "x", "x", "x", "x", "x", "x", "x", "x", "x", "x",
        "x", "x", "x", "x", "x", "x", "x", "x", "x", "x", "x", "x", "x", "x", "x", "x", "x",
        "x", "x", "x", "x", "x", "x", "x", "x", "x", "x", "x", "x", "x", "x", "x", "x", "x",
        "x", "x", "x", "x", "x", "x", "x", "x", "x", "x", "x", "x", "x",
    ));
    trace::unregister().unwrap();
    let writes = etw.writes();
    let expected: Vec<u8> = (0..250).collect();
    assert_eq!(writes[0].data.len(), 3);
    assert_eq!(writes[0].data[2].1, expected);
    let schema = Schema::parse_trace_logging(&writes[0].data[1].1).unwrap();
    let payload = schema.decode(&expected, PointerSize::Eight);
    assert_eq!((payload.error, payload.fields.len()), (None, 250));
    assert_eq!(writes[1].data, [(0, expected[..50].repeat(3))]);
    // A length shares a data descriptor with the number before it; each string has its own.
    assert_eq!(writes[2].data.len(), 128);
    let texts: Vec<u8> = writes[2].data.iter().flat_map(|(_, bytes)| bytes.clone()).collect();
    assert_eq!(texts, [1, 0, b'x'].repeat(64));
}

/// Returns an address on the current stack.
#[inline(never)]
fn depth() -> usize {
    let here = 0_u8;
    std::hint::black_box(&raw const here).addr()
}

macro_rules! eight {
    ($($write:tt)*) => { $($write)* $($write)* $($write)* $($write)* $($write)* $($write)* $($write)* $($write)* };
}

#[wdk_etw::provider(name = "Test.Many")]
mod many {
    #[event(level = Info, keyword = none)]
    pub fn written(number: u64, text: &str, bytes: &[u8]);
}

#[inline(never)]
fn write_many(text: &str) -> usize {
    eight!(eight!(emit!(many::written(1, text, &[2]));););
    depth()
}

/// In debug builds, the locals of a function do not share stack space.
#[test]
fn many_writes_in_one_function_use_little_stack() {
    let used = depth() - write_many("text");
    assert!(used < 64 * 8, "64 writes use {used} bytes of the stack");
}
