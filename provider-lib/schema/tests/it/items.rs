//! The limits of a declaration's items, their block comments and conditions.

use wdk_etw_schema::{
    Configuration, Evaluate as _, Evaluated, Provider,
    parse::{predicates, source, source_in},
};

fn parsed(arguments: &str, items: &str) -> Result<Provider, String> {
    let text = format!("#[provider(name = \"A\"{arguments})]\nmod trace {{\n{items}\n}}");
    let mut providers = source(&text).map_err(|error| error.to_string())?;
    assert_eq!(providers.len(), 1);
    Ok(providers.remove(0))
}

fn provider(items: &str) -> Provider {
    parsed("", items).unwrap_or_else(|error| panic!("{items}: {error}"))
}

fn error(items: &str) -> String {
    parsed("", items).expect_err(items)
}

#[test]
fn a_file_that_is_not_rust_is_refused_at_its_place() {
    let error = source("#[provider(name = \"A\")]\nmod one {}\nfn (").unwrap_err();
    let start = error.span().start();
    assert_eq!((start.line, start.column), (3, 3), "{error}");
}

// The lines and stars that rustdoc omits. A star that begins a list's item stays.
#[test]
fn a_block_comment_has_no_frame() {
    for (comment, lines) in [
        ("/** First.\n\nSecond. */", &["First.", "", "Second."][..]),
        ("/** First.\n * Second. */", &["First.", "Second."]),
        ("/**\n * First.\n *\n * Second.\n */", &["First.", "", "Second.", ""]),
        ("/** First.\n***/", &["First."]),
        ("/**\n\t* First.\n\t** of all\n\t*/", &["First.", "* of all", ""]),
        ("/** List:\n * one\n   * inside\n */", &["List:", "* one", "* inside", ""]),
        ("/** List:\n\n * one\n text */", &["List:", "", "* one", "text"]),
        ("/**\n *first*\n */", &["*first*", ""]),
        ("/** * one */", &["* one"]),
        ("#[doc = \"List:\n * one\"]", &["List:", "* one"]),
        ("/**\n\n*/", &["", ""]),
    ] {
        let items = format!("{comment} #[event(level = Info, keyword = none)] fn x();");
        assert_eq!(provider(&items).events[0].docs, lines, "{comment}");
    }
}

#[test]
fn a_template_has_at_most_99_fields() {
    const PLACE: &str = "#[structure] struct Place { x: u8 }";
    let event =
        |fields: &str| format!("#[event(id = 1, level = Info, keyword = none)] fn x({fields});");
    let bytes = |count: usize, rest: &str| {
        let mut fields: Vec<String> = (0..count).map(|n| format!("a{n}: u8")).collect();
        fields.push(rest.to_owned());
        event(&fields.join(", "))
    };
    // A field with a length or count before it counts as two.
    for (rest, fields) in [
        ("", 0),
        ("b: u8", 1),
        ("b: &[u32]", 2),
        ("b: &[u8]", 2),
        ("b: SocketAddr", 2),
        ("b: &[Place]", 2),
        ("#[counted] b: &[u8]", 1),
        ("b: &str", 1),
        ("#[length(u8)] b: &str", 2),
        ("#[count(field = a0)] b: &[u32]", 1),
        ("#[length(field = a0)] b: &str", 1),
        ("b: [u32; 2]", 1),
    ] {
        provider(&format!("{PLACE}{}", bytes(99 - fields, rest)));
        let text = error(&format!("{PLACE}{}", bytes(100 - fields, rest)));
        assert!(text.contains("has 100 fields"), "{rest}: {text}");
    }
}

#[test]
fn traits_have_at_most_255_bytes() {
    const GROUP: &str = "group = \"4f50731a-89cf-4782-b3e0-dce8c90476ba\"";
    // The blob's size, the name and its NUL; a trait's size and type before its data.
    let head = 2 + 2 + 3;
    let with = |rest: &str, data: usize| {
        parsed(&format!(", trait_(255, \"{}\"), {rest}", "x".repeat(data)), "")
    };
    with("", 255 - head).unwrap();
    assert!(with("", 256 - head).unwrap_err().contains("are 256 bytes long"));
    with(GROUP, 255 - head - 19).unwrap();
    assert!(with(GROUP, 256 - head - 19).unwrap_err().contains("are 256 bytes long"));
}

#[test]
fn the_compilers_markers_are_taken_as_its_values() {
    let predicates: Vec<proc_macro2::TokenStream> =
        ["feature = \"a\"", "test", "all(test , windows)"].map(|text| text.parse().unwrap()).into();
    let markers = Evaluated::markers(&predicates).to_string();
    assert_eq!(markers.matches("cfg_attr").count(), 3);
    for predicate in &predicates {
        assert!(markers.contains(&predicate.to_string()), "{markers}");
    }
    // The compiler keeps the markers of the predicates that are true.
    let module =
        "#[doc = \"__wdk_etw_cfg_0\"] #[doc = \"About\"] #[doc = \"__wdk_etw_cfg_2\"] mod a {}";
    let mut attributes = syn::parse_str::<syn::ItemMod>(module).unwrap().attrs;
    let evaluated = Evaluated::take(&predicates, &mut attributes);
    assert_eq!(attributes.len(), 1);
    let value = |text: &str| evaluated.evaluate(&text.parse().unwrap()).ok();
    assert_eq!(value("feature=\"a\""), Some(true));
    assert_eq!(value("test"), Some(false));
    assert_eq!(value("all(test, windows)"), Some(true));
    assert_eq!(value("windows"), None);
}

#[test]
fn the_predicates_of_a_module_are_found_once() {
    let module = "mod a {
        #[cfg(test)] #[keyword] const A: Keyword = 1;
        #[tasks] enum T { #[cfg(feature = \"a\")] X = 1, #[cfg( test )] Y = 2 }
        #[structure] struct S { #[cfg(windows)] x: u8 }
        #[cfg_attr(unix, event(level = Info, keyword = none))] fn x(#[cfg(miri)] a: u8);
        #[cfg(other)] fn own() {}
        #[cfg(other)] const OWN: u8 = 1;
        #[cfg(other)] enum Own {}
        #[cfg(other)] struct OwnFields { #[cfg(other)] x: u8 }
    }";
    // The compiler evaluates the attributes of the author's own items.
    let found = predicates(module.parse().unwrap()).unwrap();
    let found: Vec<String> = found.iter().map(|one| one.to_string().replace(' ', "")).collect();
    assert_eq!(found, ["test", "feature=\"a\"", "windows", "unix", "miri"]);
}

#[test]
fn an_option_of_the_profile_is_not_known() {
    let evaluate =
        |text: &str| Configuration::new().evaluate(&text.parse().unwrap()).unwrap_err().to_string();
    assert!(evaluate("debug_assertions").contains("the profile's value"));
    assert!(evaluate("panic = \"abort\"").contains("the profile's value"));
    assert!(evaluate("windows").contains("`Image::cfg`"));
}

// An unknown option is an error only where a provider depends on it.
#[test]
fn modules_that_are_no_providers_may_have_unknown_options() {
    let provider = "#[provider(name = \"A\")] mod trace {}";
    let read = |other: &str| source_in(&format!("{provider}\n{other}"), &Configuration::new());
    for other in [
        "#[cfg_attr(lab, allow(dead_code))] #[cfg(lab)] mod other {}",
        "#[note(provider)] #[cfg(lab)] mod other {}",
    ] {
        let providers = read(other).unwrap_or_else(|error| panic!("{other}: {error}"));
        assert_eq!(providers.len(), 1, "{other}");
    }
    let error = read("#[cfg_attr(lab, provider(name = \"B\"))] mod other {}").unwrap_err();
    assert!(error.to_string().contains("lab"), "{error}");
}

#[test]
fn an_item_that_the_compiler_may_remove_takes_no_name() {
    for other in [
        "const x: u8 = 0;", "fn x() {}", "static x: u8 = 0;", "struct x(u8);", "struct x;",
        "mod x {}", "enum x { A }", "struct x { a: u8 }", "trait x {}", "type x = u8;",
        "union x { a: u8 }",
    ] {
        let event = "#[event(level = Info, keyword = none)] fn";
        provider(&format!("{event} x(); #[cfg(any())] {other}"));
        provider(&format!("{event} y(); #[allow(dead_code)] {other}"));
    }
    let provider = provider("#[inline] fn a() {} use a::b;");
    assert_eq!(provider.others.len(), 2);
}

#[test]
fn traits_that_are_too_large_are_reported_at_the_cause() {
    let at = |name: usize, trait_: usize| {
        let (name, data) = ("n".repeat(name), "d".repeat(trait_));
        let text = format!("#[provider(name = \"{name}\",\ntrait_(128, \"{data}\"))]\nmod t {{}}");
        source(&text).map(|_| ()).map_err(|error| error.span().start().line)
    };
    assert_eq!(at(10, 10), Ok(()));
    assert_eq!(at(10, 70_000), Err(2));
    assert_eq!(at(70_000, 10), Err(1));
}
