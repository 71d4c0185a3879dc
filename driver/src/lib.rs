//! The sample KMDF driver that traces itself with wdk-etw.
