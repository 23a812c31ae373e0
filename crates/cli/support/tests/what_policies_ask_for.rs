//! A plan that asks its policy for the impossible is refused in one line.

use sluice_support::plan::Plan;

fn refused(policy: &str, of_worker: &str) -> String {
    let text = format!(
        "policy = \"{policy}\"\n[[slice]]\nname = \"a\"\ntypes = [\"hold\"]\n\
         [[worker]]\nname = \"w\"\nslice = \"a\"\nservice = \"hold\"\n{of_worker}\n"
    );
    Plan::from_text("here", &text).map_or_else(|why| why.to_string(), |_| String::new())
}

#[test]
fn a_quota_follows_the_policy_and_goes_no_further() {
    assert_eq!(refused("r2p2:9", "quota = 9"), "");
    for (policy, quota, why) in [
        ("r2p2:9", "quota = 10", "a switch with `r2p2:9` believes 9 at most"),
        ("rain:2", "quota = 9", "a switch with `rain:2` believes 8 at most"),
        ("r2p2:9", "quota = 17", "17 is outside 1 to 16"),
    ] {
        let said = refused(policy, quota);
        assert!(said.contains(why) && !said.contains('\n'), "{said}");
    }
}

#[test]
fn nothing_live_goes_past_the_kernel() {
    assert_eq!(refused("server:1", ""), "");
    let said = refused("server:1,bypass", "");
    assert!(said.contains("in simulations only") && !said.contains('\n'), "{said}");
}

/// The demo's kind of plan: two workers that hold 10 us on average, and this in their slice.
fn with_target(policy: &str, of_slice: &str) -> Result<Plan, String> {
    let text = format!(
        "policy = \"{policy}\"\n[[slice]]\nname = \"a\"\ntypes = [\"hold\"]\n{of_slice}\n\
         [[worker]]\nname = \"w\"\ncount = 2\nslice = \"a\"\nservice = \"hold\"\n\
         [load]\nrate = 100\nmix = \"hold=1\"\n\
         [load.request.hold]\nbusy = \"10us\"\nspread = \"exponential\"\n"
    );
    Plan::from_text("here", &text).map_err(|why| why.to_string())
}

#[test]
fn a_slices_target_stands_in_the_plan_or_follows_from_a_latency() {
    let target = |policy, of_slice| {
        let plan = with_target(policy, of_slice).unwrap_or_else(|why| panic!("{why}"));
        (plan.target(&plan.slices[0]).expect("checked").map(|target| target.0), plan.program().to_string())
    };
    let so = |ns: Option<u64>, program: &str| (ns, program.to_owned());
    assert_eq!(target("rain:2", ""), so(None, "rain:2"));
    assert_eq!(target("rain:2,target=50us", ""), so(Some(50_000), "rain:2,target=50us"));
    assert_eq!(target("rain:2,target=50us", "target = \"80us\""), so(Some(80_000), "rain:2,target=50us"));
    assert_eq!(target("rain:2,patient", "target = \"80us\""), so(Some(80_000), "rain:2,target,patient"));
    // The service at its 99th percentile takes 46.052 us, the round trip 5 us, a task before it 10 us.
    for (policy, left) in [("rain:1", 148_948), ("rain:2", 138_948)] {
        let (left_of_it, _) = target(policy, "latency = \"200us\"");
        assert!(left_of_it.is_some_and(|ns| ns.abs_diff(left) < 10), "{policy}: {left_of_it:?}");
    }
}

#[test]
fn an_answer_within_the_latency_of_its_slice_is_in_time_if_each_type_has_one_and_the_load_says_no_other() {
    let within = |of_other: &str, of_load: &str| {
        let text = format!(
            "policy = \"rain:2\"\n[types]\nrest = 40\n\
             [[slice]]\nname = \"a\"\ntypes = [\"hold\"]\nlatency = \"400us\"\n\
             [[slice]]\nname = \"b\"\ntypes = [\"rest\"]\n{of_other}\n\
             [[worker]]\nname = \"w\"\nslice = \"a\"\nservice = \"hold\"\n\
             [[worker]]\nname = \"v\"\nslice = \"b\"\nservice = \"hold\"\n\
             [load]\nrate = 100\nmix = \"hold=0.9,rest=0.1\"\n{of_load}\n\
             [load.request.hold]\nbusy = \"10us\"\n[load.request.rest]\nbusy = \"10us\"\n"
        );
        let plan = Plan::from_text("here", &text).unwrap_or_else(|why| panic!("{why}"));
        let limits = plan.load.expect("it has a load").limits();
        limits.map(|limits| limits.iter().map(|limit| limit.0 / 1_000).collect::<Vec<_>>())
    };
    assert_eq!(within("", ""), None, "one slice has no latency");
    assert_eq!(within("latency = \"700us\"", ""), Some(vec![400, 700]));
    assert_eq!(within("latency = \"700us\"", "within = \"1ms\""), Some(vec![1_000, 1_000]));
    assert_eq!(within("", "within = \"rest=2ms,4=1ms\""), Some(vec![1_000, 2_000]));
}

#[test]
fn behind_a_few_much_longer_services_a_task_waits_for_one_of_these() {
    let text = "policy = \"rain:2\"\n[types]\nrest = 40\n[[slice]]\nname = \"a\"\n\
                types = [\"hold\", \"rest\"]\nlatency = \"400us\"\n\
                [[worker]]\nname = \"w\"\ncount = 2\nslice = \"a\"\nservice = \"hold\"\n\
                [load]\nrate = 100\nmix = \"hold=0.9,rest=0.1\"\n\
                [load.request.hold]\nbusy = \"10us\"\n[load.request.rest]\nbusy = \"100us\"\n";
    let plan = Plan::from_text("here", text).unwrap_or_else(|why| panic!("{why}"));
    let target = plan.target(&plan.slices[0]).expect("checked").expect("it has a latency");
    assert!(target.0.abs_diff(195_000) < 10, "two services of 100 us and a round trip of 5: {target:?}");
}

#[test]
fn a_target_that_makes_no_sense_is_refused_in_one_line() {
    for (policy, of_slice, why) in [
        ("rain:2", "target = \"9us\"", "shorter than what one service takes on average, 10us"),
        ("rain:2,target=9us", "", "shorter than what one service takes on average"),
        ("rain:2", "target = \"2s\"", "not between"),
        ("rain:2", "latency = \"60us\"", "leaves no time to wait in the switch"),
        ("rain:2", "target = \"80us\"\nlatency = \"200us\"", "keep one"),
        ("r2p2:5", "target = \"80us\"", "`r2p2:5` refuses no task because it would wait too long"),
        ("rain:2,labels", "latency = \"200us\"", "leave `latency` out"),
        (
            "rain:2",
            "target = \"80us\"\n[[slice]]\nname = \"b\"\nlatency = \"80us\"",
            "`b` has a `latency` and no worker",
        ),
    ] {
        let said = with_target(policy, of_slice).map_or_else(|why| why, |_| String::new());
        assert!(said.contains(why) && !said.contains('\n'), "{policy} {of_slice}: {said}");
    }
    let text = "[[slice]]\nname = \"a\"\ntypes = [\"1\"]\ntarget = \"4us\"\n";
    let said = Plan::from_text("here", text).map_or_else(|why| why.to_string(), |_| String::new());
    assert!(said.contains("shorter than what a round trip takes, 5us"), "{said}");
}

#[test]
fn a_plan_with_targets_is_written_as_it_was_read() {
    for of_slice in ["target = \"80us\"", "latency = \"200us\""] {
        let plan = with_target("rain:2", of_slice).unwrap_or_else(|why| panic!("{why}"));
        let text = plan.to_toml().expect("legal");
        assert!(text.contains(of_slice), "{text}");
        assert_eq!(Plan::from_text("written", &text).expect("legal"), plan);
    }
}
