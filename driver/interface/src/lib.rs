//! What the sample driver and its clients agree on: IOCTL codes and structs.
