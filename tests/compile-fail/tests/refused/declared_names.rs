// R-K4: every name in an event is declared.
#[wdk_etw::provider(name = "Contoso.Driver")]
mod trace {
    #[keyword]
    pub const READ: Keyword = Keyword::bit(0);

    #[tasks]
    enum Task {
        Transfer = 1,
    }

    #[event(level = Info, keyword = WRITE)]
    pub fn keyword();
    #[event(level = Info, keyword = READ, task = Transfers)]
    pub fn task();
    #[event(level = Info, keyword = READ, opcode = Split)]
    pub fn opcode();
    #[event(id = 1, level = Info, keyword = READ, channel = Operational)]
    pub fn channel();
    #[event(level = Info, keyword = READ)]
    pub fn kind(kind: Kind);
    #[event(level = Loud, keyword = READ)]
    pub fn level();
}

fn main() {}
