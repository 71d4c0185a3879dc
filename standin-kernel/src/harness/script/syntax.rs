//! The syntax of script steps, as shown in documents and error messages.

/// A step of scripts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StepSyntax {
    /// The first word.
    pub name: &'static str,
    /// The syntax of the whole step, with optional parts in brackets.
    pub form: &'static str,
    /// The effect of the step.
    pub effect: &'static str,
}

macro_rules! steps {
    ($($name:literal $form:literal $effect:literal;)*) => {
        /// The steps of scripts.
        pub const STEPS: &[StepSyntax] = &[$(StepSyntax {
            name: $name,
            form: $form,
            effect: $effect,
        },)*];
    };
}

steps! {
    "add-device" "add-device [wakes-from STATE]"
        "adds a device and starts it; STATE is the deepest state from which it wakes: `D0`, `D1`, \
         `D2` or `D3`";
    "open" "open [synchronous] [PROCESS THREAD] [NAME]"
        "opens the device or, if NAME is given, that file on it (such as `\\channel`); PROCESS and \
         THREAD are the caller's ids; `synchronous` opens it without `FILE_FLAG_OVERLAPPED`";
    "write" "write BYTES"
        "writes to the device, and waits for completion";
    "read" "read LENGTH"
        "reads from the device, and waits for completion";
    "ioctl" "ioctl CODE [BYTES] [LENGTH]"
        "sends a device control with these input bytes and this output length, and waits for \
         completion";
    "start" "start REQUEST as NAME"
        "sends a request, which is a `read`, `write` or `ioctl` step, and does not wait for \
         completion";
    "wait" "wait NAME"
        "fails unless the driver has completed a started request, which then counts as the last request";
    "cancel" "cancel NAME"
        "cancels a started request";
    "expect" "expect STATUS [BYTES]"
        "fails unless the last request ended with this status and output";
    "expect-event" "expect-event NAME [FIELD=VALUE ...]"
        "fails unless an event with this name or id and with these values was written since the \
         event that the previous `expect-event` found";
    "close" "close"
        "closes the device";
    "advance" "advance MILLISECONDS"
        "advances the clock; timers that come due fire";
    "power-cycle" "power-cycle"
        "takes the device out of D0 and back";
    "capture-state" "capture-state"
        "requests a state capture from all enabled providers and groups";
    "filter" "filter PROVIDER [SETTING ...]"
        "enables a provider, by its name or GUID, again with its level and keywords, and with these \
         filters and settings only";
    "fault" "fault ROUTINE [STATUS [TIMES]]"
        "makes the next calls of a routine fail with this status, once if no number is given";
    "parameter" "parameter NAME VALUE"
        "sets a value of the service's parameters key in the registry: a number (`REG_DWORD`), a \
         string (`REG_SZ`) or bytes (`REG_BINARY`)";
    "start-process" "start-process PROCESS IMAGE [COMMAND-LINE]"
        "starts a process with this id and image path, whose first thread has the next multiple of 4 as its \
         id; `expect` compares the status with which a driver's notification routine refuses it";
    "end-process" "end-process PROCESS"
        "ends a process that the script started";
    "start-thread" "start-thread PROCESS THREAD"
        "starts another thread of a process that the script started";
    "end-thread" "end-thread PROCESS THREAD"
        "ends such a thread";
    "remove" "remove"
        "removes the device";
    "surprise-remove" "surprise-remove"
        "removes the device by surprise; an open file stays open";
    "repeat" "repeat N"
        "repeats the steps up to its `end` N times";
    "end" "end"
        "ends the steps of a `repeat`";
}

macro_rules! settings {
    ($($name:literal $form:literal $effect:literal;)*) => {
        /// The settings of the step `filter`.
        pub const FILTER_SETTINGS: &[StepSyntax] = &[$(StepSyntax {
            name: $name,
            form: $form,
            effect: $effect,
        },)*];
    };
}

settings! {
    "level" "level=N" "the highest level of the events to record; 0 for all levels";
    "any" "any=MASK" "events need at least one of these keywords; 0 for all events";
    "all" "all=MASK" "events need all of these keywords";
    "keep-ids" "keep-ids=N,..." "records only manifest-based events with these ids";
    "drop-ids" "drop-ids=N,..." "records no manifest-based events with these ids";
    "keep-names" "keep-names=NAME,..." "records only TraceLogging events with these names";
    "drop-names" "drop-names=NAME,..." "records no TraceLogging events with these names";
    "names-level" "names-level=N" "the highest level of the events that the name filter examines";
    "names-any" "names-any=MASK"
        "the name filter examines only events with at least one of these keywords";
    "names-all" "names-all=MASK"
        "the name filter examines only events with all of these keywords";
    "data" "data=ID:VERSION:BYTES" "filter data for the provider";
    "processes" "processes=N,..." "enables the provider in these processes only, and so in no driver";
    "ignore-keyword-0" "ignore-keyword-0" "records no events without keywords";
    "exclude-private" "exclude-private" "records no events that are marked as InPrivate";
}
