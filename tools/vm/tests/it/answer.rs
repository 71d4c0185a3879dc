//! Checks the answer file for each image that `cargo etw vm` supports against the documented rules
//! of Windows Setup.
//!
//! Sources: Microsoft Learn, "Unattended Windows Setup Reference" (components, their settings and
//! passes), "Hard Drives and Partitions" and "UEFI/GPT-based hard drive partitions" (the
//! partitions), "Add a Custom Command to an Answer File" (the order and length of commands). The
//! files have not been used by Windows Setup yet.

use std::{collections::BTreeSet, path::PathBuf};

use etw_vm::{
    answer::{Answer, ImageKind, Windows, product_key, windows_of},
    install::answer,
    qemu::{Accelerator, Display, Firmware, Machine, Settings},
};
use roxmltree::{Document, Node};

const NAMESPACE: &str = "urn:schemas-microsoft-com:unattend";
const WCM: &str = "http://schemas.microsoft.com/WMIConfig/2002/State";

/// The components that the file can use: pass, name, and child elements. The reference has a page
/// for each component, which lists its passes and child elements.
const COMPONENTS: [(&str, &str, &str); 7] = [
    (
        "windowsPE",
        "Microsoft-Windows-International-Core-WinPE",
        "InputLocale LayeredDriver SetupUILanguage SystemLocale UILanguage UILanguageFallback UserLocale",
    ),
    (
        "windowsPE",
        "Microsoft-Windows-Setup",
        "ComplianceCheck Diagnostics DiskConfiguration Display DynamicUpdate EnableFirewall EnableNetwork \
         ImageInstall LogPath PageFile Restart RunAsynchronous RunSynchronous UpgradeData \
         UseConfigurationSet UserData WindowsDeploymentServices",
    ),
    ("offlineServicing", "Microsoft-Windows-LUA-Settings", "EnableLUA"),
    (
        "specialize",
        "Microsoft-Windows-Deployment",
        "ExtendOSPartition RunAsynchronous RunSynchronous",
    ),
    (
        "specialize",
        "Microsoft-Windows-Shell-Setup",
        "ComputerName ProductKey RegisteredOwner TimeZone",
    ),
    (
        "oobeSystem",
        "Microsoft-Windows-International-Core",
        "InputLocale SystemLocale UILanguage UILanguageFallback UserLocale",
    ),
    (
        "oobeSystem",
        "Microsoft-Windows-Shell-Setup",
        "AutoLogon FirstLogonCommands OOBE TimeZone UserAccounts",
    ),
];

/// The elements that are list items, and their allowed child elements. Each item has
/// `wcm:action="add"`.
const ITEMS: [(&str, &str); 8] = [
    ("CreatePartition", "Extend Order Size Type"),
    ("Disk", "CreatePartitions DiskID ModifyPartitions WillWipeDisk"),
    ("LocalAccount", "Description DisplayName Group Name Password"),
    ("MetaData", "Key Value"),
    ("ModifyPartition", "Active Extend Format Label Letter Order PartitionID TypeID"),
    ("RunAsynchronousCommand", "Credentials Description Order Path"),
    ("RunSynchronousCommand", "Credentials Description Order Path WillReboot"),
    ("SynchronousCommand", "CommandLine Description Order RequiresUserInput"),
];

/// Returns whether a list contains a word.
fn has(list: &str, word: &str) -> bool {
    list.split_whitespace().any(|one| one == word)
}

/// Returns an answer for every image that the guide lists with every firmware, and the edition's
/// name.
fn images() -> Vec<(Answer, &'static str)> {
    let named = [
        (
            "19045.2006.220908-0225.22h2_release_svc_refresh_CLIENTENTERPRISEEVAL_OEMRET_x64FRE_en-us.iso",
            Windows::Windows10,
            1,
        ),
        ("Win10_22H2_English_x64v1.iso", Windows::Windows10, 6),
        (
            "26100.1742.240906-0331.ge_release_svc_refresh_CLIENT_LTSC_EVAL_x64FRE_en-us.iso",
            Windows::Windows11,
            1,
        ),
        ("Win11_24H2_English_x64.iso", Windows::Windows11, 6),
        (
            "20348.169.210806-2348.fe_release_svc_refresh_SERVER_EVAL_x64FRE_en-us.iso",
            Windows::Server2022,
            2,
        ),
        (
            "26100.1742.240906-0331.ge_release_svc_refresh_SERVER_EVAL_x64FRE_en-us.iso",
            Windows::Server2025,
            2,
        ),
    ];
    let mut all = Vec::new();
    for (name, windows, index) in named {
        for is_uefi in [true, false] {
            let made = answer(name.as_ref(), None, Some(index), "en-US", is_uefi, None).unwrap();
            assert_eq!(made.windows, windows, "{name}");
            all.push((made, name));
        }
    }
    all
}

fn children<'a>(node: Node<'a, 'a>) -> impl Iterator<Item = Node<'a, 'a>> {
    node.children().filter(Node::is_element)
}

fn named<'a>(node: Node<'a, 'a>, name: &str) -> Vec<Node<'a, 'a>> {
    let found = node.descendants().filter(|one| one.tag_name().name() == name);
    found.collect()
}

fn text(node: Node<'_, '_>, name: &str) -> String {
    let child = children(node).find(|one| one.tag_name().name() == name);
    child.and_then(|child| child.text()).unwrap_or_default().to_owned()
}

#[test]
fn components_are_in_passes_that_have_them_and_have_their_settings() {
    for (answer, image) in images() {
        let xml = answer.to_xml().unwrap();
        let document = Document::parse(&xml).unwrap();
        let root = document.root_element();
        assert_eq!(root.tag_name().name(), "unattend");
        let mut passes = BTreeSet::new();
        for settings in children(root) {
            assert_eq!(settings.tag_name().name(), "settings");
            let pass = settings.attribute("pass").unwrap();
            assert!(passes.insert(pass), "{image}: the pass {pass} appears twice");
            let mut names = BTreeSet::new();
            for component in children(settings) {
                let name = component.attribute("name").unwrap();
                assert!(names.insert(name), "{image}: {name} appears twice in {pass}");
                // Setup ignores a component whose identity is not exactly this.
                for (attribute, value) in [
                    ("processorArchitecture", "amd64"),
                    ("publicKeyToken", "31bf3856ad364e35"),
                    ("language", "neutral"),
                    ("versionScope", "nonSxS"),
                ] {
                    assert_eq!(component.attribute(attribute), Some(value), "{image}: {name}");
                }
                let known = COMPONENTS.iter().find(|(of, known, _)| *of == pass && *known == name);
                let (_, _, known) = known.unwrap_or_else(|| panic!("{image}: {name} in {pass}"));
                let mut seen = BTreeSet::new();
                for setting in children(component) {
                    let setting = setting.tag_name().name();
                    assert!(has(known, setting), "{image}: {setting} in {name}");
                    assert!(seen.insert(setting), "{image}: {setting} appears twice in {name}");
                }
            }
        }
        for node in root.descendants().filter(Node::is_element) {
            assert_eq!(node.tag_name().namespace(), Some(NAMESPACE));
            assert!(!node.text().unwrap_or_default().contains('@'), "{xml}");
        }
    }
}

#[test]
fn items_of_lists_are_added_in_order() {
    for (answer, image) in images() {
        let xml = answer.to_xml().unwrap();
        let document = Document::parse(&xml).unwrap();
        for node in document.descendants().filter(Node::is_element) {
            let name = node.tag_name().name();
            let action = node.attribute((WCM, "action"));
            let item = ITEMS.iter().find(|(item, _)| *item == name);
            assert_eq!(action.is_some(), item.is_some(), "{image}: {name}");
            assert!(action.is_none_or(|action| action == "add"));
            if let Some((_, known)) = item {
                for child in children(node) {
                    let child = child.tag_name().name();
                    assert!(has(known, child), "{image}: {child} in {name}");
                }
            }
            // Order numbers start at 1, without gaps or duplicates.
            let orders: Vec<usize> =
                children(node).filter_map(|child| text(child, "Order").parse().ok()).collect();
            let wanted: Vec<usize> = (1..=orders.len()).collect();
            assert_eq!(orders, wanted, "{image}: {name}");
        }
        // The maximum length of a command that Setup runs.
        for (element, most) in [("Path", 259), ("CommandLine", 1024)] {
            for command in named(document.root(), element) {
                let length = command.text().unwrap().chars().count();
                assert!(length <= most, "{image}: {:?}", command.text());
            }
        }
    }
}

#[test]
fn the_partitions_are_those_of_the_firmware() {
    for (answer, image) in images() {
        let xml = answer.to_xml().unwrap();
        let document = Document::parse(&xml).unwrap();
        let [disk] = named(document.root(), "Disk")[..] else { panic!() };
        assert_eq!(
            (text(disk, "DiskID").as_str(), text(disk, "WillWipeDisk").as_str()),
            ("0", "true")
        );
        let made: Vec<(String, String)> = named(disk, "CreatePartition")
            .iter()
            .map(|one| (text(*one, "Type"), text(*one, "Size")))
            .collect();
        let made: Vec<(&str, &str)> =
            made.iter().map(|(kind, size)| (kind.as_str(), size.as_str())).collect();
        let wanted: &[(&str, &str)] = if answer.is_uefi {
            &[("EFI", "260"), ("MSR", "16"), ("Primary", "")]
        } else {
            &[("Primary", "500"), ("Primary", "")]
        };
        assert_eq!(made, wanted, "{image}");
        // Only the last partition takes the remaining space, and Windows is installed there, as C:.
        let extended: Vec<bool> = named(disk, "CreatePartition")
            .iter()
            .map(|one| text(*one, "Extend") == "true")
            .collect();
        assert_eq!(extended.iter().position(|is_extended| *is_extended), Some(made.len() - 1));
        let [to] = named(document.root(), "InstallTo")[..] else { panic!() };
        assert_eq!(text(to, "PartitionID"), made.len().to_string());
        let of_windows = named(disk, "ModifyPartition")
            .into_iter()
            .find(|one| text(*one, "PartitionID") == made.len().to_string())
            .unwrap();
        assert_eq!(
            (text(of_windows, "Format").as_str(), text(of_windows, "Letter").as_str()),
            ("NTFS", "C")
        );
        let is_active = named(disk, "Active").iter().any(|one| one.text() == Some("true"));
        assert_eq!(is_active, !answer.is_uefi, "BIOS boots from the active partition");
    }
}

#[test]
fn nothing_is_asked() {
    for (answer, image) in images() {
        let xml = answer.to_xml().unwrap();
        let document = Document::parse(&xml).unwrap();
        let one = |name: &str| {
            let found = named(document.root(), name);
            assert_eq!(found.len(), 1, "{image}: {name}");
            found[0].text().unwrap_or_default().to_owned()
        };
        assert_eq!(one("AcceptEula"), "true");
        assert_eq!(one("HideEULAPage"), "true");
        assert_eq!(one("HideOnlineAccountScreens"), "true");
        assert_eq!(one("ProtectYourPC"), "3");
        assert_eq!(one("EnableLUA"), "false");
        let [source] = named(document.root(), "MetaData")[..] else { panic!() };
        assert_eq!(text(source, "Key"), "/IMAGE/INDEX");
        assert_eq!(text(source, "Value"), answer.index.to_string());
        // Evaluation images need no product key, and Setup rejects an empty one. Other images
        // require one.
        let [key] = named(document.root(), "ProductKey")[..] else { panic!() };
        let elements: Vec<&str> = children(key).map(|one| one.tag_name().name()).collect();
        if image.contains("EVAL") {
            assert_eq!(elements, ["WillShowUI"], "{image}");
        } else {
            assert_eq!(elements, ["Key", "WillShowUI"], "{image}");
            // The published keys of Windows 10 Pro and Windows 11 Pro.
            assert_eq!(text(key, "Key"), "W269N-WFGWX-YVC9B-4J6C9-T83GX", "{image}");
        }
        assert_eq!(text(key, "WillShowUI"), "OnError");
        // Windows 11 checks the hardware, and requires a network.
        let is_11 = answer.windows == Windows::Windows11;
        for word in [
            "BypassTPMCheck", "BypassSecureBootCheck", "BypassRAMCheck", "BypassCPUCheck",
            "BypassNRO",
        ] {
            assert_eq!(xml.contains(word), is_11, "{image}: {word}");
        }
        // The user who logs on exists, is an administrator, and has the password.
        let [logon] = named(document.root(), "AutoLogon")[..] else { panic!() };
        let [account] = named(document.root(), "LocalAccount")[..] else { panic!() };
        assert_eq!(text(logon, "Username"), text(account, "Name"));
        assert_eq!(text(account, "Group"), "Administrators");
        let passwords: BTreeSet<String> =
            named(document.root(), "Password").iter().map(|one| text(*one, "Value")).collect();
        assert_eq!(passwords.len(), 1);
    }
}

#[test]
fn an_image_that_asks_for_a_product_key_gets_one() {
    let made = |image: &str, index, key| {
        let made = answer(image.as_ref(), None, index, "en-US", true, key);
        made.map(|made| (made.index, made.product_key)).map_err(|error| error.to_string())
    };
    let key = |text: &str| Some(text.to_owned());
    let consumer = "Win11_24H2_English_x64.iso";
    // Pro is the default, because its key is published.
    let pro = key("W269N-WFGWX-YVC9B-4J6C9-T83GX");
    assert_eq!(made(consumer, None, None), Ok((6, pro)));
    let education = key("NW6C2-QMPVW-D7KKK-3GKT6-VCFB2");
    assert_eq!(made(consumer, Some(4), None), Ok((4, education)));
    let home = made(consumer, Some(1), None).unwrap_err();
    assert!(home.contains("publishes none for edition 1"), "{home}");
    assert_eq!(made(consumer, Some(1), Some("none")), Ok((1, None)));
    let own = key("ABCDE-12345-FGHIJ-67890-KLMNO");
    let named = Some("abcde-12345-fghij-67890-klmno");
    assert_eq!(made(consumer, Some(1), named), Ok((1, own.clone())));
    for wrong in ["", "ABCDE", "ABCDE-12345-FGHIJ-67890-KLMN<"] {
        let error = made(consumer, None, Some(wrong)).unwrap_err();
        assert!(error.contains("is not a product key"), "{error}");
    }
    // Server editions, by system.
    let standard = key("TVRH6-WHNXV-R9WG3-9XRFY-MY832");
    assert_eq!(made("server_2025.iso", None, None), Ok((2, standard)));
    let datacenter = key("WX4NM-KYWYW-QJJR4-XV3QB-6VM33");
    assert_eq!(made("server_2022.iso", Some(4), None), Ok((4, datacenter)));
    // Evaluation and volume-license images get a key only if one is requested.
    let evaluation = "26100.1742.240906-0331.ge_release_svc_refresh_SERVER_EVAL_x64FRE_en-us.iso";
    assert_eq!(made(evaluation, None, None), Ok((2, None)));
    assert_eq!(made(evaluation, None, named), Ok((2, own)));
    assert_eq!(product_key("SW_DVD9_x.iso".as_ref(), Windows::Windows10, 3, None).unwrap(), None);
    let business = "en-us_windows_11_business_editions_version_24h2_x64.iso";
    assert_eq!(made(business, None, None), Ok((1, None)));
}

#[test]
fn a_change_of_the_answer_is_another_version() {
    let versions: BTreeSet<String> =
        images().iter().map(|(answer, _)| answer.version().unwrap()).collect();
    // Windows Server 2022 and 2025 have the same answer files for the same firmware.
    assert_eq!(versions.len(), 10);
    let (mut answer, _) = images().remove(0);
    let before = answer.version().unwrap();
    answer.language = "de-DE".to_owned();
    assert_ne!(answer.version().unwrap(), before);
    assert!(answer.to_xml().unwrap().contains("<UILanguage>de-DE</UILanguage>"));
    answer.language = "</UILanguage>".to_owned();
    let error = answer.to_xml().unwrap_err().to_string();
    assert!(error.contains("is not a language name"), "{error}");
}

#[test]
fn an_image_of_an_unknown_name_is_asked_about() {
    let error = windows_of("SERVER_EVAL_x64FRE_en-us.iso".as_ref(), None).unwrap_err().to_string();
    assert_eq!(
        error,
        "cannot tell which Windows SERVER_EVAL_x64FRE_en-us.iso installs; name it with `--windows`: 10 \
         (Windows 10), 11 (Windows 11), 2022 (Windows Server 2022), 2025 (Windows Server 2025)"
    );
    let named = windows_of("x.iso".as_ref(), Some(Windows::Server2025)).unwrap();
    assert_eq!((named, named.default_index(ImageKind::Consumer)), (Windows::Server2025, 2));
}

#[test]
fn batch_files_have_the_line_ends_that_cmd_needs() {
    for (answer, _) in images() {
        for (name, contents) in answer.files().unwrap() {
            let text = String::from_utf8(contents).unwrap();
            assert_eq!(text.matches('\n').count(), text.matches("\r\n").count(), "{name}");
        }
    }
}

/// Windows interprets the machine's clock as local time. With a clock in another time zone, a new
/// certificate would not be valid yet.
#[test]
fn the_clock_and_the_zone_are_those_of_one_time() {
    for windows in Windows::ALL {
        let answer = Answer {
            windows,
            index: 1,
            language: "en-US".to_owned(),
            is_uefi: true,
            product_key: None,
        };
        let xml = answer.to_xml().unwrap();
        assert!(xml.contains("<TimeZone>UTC</TimeZone>"), "{xml}");
    }
    let machine = Machine {
        settings: Settings {
            program: PathBuf::new(),
            accelerator: Accelerator::Tcg,
            processors: 1,
            memory: 64,
            extra: Vec::new(),
        },
        firmware: Firmware::Bios,
        drives: Vec::new(),
        display: Display::None,
    };
    let arguments = machine.arguments();
    let at = arguments.iter().position(|one| one == "-rtc").unwrap();
    let clock = arguments[at + 1].to_str().unwrap();
    assert!(clock.split(',').any(|word| word == "base=utc"), "{clock}");
}
