#[wdk_etw::provider(name = "Contoso.Driver")]
mod trace {
    #[channels]
    enum Channel {
        #[channel(Debug)]
        A = 16,
        #[channel(Debug)]
        B = 17,
        #[channel(Debug)]
        C = 18,
        #[channel(Debug)]
        D = 19,
        #[channel(Debug)]
        E = 20,
        #[channel(Debug)]
        F = 21,
        #[channel(Debug)]
        G = 22,
        #[channel(Debug)]
        H = 23,
        #[channel(Debug)]
        I = 24,
    }
}

fn main() {}
