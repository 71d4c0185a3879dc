//! TCP and UDP.

use etw_wire::Guid as GuidOf;

use super::super::descriptor::Type::{I16, Ipv4, Ipv6, Pointer, Port, Process, Size, U16, U32};
use super::super::descriptor::{Class, Layout, e, f, v};

const TCP_V4: &[Layout] = &[
    v(
        0,
        &[
            f("daddr", Ipv4),
            f("saddr", Ipv4),
            f("dport", Port),
            f("sport", Port),
            f("size", U32),
            f("PID", Process),
        ],
    ),
    v(
        1,
        &[
            f("PID", Process),
            f("size", U32),
            f("daddr", Ipv4),
            f("saddr", Ipv4),
            f("dport", Port),
            f("sport", Port),
            f("connid", U32),
            f("seqnum", U32),
        ],
    ),
    v(
        2,
        &[
            f("PID", Process),
            f("size", U32),
            f("daddr", Ipv4),
            f("saddr", Ipv4),
            f("dport", Port),
            f("sport", Port),
            f("seqnum", U32),
            f("connid", Size),
        ],
    ),
];

const TCP_SEND_V4: &[Layout] = &[
    v(
        0,
        &[
            f("daddr", Ipv4),
            f("saddr", Ipv4),
            f("dport", Port),
            f("sport", Port),
            f("size", U32),
            f("PID", Process),
        ],
    ),
    v(
        1,
        &[
            f("PID", Process),
            f("size", U32),
            f("daddr", Ipv4),
            f("saddr", Ipv4),
            f("dport", Port),
            f("sport", Port),
            f("startime", U32),
            f("endtime", U32),
            f("connid", U32),
            f("seqnum", U32),
        ],
    ),
    v(
        2,
        &[
            f("PID", Process),
            f("size", U32),
            f("daddr", Ipv4),
            f("saddr", Ipv4),
            f("dport", Port),
            f("sport", Port),
            f("startime", U32),
            f("endtime", U32),
            f("seqnum", U32),
            f("connid", Size),
        ],
    ),
];

const TCP_CONNECT_V4: &[Layout] = &[
    v(
        0,
        &[
            f("daddr", Ipv4),
            f("saddr", Ipv4),
            f("dport", Port),
            f("sport", Port),
            f("size", U32),
            f("PID", Process),
        ],
    ),
    v(
        1,
        &[
            f("PID", Process),
            f("size", U32),
            f("daddr", Ipv4),
            f("saddr", Ipv4),
            f("dport", Port),
            f("sport", Port),
            f("mss", U16),
            f("sackopt", U16),
            f("tsopt", U16),
            f("wsopt", U16),
            f("rcvwin", U32),
            f("rcvwinscale", I16),
            f("sndwinscale", I16),
            f("connid", U32),
            f("seqnum", U32),
        ],
    ),
    v(
        2,
        &[
            f("PID", Process),
            f("size", U32),
            f("daddr", Ipv4),
            f("saddr", Ipv4),
            f("dport", Port),
            f("sport", Port),
            f("mss", U16),
            f("sackopt", U16),
            f("tsopt", U16),
            f("wsopt", U16),
            f("rcvwin", U32),
            f("rcvwinscale", I16),
            f("sndwinscale", I16),
            f("seqnum", U32),
            f("connid", Size),
        ],
    ),
];

const TCP_V6: &[Layout] = &[v(
    2,
    &[
        f("PID", Process),
        f("size", U32),
        f("daddr", Ipv6),
        f("saddr", Ipv6),
        f("dport", Port),
        f("sport", Port),
        f("seqnum", U32),
        f("connid", Size),
    ],
)];

const TCP_SEND_V6: &[Layout] = &[v(
    2,
    &[
        f("PID", Process),
        f("size", U32),
        f("daddr", Ipv6),
        f("saddr", Ipv6),
        f("dport", Port),
        f("sport", Port),
        f("startime", U32),
        f("endtime", U32),
        f("seqnum", U32),
        f("connid", Size),
    ],
)];

const TCP_CONNECT_V6: &[Layout] = &[v(
    2,
    &[
        f("PID", Process),
        f("size", U32),
        f("daddr", Ipv6),
        f("saddr", Ipv6),
        f("dport", Port),
        f("sport", Port),
        f("mss", U16),
        f("sackopt", U16),
        f("tsopt", U16),
        f("wsopt", U16),
        f("rcvwin", U32),
        f("rcvwinscale", I16),
        f("sndwinscale", I16),
        f("seqnum", U32),
        f("connid", Size),
    ],
)];

const FAIL: &[Layout] =
    &[v(1, &[f("Proto", U32)]), v(2, &[f("Proto", U16), f("FailureCode", U16)])];

const UDP_V4: &[Layout] = &[
    v(
        0,
        &[
            f("context", Pointer),
            f("saddr", Ipv4),
            f("sport", Port),
            f("size", U16),
            f("daddr", Ipv4),
            f("dport", Port),
            f("dsize", U16),
        ],
    ),
    v(
        1,
        &[
            f("PID", Process),
            f("size", U32),
            f("daddr", Ipv4),
            f("saddr", Ipv4),
            f("dport", Port),
            f("sport", Port),
        ],
    ),
    v(
        2,
        &[
            f("PID", Process),
            f("size", U32),
            f("daddr", Ipv4),
            f("saddr", Ipv4),
            f("dport", Port),
            f("sport", Port),
            f("seqnum", U32),
            f("connid", Size),
        ],
    ),
];

const UDP_V6: &[Layout] = &[v(
    2,
    &[
        f("PID", Process),
        f("size", U32),
        f("daddr", Ipv6),
        f("saddr", Ipv6),
        f("dport", Port),
        f("sport", Port),
        f("seqnum", U32),
        f("connid", Size),
    ],
)];

/// TCP.
pub const TCP: Class = Class {
    guid: GuidOf::from_u128(0x9a28_0ac0_c8e0_11d1_84e2_00c0_4fb9_98a2),
    name: "TcpIp",
    group: Some(0x06),
    events: &[
        e(0x0a, "SendIPV4", TCP_SEND_V4),
        e(0x0b, "RecvIPV4", TCP_V4),
        e(0x0c, "ConnectIPV4", TCP_CONNECT_V4),
        e(0x0d, "DisconnectIPV4", TCP_V4),
        e(0x0e, "RetransmitIPV4", TCP_V4),
        e(0x0f, "AcceptIPV4", TCP_CONNECT_V4),
        e(0x10, "ReconnectIPV4", TCP_V4),
        e(0x11, "Fail", FAIL),
        e(0x12, "TCPCopyIPV4", TCP_V4),
        e(0x13, "ARPCopy", TCP_V4),
        e(0x14, "FullACK", TCP_V4),
        e(0x15, "PartACK", TCP_V4),
        e(0x16, "DupACK", TCP_V4),
        e(0x1a, "SendIPV6", TCP_SEND_V6),
        e(0x1b, "RecvIPV6", TCP_V6),
        e(0x1c, "ConnectIPV6", TCP_CONNECT_V6),
        e(0x1d, "DisconnectIPV6", TCP_V6),
        e(0x1e, "RetransmitIPV6", TCP_V6),
        e(0x1f, "AcceptIPV6", TCP_CONNECT_V6),
        e(0x20, "ReconnectIPV6", TCP_V6),
        e(0x22, "TCPCopyIPV6", TCP_V6),
    ],
};

/// UDP.
pub const UDP: Class = Class {
    guid: GuidOf::from_u128(0xbf3a_50c5_a9c9_4988_a005_2df0_b7c8_0f80),
    name: "UdpIp",
    group: Some(0x08),
    events: &[
        e(0x0a, "SendIPV4", UDP_V4),
        e(0x0b, "RecvIPV4", UDP_V4),
        e(0x11, "Fail", FAIL),
        e(0x1a, "SendIPV6", UDP_V6),
        e(0x1b, "RecvIPV6", UDP_V6),
    ],
};
