//! Tests parts of the generated code. The module `expanded` compares the functions that write events, and
//! the tests of `wdk-etw` compile and run them.

use wdk_etw_schema::{Configuration, Event, Provider, parse, tracelogging::Types};

use super::*;

/// Returns a provider with an event that has these fields.
fn declared(fields: &str) -> Provider {
    let module = format!(
        "mod trace {{ #[map] #[repr(u32)] enum Kind {{ A = 1 }} #[structure] struct Place {{ x: u8 }} \
         #[event(level = Info, keyword = none)] fn x({fields}); }}"
    );
    parse::provider(
        "name = \"Test\"".parse().unwrap(),
        module.parse().unwrap(),
        &Configuration::new(),
    )
    .unwrap()
}

fn layout(provider: &Provider, event: &Event) -> Layout {
    let types = Types::of(provider);
    Layout::of(&event.fields, event.encoding, types, 0, Span::call_site()).unwrap()
}

/// Returns the arguments of the function that writes an event with these fields.
fn arguments(fields: &str) -> String {
    let provider = declared(fields);
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

// Writes must not contain checks that never fail.
#[test]
fn only_a_number_of_fewer_bits_is_checked() {
    for narrow in [Scalar::U8, Scalar::I16, Scalar::U32, Scalar::I32] {
        assert!(can_exceed(narrow), "{narrow:?}");
    }
    for whole in [Scalar::U64, Scalar::I64, Scalar::Usize, Scalar::Isize] {
        assert!(!can_exceed(whole), "{whole:?}");
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
    let provider = declared(&fields.join(", "));
    let layout = layout(&provider, &provider.events[0]);
    let [DataDescriptor::Block(parts)] = &*layout.descriptors else {
        panic!("{:?}", layout.descriptors);
    };
    let code = block(parts, &layout);
    let text = code.to_string().replace("__wdk_etw_", "");
    let names = text.split(|letter: char| !letter.is_alphanumeric());
    let in_order: Vec<_> = names.filter(|name| name.starts_with('a')).collect();
    let expected: Vec<_> = (0..256).map(|at| format!("a{at}")).collect();
    assert_eq!(in_order, expected);
    let depth = depth(code);
    assert!(depth < 64, "{depth}");
}
