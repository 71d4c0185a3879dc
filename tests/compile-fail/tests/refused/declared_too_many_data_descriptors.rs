// An event has 128 data descriptors at most.
#[wdk_etw::provider(name = "Contoso.Driver")]
mod trace {
    #[keyword]
    pub const READ: Keyword = Keyword::bit(0);

    #[event(level = Info, keyword = READ)]
    pub fn many(f0: &str, f1: &str, f2: &str, f3: &str, f4: &str, f5: &str, f6: &str, f7: &str, f8: &str, f9: &str, f10: &str, f11: &str, f12: &str, f13: &str, f14: &str, f15: &str, f16: &str, f17: &str, f18: &str, f19: &str, f20: &str, f21: &str, f22: &str, f23: &str, f24: &str, f25: &str, f26: &str, f27: &str, f28: &str, f29: &str, f30: &str, f31: &str, f32: &str, f33: &str, f34: &str, f35: &str, f36: &str, f37: &str, f38: &str, f39: &str, f40: &str, f41: &str, f42: &str, f43: &str, f44: &str, f45: &str, f46: &str, f47: &str, f48: &str, f49: &str, f50: &str, f51: &str, f52: &str, f53: &str, f54: &str, f55: &str, f56: &str, f57: &str, f58: &str, f59: &str, f60: &str, f61: &str, f62: &str, f63: &str);
}

fn main() {}
