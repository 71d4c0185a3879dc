// The code that the macro generates for the event of this declaration, without the provider's own items
// and attributes for lints and inlining; `::core::primitive::u64` is `u64`, and `::wdk_etw::__macro::Write`
// is `Write`. `cargo xtask renew expanded` writes this file.
//
//     #[wdk_etw::provider(name = "Contoso.Driver")]
//     mod trace {
//         #[event(level = Info, keyword = none)]
//         pub fn read(offset: u64, bytes: u32, file: &str);
//     }

mod trace {
    pub use self::read::__wdk_etw_call as read;
    /// The descriptor, check and write of the event `Read`.
    pub mod read {
        ///
        /// A call of this function always evaluates the arguments. [`::wdk_etw::emit`]
        /// evaluates them only if a session enables the event.
        ///
        /// # IRQL
        ///
        /// Any. The arguments must be in system space and, above `APC_LEVEL`, in non-pageable
        /// memory; see [`EventDataDescriptor`](::wdk_etw::EventDataDescriptor).
        #[must_use = "this call evaluates the event's arguments even if no session enables it; write `emit!(read(…))`"]
        pub fn __wdk_etw_call(offset: u64, bytes: u32, file: &str) {
            if self::is_enabled() {
                let __wdk_etw_result = self::__wdk_etw_write(Plain, offset, bytes, file);
            }
        }
        /// The event with the options of a write. Its method has one argument for each field, so
        /// that errors about `emit!` count only the fields.
        pub struct __WdkEtwWith<O>(O);
        pub fn __wdk_etw_with<O: Options>(options: O) -> __WdkEtwWith<O> {
            __WdkEtwWith(options)
        }
        impl<O: Options> __WdkEtwWith<O> {
            pub fn __wdk_etw_emit(
                self,
                offset: u64,
                bytes: u32,
                file: &str,
            ) -> Result<(), WriteError> {
                self::__wdk_etw_write(self.0, offset, bytes, file)
            }
        }
        static __WDK_ETW_EVENT: EventBlob<30usize> = EventBlob::new(
            DESCRIPTOR,
            *b"\x1E\0\0Read\0Offset\0\nBytes\0\x08File\0\x97#",
        );
        /// The event descriptor.
        pub const DESCRIPTOR: EventDescriptor = EventDescriptor::new(
                0u16,
                0u8,
                Level(4u8),
                Keyword::from_bits(0u64),
            )
            .with_task(0u16)
            .with_opcode(Opcode(0u8))
            .with_channel(Channel(11u8));
        /// Returns whether a session enables the event, ignoring the match-all keywords;
        /// see [`is_enabled_fast`](::wdk_etw::Provider::is_enabled_fast).
        #[must_use]
        pub fn is_enabled() -> bool {
            Provider::is_enabled_fast(
                &super::PROVIDER,
                Level(4u8),
                Keyword::from_bits(0u64),
            )
        }
        #[must_use]
        pub fn __admits(limit: &RateLimit) -> bool {
            Provider::admits(&super::PROVIDER, limit)
        }
        #[must_use]
        pub fn __admits_once(limit: &RateLimit) -> bool {
            Provider::admits_once(&super::PROVIDER, limit)
        }
        /// Writes the event, or does nothing while the provider is not registered.
        /// `options` is a `&`[`WriteOptions`](::wdk_etw::WriteOptions).
        ///
        /// Check [`is_enabled`] first: it costs less than a write that ETW discards.
        ///
        /// # IRQL
        ///
        /// Any. The arguments must be in system space and, above `APC_LEVEL`, in
        /// non-pageable memory; see
        /// [`EventDataDescriptor`](::wdk_etw::EventDataDescriptor).
        ///
        /// # Errors
        ///
        /// Returns a [`WriteError`](::wdk_etw::WriteError). The provider also counts the
        /// failure.
        pub fn write<O: Options>(
            options: O,
            offset: u64,
            bytes: u32,
            file: &str,
        ) -> Result<(), WriteError> {
            if !Provider::is_open(&super::PROVIDER) {
                return Result::Ok(());
            }
            WriteError::check(
                super::__write_0(
                    offset,
                    EventBlob::tracelogging(&__WDK_ETW_EVENT),
                    options,
                    bytes,
                    file,
                ),
            )
        }
        pub fn __wdk_etw_write<O: Options>(
            options: O,
            offset: u64,
            bytes: u32,
            file: &str,
        ) -> Result<(), WriteError> {
            WriteError::check(
                super::__write_0(
                    offset,
                    EventBlob::tracelogging(&__WDK_ETW_EVENT),
                    options,
                    bytes,
                    file,
                ),
            )
        }
    }
    #[cold]
    fn __write_0<__wdk_etw_Options: Options>(
        __wdk_etw_a0: u64,
        __wdk_etw_event: EventRef<true>,
        __wdk_etw_options: __wdk_etw_Options,
        __wdk_etw_a1: u32,
        __wdk_etw_a2: &str,
    ) -> NtStatus {
        let __wdk_etw_t2: &[u8] = str::as_bytes(__wdk_etw_a2);
        if __wdk_etw_t2.len() > 62881usize {
            return __write_0_slow(
                __wdk_etw_a0,
                __wdk_etw_event,
                __wdk_etw_options,
                __wdk_etw_a1,
                __wdk_etw_a2,
            );
        }
        let Option::Some(__wdk_etw_write) = Provider::enter(&PROVIDER, __wdk_etw_event)
        else {
            return __write_0_slow(
                __wdk_etw_a0,
                __wdk_etw_event,
                __wdk_etw_options,
                __wdk_etw_a1,
                __wdk_etw_a2,
            );
        };
        let __wdk_etw_b0 = Packed(
            __wdk_etw_a0,
            Packed(__wdk_etw_a1, length(__wdk_etw_t2)),
        );
        Write::finish(
            &__wdk_etw_write,
            &__wdk_etw_options,
            &[
                Write::traits(&__wdk_etw_write),
                Write::event_metadata(&__wdk_etw_write),
                block_of_size::<_, 14usize>(&__wdk_etw_b0),
                EventDataDescriptor::fitting(__wdk_etw_t2),
            ],
        )
    }
    #[cold]
    fn __write_0_slow<__wdk_etw_Options: Options>(
        __wdk_etw_a0: u64,
        __wdk_etw_event: EventRef<true>,
        __wdk_etw_options: __wdk_etw_Options,
        __wdk_etw_a1: u32,
        __wdk_etw_a2: &str,
    ) -> NtStatus {
        let Option::Some(__wdk_etw_write) = Provider::enter_slow(
            &PROVIDER,
            __wdk_etw_event,
        ) else {
            return NtStatus::SUCCESS;
        };
        let __wdk_etw_room: usize = 62881usize;
        let __wdk_etw_t2: &[u8] = str::as_bytes(__wdk_etw_a2);
        let __wdk_etw_t2: &[u8] = Write::fit(
            &__wdk_etw_write,
            &__wdk_etw_options,
            __wdk_etw_t2,
            __wdk_etw_room,
            2u16,
            Cut::Characters,
        );
        let __wdk_etw_room = __wdk_etw_room.wrapping_sub(__wdk_etw_t2.len());
        let __wdk_etw_b0 = Packed(
            __wdk_etw_a0,
            Packed(__wdk_etw_a1, length(__wdk_etw_t2)),
        );
        Write::finish_slow(
            &__wdk_etw_write,
            &__wdk_etw_options,
            &[
                Write::traits(&__wdk_etw_write),
                Write::event_metadata(&__wdk_etw_write),
                block_of_size::<_, 14usize>(&__wdk_etw_b0),
                EventDataDescriptor::fitting(__wdk_etw_t2),
            ],
        )
    }
}
