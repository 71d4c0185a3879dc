// R-D4: opcodes of the provider's own are 10 to 239.
#[wdk_etw::provider(name = "Contoso.Driver")]
mod trace {
    #[opcodes]
    enum Opcode {
        Start = 1,
    }

    #[opcodes]
    enum More {
        Receive = 240,
    }

    #[opcodes]
    enum Twice {
        One = 10,
        Other = 10,
    }

    #[tasks]
    enum Task {
        None = 0,
    }
}

fn main() {}
