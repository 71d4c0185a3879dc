//! Tests the generated code of an event, part by part. The tests of `wdk-etw` compile and run it.

use wdk_etw_schema::{Configuration, Event, Provider, parse, tracelogging::Types};

use super::*;

/// Returns a provider with an event that has these fields.
fn declared(settings: &str, attributes: &str, fields: &str) -> Provider {
    let module = format!(
        "mod trace {{ #[map] #[repr(u32)] enum Kind {{ A = 1 }} #[structure] struct Place {{ x: u8 }} \
         #[event(level = Info, keyword = none{attributes})] fn x({fields}); }}"
    );
    parse::provider(
        format!("name = \"Test\"{settings}").parse().unwrap(),
        module.parse().unwrap(),
        &Configuration::new(),
    )
    .unwrap()
}

fn layout(provider: &Provider, event: &Event) -> Layout {
    let types = Types::of(provider);
    Layout::of(&event.fields, event.encoding, types, 0, Span::call_site()).unwrap()
}

/// Returns code as text, with short names for local variables and the library's items.
fn short(code: &TokenStream) -> String {
    code.to_string().replace("__wdk_etw_", "").replace(":: wdk_etw :: __macro :: ", "")
}

/// The functions generated for an event.
struct Functions {
    fast: String,
    slow: String,
}

/// Returns the functions generated for an event, each without its attributes.
fn functions(settings: &str, attributes: &str, fields: &str) -> Functions {
    let provider = declared(settings, attributes, fields);
    let code = crate::provider::expand(&provider).unwrap();
    let file: syn::File = syn::parse2(code).unwrap();
    let [syn::Item::Mod(module)] = &*file.items else {
        panic!("the provider is not a module");
    };
    let items = &module.content.as_ref().unwrap().1;
    let find = |name: &str| {
        let function = items.iter().find_map(|item| match item {
            syn::Item::Fn(function) if function.sig.ident == name => Some(function),
            _ => None,
        });
        let function = function.unwrap_or_else(|| panic!("there is no function `{name}`"));
        let (head, body) = (&function.sig, &function.block);
        short(&quote!(#head #body))
    };
    Functions { fast: find("__write_0"), slow: find("__write_0_slow") }
}

/// Returns the functions for an event whose fields have attributes that only manifests can express.
fn in_manifest(fields: &str) -> Functions {
    functions("", ", id = 1", fields)
}

/// Returns the functions for a `TraceLogging` event.
fn described(fields: &str) -> Functions {
    functions("", "", fields)
}

#[track_caller]
fn assert_has(code: &str, part: &TokenStream) {
    let part = part.to_string();
    assert!(code.contains(&part), "`{part}` is not in `{code}`");
}

#[track_caller]
fn assert_lacks(code: &str, part: &TokenStream) {
    let part = part.to_string();
    assert!(!code.contains(&part), "`{part}` is in `{code}`");
}

/// Returns the arguments of the function that writes an event with these fields.
fn arguments(fields: &str) -> String {
    let provider = declared("", "", fields);
    let event = &provider.events[0];
    let layout = layout(&provider, event);
    let fields = names::parameters(event);
    in_order(&layout, &quote!(event), &quote!(options), &fields).to_string().replace(' ', "")
}

// The event stays in the same register for the call of EtwWriteEx, so that it needs no copy.
#[test]
fn the_event_is_the_second_argument_behind_a_value_in_a_register() {
    for field in ["a: u8", "a: F64", "a: usize", "#[repr(u8)] a: usize", "a: Kind"] {
        let arguments = arguments(&format!("{field}, b: &str"));
        assert_eq!(arguments, "a,event,options,b", "{field}");
    }
    for kind in ["&str", "&[u32]", "Guid", "Place"] {
        let arguments = arguments(&format!("a: {kind}, b: u32"));
        assert_eq!(arguments, "event,options,a,b", "{kind}");
    }
    assert_eq!(arguments(""), "event,options,");
}

#[test]
fn both_functions_take_the_arguments_in_their_order() {
    let Functions { fast, slow } = described("a: u8, b: &str");
    let parameters = quote! {
        (a0: ::core::primitive::u8, event: EventRef<true>, options: Options,
            a1: &::core::primitive::str)
    };
    for code in [&fast, &slow] {
        assert_has(code, &parameters);
    }
    assert_has(&fast, &quote!(return __write_0_slow(a0, event, options, a1);));
    // A manifest event has no metadata.
    let Functions { fast, slow } = in_manifest("a: u8, b: &str");
    for code in [&fast, &slow] {
        assert_has(code, &quote!(event: EventRef<false>));
    }
}

#[test]
fn the_slow_function_is_called_if_the_provider_does_not_admit_the_event() {
    let Functions { fast, slow } = described("");
    assert_has(
        &fast,
        &quote! {
            let ::core::option::Option::Some(write) = ::wdk_etw::Provider::enter(&PROVIDER, event) else {
                return __write_0_slow(event, options,);
            };
        },
    );
    assert_has(
        &slow,
        &quote! {
            let ::core::option::Option::Some(write) = ::wdk_etw::Provider::enter_slow(&PROVIDER, event) else {
                return ::wdk_etw::NtStatus::SUCCESS;
            };
        },
    );
}

// A provider that counts nothing must not have counting code in its writes.
#[test]
fn only_a_provider_with_statistics_counts_its_events() {
    let data = quote!((
        &write,
        &options,
        &[Write::traits(&write), Write::event_metadata(&write), block_of_size::<_, 1usize>(&b0)]
    ));
    for (settings, finish) in
        [("", quote!(Write::finish #data)), (", statistics", quote!(Write::finish_counted #data))]
    {
        let Functions { fast, slow } = functions(settings, "", "a: u8");
        assert_has(&fast, &finish);
        assert_has(&slow, &quote!(Write::finish_slow #data));
    }
}

// Writes must not contain checks that never fail.
#[test]
fn only_a_number_of_fewer_bits_is_checked() {
    for narrow in [Scalar::U8, Scalar::I16, Scalar::U32, Scalar::I32] {
        assert!(can_exceed(narrow), "{narrow:?}");
    }
    for whole in [Scalar::U64, Scalar::I64, Scalar::Usize, Scalar::Isize] {
        assert!(!can_exceed(whole), "{whole:?}");
    }
    assert_lacks(&described("a: u8, #[repr(u64)] b: usize").fast, &quote!(if));
}

#[test]
fn a_number_that_exceeds_its_type_is_limited_on_the_slow_path() {
    let fields = "#[repr(u16)] a: usize, #[repr(u64)] b: usize, #[repr(i8)] c: isize";
    let Functions { fast, slow } = described(fields);
    assert_has(
        &fast,
        &quote! {
            let v0 = a0;
            let v1 = a1;
            let v2 = a2;
            if (v0 as ::core::primitive::u16 as ::core::primitive::usize) != v0
                || (v2 as ::core::primitive::i8 as ::core::primitive::isize) != v2
        },
    );
    assert_has(
        &slow,
        &quote! {
            let v0 = ::core::cmp::Ord::min(a0, ::core::primitive::u16::MAX as _);
            let v0 = ::core::cmp::Ord::max(v0, ::core::primitive::u16::MIN as _);
            Write::limited(
                &write,
                &options,
                a0 as ::core::primitive::u64,
                v0 as ::core::primitive::u64,
                0u16,
            );
            let v1 = a1;
            let v2 = ::core::cmp::Ord::min(a2, ::core::primitive::i8::MAX as _);
        },
    );
}

#[test]
fn values_that_do_not_fit_are_cut_on_the_slow_path() {
    let fields = "#[length(u8)] a: &[u16], b: &str, c: &[u32], d: &[Place]";
    let Functions { fast, slow } = in_manifest(fields);
    let room = wdk_etw_schema::MAX_CONTENT - 7;
    assert_has(
        &fast,
        &quote! {
            let t0: &[::core::primitive::u8] = bytes_of(a0);
            let t1: &[::core::primitive::u8] = ::core::primitive::str::as_bytes(a1);
            let t2: &[::core::primitive::u8] = bytes_of(a2);
            let t3: &[::core::primitive::u8] = bytes_of_size::<_, 1usize>(a3);
            if t0.len()
                .saturating_add(t1.len())
                .saturating_add(t2.len())
                .saturating_add(t3.len()) > #room
                || t0.len() > 510usize
            {
                return __write_0_slow(event, options, a0, a1, a2, a3);
            }
        },
    );
    assert_has(
        &slow,
        &quote! {
            let room: ::core::primitive::usize = #room;
            let t0: &[::core::primitive::u8] = bytes_of(a0);
            let t1: &[::core::primitive::u8] = ::core::primitive::str::as_bytes(a1);
            let t2: &[::core::primitive::u8] = bytes_of(a2);
            let t3: &[::core::primitive::u8] = bytes_of_size::<_, 1usize>(a3);
            let t0: &[::core::primitive::u8] = Write::fit(
                &write, &options, t0, ::core::cmp::Ord::min(room, 510usize), 0u16, Cut::Utf16,
            );
            let room = room.wrapping_sub(t0.len());
            let t1: &[::core::primitive::u8] =
                Write::fit(&write, &options, t1, room, 1u16, Cut::Characters,);
            let room = room.wrapping_sub(t1.len());
            let t2: &[::core::primitive::u8] =
                Write::fit(&write, &options, t2, room, 2u16, Cut::Units(4usize),);
            let room = room.wrapping_sub(t2.len());
            let t3: &[::core::primitive::u8] =
                Write::fit(&write, &options, t3, room, 3u16, Cut::Units(1usize),);
        },
    );
}

#[test]
fn values_that_cannot_be_cut_are_passed_whole() {
    let fields = "a: [u16; 3], b: &[Place; 2], c: Sid<'_>, d: SocketAddr";
    let Functions { fast, slow } = described(fields);
    for code in [&fast, &slow] {
        assert_has(
            code,
            &quote! {
                let t0: &[::core::primitive::u8] = bytes_of(elements(&a0));
                let t1: &[::core::primitive::u8] = bytes_of_size::<_, 1usize>(elements(&a1),);
                let t2: &[::core::primitive::u8] = ::wdk_etw::Sid::as_bytes(a2);
                let s3 = SocketBytes::new(&a3);
                let t3: &[::core::primitive::u8] = SocketBytes::as_bytes(&s3);
            },
        );
        assert_lacks(code, &quote!(Write::fit));
    }
}

#[test]
fn a_count_in_another_field_is_that_of_the_shortest_value_which_it_counts() {
    let fields = "number: u8, other: u16, #[repr(u32)] size: usize, #[length(field = number)] a: &str, \
                  #[count(field = size)] b: &[u64], #[length(field = number)] c: &[u16], d: &[u8]";
    let Functions { fast, slow } = in_manifest(fields);
    // The values are cut to the caller's numbers, and on the slow path again after `fit`.
    assert_has(
        &fast,
        &quote! {
            let (n0, d0) = least(
                a0 as ::core::primitive::u64,
                &[(t3, 1usize, Cut::Characters), (t5, 2usize, Cut::Utf16)],
            );
            let t3: &[::core::primitive::u8] = first(t3, n0, 1usize);
            let t5: &[::core::primitive::u8] = first(t5, n0, 2usize);
            let (n2, d2) =
                least(v2 as ::core::primitive::u64, &[(t4, 8usize, Cut::Units(8usize))],);
            let t4: &[::core::primitive::u8] = first(t4, n2, 8usize);
        },
    );
    assert_has(&fast, &quote!(d0 || d2 || t3.len()));
    assert_has(
        &slow,
        &quote! {
            let t3: &[::core::primitive::u8] =
                Write::shorten(&write, &options, t3, n0.wrapping_mul(1usize), 3u16);
            let t5: &[::core::primitive::u8] =
                Write::shorten(&write, &options, t5, n0.wrapping_mul(2usize), 5u16);
            let (n2, d2) =
                least(n2 as ::core::primitive::u64, &[(t4, 8usize, Cut::Units(8usize))],);
        },
    );
    assert_has(
        &slow,
        &quote! {
            let t3: &[::core::primitive::u8] =
                Write::first(&write, &options, t3, n0.wrapping_mul(1usize), 3u16, Cut::Characters);
            let t5: &[::core::primitive::u8] =
                Write::first(&write, &options, t5, n0.wrapping_mul(2usize), 5u16, Cut::Utf16);
            let (n2, d2) =
                least(v2 as ::core::primitive::u64, &[(t4, 8usize, Cut::Units(8usize))],);
        },
    );
    let values = quote! {
        let b0 = Packed(
            (n0 as ::core::primitive::u8), Packed(a1, (n2 as ::core::primitive::u32))
        );
    };
    for code in [&fast, &slow] {
        assert_has(code, &values);
        assert_has(code, &quote!(let b4 = length(t6);));
    }
    assert_eq!((fast.matches("least").count(), slow.matches("least").count()), (2, 4));
}

#[test]
fn a_length_in_a_field_of_its_own_counts_characters() {
    let fields = "#[length(u8)] a: &str, #[length(u32)] b: &[u16], c: &[u16], #[length(u16)] d: \
                  UnicodeString<'_>, #[count(u8)] e: &[u64], f: &[Place], g: &[u8]";
    let Functions { fast, slow } = in_manifest(fields);
    for code in [&fast, &slow] {
        for length in [
            quote!(let b0 = (length(t0) as ::core::primitive::u8);),
            quote!(let b2 = (count::<::core::primitive::u16>(t1) as ::core::primitive::u32);),
            quote!(let b4 = length(t2);),
            quote!(let b6 = count::<::core::primitive::u16>(t3);),
            quote!(let b8 = (count::<::core::primitive::u64>(t4) as ::core::primitive::u8);),
            quote!(let b10 = count_of_size::<1usize>(t5);),
            quote!(let b12 = length(t6);),
        ] {
            assert_has(code, &length);
        }
    }
}

#[test]
fn a_nul_has_the_size_of_the_texts_code_units() {
    let Functions { fast, slow } = described("a: Utf16CStr<'_>, b: &CStr, c: u8");
    for code in [&fast, &slow] {
        assert_has(code, &quote!(let b1 = 0_u16;));
        assert_has(code, &quote!(let b3 = Packed(0_u8, a2);));
    }
}

#[test]
fn values_are_copied_in_their_form() {
    let fields = "a: Pointer, #[address] b: Pointer, c: Kind, d: bool, e: usize, f: Port, g: Ipv4Addr, \
                  h: Ipv6Addr, i: Place";
    let provider = declared("", "", fields);
    let layout = layout(&provider, &provider.events[0]);
    let values: Vec<_> = layout
        .leaves
        .iter()
        .enumerate()
        .map(|(at, leaf)| short(&in_block(at, leaf)).replace(' ', ""))
        .collect();
    assert_eq!(
        values,
        [
            "::wdk_etw::Pointer::hidden(a0)",
            "::wdk_etw::Pointer::address(a1)",
            "a2.0",
            "(a3as::core::primitive::u8)",
            "(a4as::core::primitive::u64)",
            "::core::primitive::u16::to_be_bytes(a5.0)",
            "::core::net::Ipv4Addr::octets(&a6)",
            "::core::net::Ipv6Addr::octets(&a7)",
            "a8.x",
        ]
    );
}

#[test]
fn a_block_has_its_parts_in_order_and_its_size() {
    let Functions { fast, slow } = described("a: u8, b: u16, c: Guid, d: [u8; 3], e: u32");
    for code in [&fast, &slow] {
        assert_has(code, &quote!(let b0 = Packed(a0, Packed(a1, a2));));
        assert_has(code, &quote!(let b2 = a4;));
        assert_has(
            code,
            &quote! {
                block_of_size::<_, 19usize>(&b0),
                ::wdk_etw::EventDataDescriptor::fitting(t3),
                block_of_size::<_, 4usize>(&b2)
            },
        );
    }
}

/// Returns the nesting depth of blocks in an expression.
fn depth(code: TokenStream) -> usize {
    let groups = code.into_iter().filter_map(|token| match token {
        proc_macro2::TokenTree::Group(group) => Some(1 + depth(group.stream())),
        _ => None,
    });
    groups.max().unwrap_or(0)
}

// The compiler's `recursion_limit` in the author's crate is 128.
#[test]
fn the_nesting_of_a_long_block_stays_far_below_the_recursion_limit() {
    let fields: Vec<_> = (0..256).map(|at| format!("f{at}: u8")).collect();
    let provider = declared("", "", &fields.join(", "));
    let layout = layout(&provider, &provider.events[0]);
    let [DataDescriptor::Block(parts)] = &*layout.descriptors else {
        panic!("{:?}", layout.descriptors);
    };
    let code = block(parts, &layout);
    let text = short(&code);
    let names = text.split(|letter: char| !letter.is_alphanumeric());
    let in_order: Vec<_> = names.filter(|name| name.starts_with('a')).collect();
    let expected: Vec<_> = (0..256).map(|at| format!("a{at}")).collect();
    assert_eq!(in_order, expected);
    let depth = depth(code);
    assert!(depth < 64, "{depth}");
}
