//! Tests writes as ETW receives them.

use mock_etw::{Call, ENABLE, NO_MEMORY, Turn, enabled, turn};
use wdk_etw::{
    __macro::StaticProvider, ActivityId, Channel, EventDataDescriptor, EventDescriptor, Guid,
    Keyword, Level, MAX_DATA_DESCRIPTORS, NtStatus, Opcode, WriteError, WriteFlags, WriteOptions,
    guid, guid_of_name, traits,
};

static PROVIDER: StaticProvider =
    StaticProvider::new(guid_of_name!("Test"), &traits!("Test", 200 => *b"x"));

const EVENT: EventDescriptor = EventDescriptor::new(7, 2, Level::ERROR, Keyword::bit::<3>())
    .with_task(9)
    .with_opcode(Opcode::STOP)
    .with_channel(Channel(16));

fn registered() -> Turn {
    enabled(&PROVIDER, 5)
}

fn write(options: &WriteOptions) -> Result<(), WriteError> {
    PROVIDER.write(&EVENT, options, &[])
}

// R-D1, R-D2, R-D5, R-O1, R-O5
#[test]
fn an_event_is_its_descriptor_and_its_data_descriptors() {
    let etw = registered();
    let data = [EventDataDescriptor::of(&5_u32), EventDataDescriptor::of(&Guid::NULL)];
    assert_eq!(PROVIDER.write(&EVENT, &WriteOptions::new(), &data), Ok(()));
    assert_eq!(write(&WriteOptions::new()), Ok(()));
    let writes = etw.writes();
    assert_eq!(writes[0].event, EVENT);
    assert_eq!(writes[0].data, [(0, vec![5, 0, 0, 0]), (0, vec![0; 16])]);
    assert_eq!(writes[1].data, []);
    assert_eq!((writes[0].filter, writes[0].flags), (0, 0));
}

// R-O6, R-O7
#[test]
fn activities_and_flags_are_passed_on() {
    let etw = registered();
    let activity = ActivityId::from_guid(guid!("00000001-0000-0000-0000-000000000001"));
    let related = ActivityId::create().unwrap();
    let options = WriteOptions::new()
        .activity(activity)
        .related(related)
        .flags(WriteFlags::NO_FAULTING)
        .except_sessions(0b100);
    assert_eq!(write(&options), Ok(()));
    assert_eq!(write(&WriteOptions::new()), Ok(()));
    let writes = etw.writes();
    assert_eq!(writes[0].activity, Some(activity.guid()));
    assert_eq!(writes[0].related, Some(related.guid()));
    assert_eq!((writes[0].flags, writes[0].filter), (1, 4));
    assert_eq!((writes[1].activity, writes[1].related), (None, None));
}

// R-O6
#[test]
fn a_scope_restores_the_threads_activity_on_every_path() {
    fn work(fail: bool) -> Result<(), ()> {
        let scope = ActivityId::create().unwrap().enter().unwrap();
        assert_eq!(scope.previous(), ActivityId::before());
        if fail { Err(()) } else { Ok(()) }
    }
    trait Before {
        fn before() -> Self;
    }
    impl Before for ActivityId {
        fn before() -> Self {
            Self::from_guid(guid!("0000000b-0000-0000-0000-000000000000"))
        }
    }
    let etw = turn();
    etw.set(|etw| etw.thread_activity = ActivityId::before().guid());
    for fail in [false, true] {
        let _result = work(fail);
        assert_eq!(ActivityId::current(), Ok(ActivityId::before()));
    }
}

// R-O6
#[test]
fn a_threads_activity_can_be_set_and_swapped() {
    let etw = turn();
    let [first, second] = [1, 2].map(|id| ActivityId::from_guid(Guid::new(id, 0, 0, [0; 8])));
    first.set_for_thread().unwrap();
    assert_eq!(ActivityId::current(), Ok(first));
    assert_eq!(second.swap_for_thread(), Ok(first));
    assert_eq!(ActivityId::current(), Ok(second));
    assert_eq!(etw.calls(), [2, 1, 4, 1].map(Call::Activity), "SET_ID, GET_ID, GET_SET_ID, GET_ID");
}

#[test]
fn failures_are_returned_and_counted_by_status() {
    let etw = registered();
    let before = PROVIDER.failures().total();
    etw.set(|etw| etw.write_status = NO_MEMORY);
    let error = WriteError(NtStatus::NO_MEMORY);
    assert_eq!(write(&WriteOptions::new()), Err(error));
    assert_eq!(
        error.to_string(),
        "cannot write the event: EtwWriteEx returned STATUS_NO_MEMORY (0xC0000017)"
    );
    assert!(write(&WriteOptions::new()).is_err());
    etw.set(|etw| etw.write_status = 0x8765_4321_u32.cast_signed());
    assert!(write(&WriteOptions::new()).is_err());
    assert_eq!(PROVIDER.failures().with_status(NtStatus::NO_MEMORY), 2);
    assert_eq!(PROVIDER.failures().total() - before, 3);
}

#[test]
fn as_many_data_descriptors_as_etw_accepts_are_passed_on() {
    let etw = registered();
    let data = [EventDataDescriptor::of(&0_u8); MAX_DATA_DESCRIPTORS];
    assert_eq!(PROVIDER.write(&EVENT, &WriteOptions::new(), &data), Ok(()));
    assert_eq!(etw.writes()[0].data.len(), 128);
}

#[test]
fn etw_itself_can_be_asked() {
    let _etw = registered();
    assert!(PROVIDER.provider_enabled(Level::INFO, Keyword::bit::<0>()));
    assert!(!PROVIDER.provider_enabled(Level::VERBOSE, Keyword::bit::<0>()));
    assert!(PROVIDER.event_enabled(&EVENT));
    let verbose = EventDescriptor::new(7, 2, Level::VERBOSE, Keyword::bit::<3>());
    assert!(!PROVIDER.event_enabled(&verbose));
}

// R-K3
#[test]
fn an_event_is_enabled_by_one_of_the_match_any_keywords() {
    let etw = registered();
    etw.notify(ENABLE, 5, 0b101, 0);
    let is_enabled = |bits| PROVIDER.is_enabled(Level::ERROR, Keyword::from_bits(bits));
    assert_eq!([0b1, 0b10, 0b110].map(is_enabled), [true, false, true]);
}
