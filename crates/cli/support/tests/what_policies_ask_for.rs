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
