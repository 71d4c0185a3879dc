//! The power manager: power IRPs, settings, and the power framework.

pub mod power;
pub mod power_framework;
pub mod power_settings;
