//! Tests events with many fields.

#![allow(
    clippy::too_many_arguments,
    reason = "events with many fields are the subject of the tests"
)]

use etl_file::PointerSize;
use etl_file::internals::schema::Schema;
use mock_etw::enabled;
use wdk_etw::emit;

/// Declares events with a field for each name, and a function that writes them: the fields of numbers
/// count from 0.
macro_rules! large {
    ([$($first:ident)*] [$($text:ident)*] [$($more:ident)*]) => {
        /// More fields than the compiler's `recursion_limit` of 128, which share one data descriptor,
        /// and as many strings as the data descriptors of an event allow.
        #[wdk_etw::provider(name = "Test.Large", group = "2e651177-aeab-5ffc-66e2-144601de7da8")]
        mod trace {
            #[event(level = Info, keyword = none)]
            pub fn described($($first: u8,)* $($text: u8,)* $($more: u8,)*);

            #[structure]
            pub struct Many { $(pub $first: u8,)* }

            #[event(id = 1, level = Info, keyword = none)]
            pub fn listed(first: Many, second: Many, third: Many);

            #[event(id = 2, level = Info, keyword = none)]
            pub fn texts($($first: &str,)* $($text: &str,)*);
        }

        fn write_large() {
            let mut numbers = 0_u8..;
            $(let $first = numbers.next().unwrap();)*
            $(let $text = numbers.next().unwrap();)*
            $(let $more = numbers.next().unwrap();)*
            emit!(trace::described($($first,)* $($text,)* $($more,)*));
            let many = trace::Many { $($first,)* };
            emit!(trace::listed(many, many, many));
            emit!(trace::texts($({ let _ = $first; "x" },)* $({ let _ = $text; "x" },)*));
        }
    };
}

large! {
    [
        f0 f1 f2 f3 f4 f5 f6 f7 f8 f9 f10 f11 f12 f13 f14 f15 f16 f17 f18 f19 f20 f21 f22 f23 f24
        f25 f26 f27 f28 f29 f30 f31 f32 f33 f34 f35 f36 f37 f38 f39 f40 f41 f42 f43 f44 f45 f46 f47
        f48 f49
    ]
    [
        f50 f51 f52 f53 f54 f55 f56 f57 f58 f59 f60 f61 f62 f63
    ]
    [
        f64 f65 f66 f67 f68 f69 f70 f71 f72 f73 f74 f75 f76 f77 f78 f79 f80 f81 f82 f83 f84 f85 f86
        f87 f88 f89 f90 f91 f92 f93 f94 f95 f96 f97 f98 f99 f100 f101 f102 f103 f104 f105 f106 f107
        f108 f109 f110 f111 f112 f113 f114 f115 f116 f117 f118 f119 f120 f121 f122 f123 f124 f125
        f126 f127 f128 f129 f130 f131 f132 f133 f134 f135 f136 f137 f138 f139 f140 f141 f142 f143
        f144 f145 f146 f147 f148 f149 f150 f151 f152 f153 f154 f155 f156 f157 f158 f159 f160 f161
        f162 f163 f164 f165 f166 f167 f168 f169 f170 f171 f172 f173 f174 f175 f176 f177 f178 f179
        f180 f181 f182 f183 f184 f185 f186 f187 f188 f189 f190 f191 f192 f193 f194 f195 f196 f197
        f198 f199 f200 f201 f202 f203 f204 f205 f206 f207 f208 f209 f210 f211 f212 f213 f214 f215
        f216 f217 f218 f219 f220 f221 f222 f223 f224 f225 f226 f227 f228 f229 f230 f231 f232 f233
        f234 f235 f236 f237 f238 f239 f240 f241 f242 f243 f244 f245 f246 f247 f248 f249
    ]
}

#[test]
fn events_can_have_more_fields_than_the_compiler_nests_types() {
    let etw = enabled(&trace::PROVIDER, 255);
    write_large();
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
#[cfg_attr(miri, ignore = "Miri's stack frames are not at descending addresses")]
fn many_writes_in_one_function_use_little_stack() {
    let used = depth() - write_many("text");
    assert!(used < 64 * 8, "64 writes use {used} bytes of the stack");
}
