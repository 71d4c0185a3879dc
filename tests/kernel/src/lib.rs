//! A stand-in kernel that loads a real driver binary, runs its machine code, and shows it ETW and KMDF as Windows does.
