//! What a plan's `kv` workers need: one writer at most, and one core each.

use sluice_services::kv::{KV, KvRole};

use super::parts::{Plan, ServicePlan, WorkerPlan};

/// Checks the workers of the store.
pub(super) fn check(plan: &Plan) -> Result<(), String> {
    let ours = |worker: &&WorkerPlan| matches!(&worker.service, ServicePlan::Ours(name) if name == KV);
    if let Some(worker) = plan.workers.iter().filter(ours).find(|worker| worker.cores.is_some()) {
        return Err(format!(
            "worker `{}` has cores, and `{KV}` serves one task at a time; leave `cores` out",
            worker.name
        ));
    }
    let writers = plan.workers.iter().filter(ours).filter(|worker| plan.role_of(worker) == KvRole::Writer);
    let names: Vec<&str> = writers.map(|worker| worker.name.as_str()).collect();
    match names[..] {
        [] | [_] => Ok(()),
        [first, second, ..] => Err(format!(
            "workers `{first}` and `{second}` would both write the store, which has one writer: keep one in \
             slices with kv-set or kv-del, and give the others a slice with kv-get and kv-scan"
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAN: &str = "[[slice]]\nname = \"write\"\ntypes = [\"kv-set\", \"kv-del\"]\n\
        [[slice]]\nname = \"read\"\ntypes = [\"kv-get\", \"kv-scan\"]\n\
        [[worker]]\nname = \"w\"\nslice = \"write\"\nservice = \"kv\"\n\
        [[worker]]\nname = \"r\"\ncount = 2\nslice = \"read\"\nservice = \"kv\"\n";

    fn refused(plan: &str) -> String {
        Plan::from_text("here", plan).expect_err("refused").to_string()
    }

    #[test]
    fn a_worker_in_a_slice_with_writes_is_the_writer_and_others_are_readers() {
        let plan = Plan::from_text("here", PLAN).expect("legal");
        let roles: Vec<KvRole> = plan.workers.iter().map(|worker| plan.role_of(worker)).collect();
        assert_eq!(roles, [KvRole::Writer, KvRole::Reader, KvRole::Reader]);
    }

    #[test]
    fn a_second_writer_and_a_server_of_many_cores_are_refused() {
        let why = refused(&PLAN.replace("slice = \"write\"", "count = 2\nslice = \"write\""));
        assert!(why.contains("`w-1` and `w-2` would both write"), "{why}");
        let why = refused(&PLAN.replace("\"r\"", "\"r\"\ncores = 2"));
        assert!(why.contains("leave `cores` out"), "{why}");
    }
}
