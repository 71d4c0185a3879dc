// Mistakes in the use of rate limits, dumps and traced results.
use wdk_etw::{ActivityId, RateLimit, Traced, emit, event};

#[wdk_etw::provider(name = "Contoso.Driver")]
mod trace {
    #[event(level = Info, keyword = none)]
    pub fn sample(number: u32);

    #[event(level = Error, keyword = none)]
    pub fn failed_at(offset: u64, status: NtStatus);

    #[event(level = Info, keyword = none)]
    pub fn dumped(data: HexDump<'_>);
}

struct WithoutStatus;

fn main() {
    let activity = ActivityId::default();
    emit!(trace::sample(1), every = 0);
    emit!(trace::sample(1), activity = activity, every = 100);
    emit!(trace::sample(1), limit = 100);
    emit!(trace::sample(1), limit = RateLimit::every(100));
    const LIMIT: RateLimit = RateLimit::once();
    emit!(trace::sample(1), limit = LIMIT);
    event!(trace::PROVIDER, "Limited", level = Info, keyword = none, limit = LIMIT);
    event!(trace::PROVIDER, "Two", level = Info, keyword = none, once, every = 2);
    emit!(trace::dumped(&[1, 2, 3]));
    emit!(trace::sample(1), activity = activity, activity = activity);
    emit!(trace::sample(1), once, activity = activity, related = activity, activity = activity);
    let result: Result<(), WithoutStatus> = Ok(());
    let _same = Traced::traced(result, |_status| ());
    let result: Result<(), wdk_etw::NtStatus> = Ok(());
    let _same = result.traced(trace::failed_at);
}
