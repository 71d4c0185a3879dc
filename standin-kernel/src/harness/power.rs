//! Changes of power settings by a test.

use etw_wire::Guid;

use super::{error::KernelError, kernel::Kernel};
use crate::{execution::identity::Identity, services::ntoskrnl::po::power_settings};

impl Kernel {
    /// Changes a power setting, and calls the callbacks that drivers registered for the setting
    /// with `PoRegisterPowerSettingCallback`.
    ///
    /// # Errors
    ///
    /// Returns an error if the kernel bugchecks.
    pub fn set_power_setting(&self, setting: Guid, value: &[u8]) -> Result<(), KernelError> {
        let value = value.to_vec();
        self.runner().ntoskrnl(Identity::SYSTEM, move |context| {
            power_settings::set(context, setting.to_bytes(), &value);
        })?;
        Ok(())
    }
}
